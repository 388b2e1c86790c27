#include "cli/interrupt_guard.h"

namespace tt::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction once = {};
  once.sa_handler = [](int) { interrupted = 1; };
  once.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &once, &int_before_);
  sigaction(SIGTERM, &once, &term_before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &int_before_, nullptr);
  sigaction(SIGTERM, &term_before_, nullptr);
}

bool was_interrupted() { return interrupted != 0; }

}  // namespace tt::cli
