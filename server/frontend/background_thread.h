// Threads that leave the processors to others, above all to the inference.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tt {

// For the calling thread, and for all threads and processes that it starts from now on: it gets a
// tenth of a processor that another thread of the program wants, too, and does not interrupt that
// thread when it wakes up. It cannot be undone, because a thread may not raise its priority.
inline void run_in_background() {
  constexpr int kNice = 10;
  const auto main_thread = static_cast<id_t>(getpid());
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()),
              getpriority(PRIO_PROCESS, main_thread) + kNice);
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace tt
