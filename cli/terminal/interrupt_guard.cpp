#include "cli/terminal/interrupt_guard.h"

#include "program/force_exit.h"

namespace tt::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int number) {
  if (interrupted != 0) return force_exit(number);
  record_first_signal();
  interrupted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaddset(&action.sa_mask, SIGINT);  // a handler does not interrupt the other
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, &previous_int_);
  sigaction(SIGTERM, &action, &previous_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGTERM, &previous_term_, nullptr);
}

bool was_interrupted() { return interrupted != 0; }

}  // namespace tt::cli
