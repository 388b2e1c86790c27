#include "cli/terminal/interrupt_guard.h"

#include "program/second_signal.h"

namespace tt::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int number) {
  if (interrupted != 0) return second_signal(number);
  first_signal_came();
  interrupted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction ours = {};
  ours.sa_handler = on_signal;
  sigaddset(&ours.sa_mask, SIGINT);  // a handler does not interrupt the other
  sigaddset(&ours.sa_mask, SIGTERM);
  sigaction(SIGINT, &ours, &int_before_);
  sigaction(SIGTERM, &ours, &term_before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &int_before_, nullptr);
  sigaction(SIGTERM, &term_before_, nullptr);
}

bool was_interrupted() { return interrupted != 0; }

}  // namespace tt::cli
