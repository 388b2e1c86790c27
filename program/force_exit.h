// Two-stage handling of SIGINT and SIGTERM: the first signal requests a stop, the second one
// ends the process. timeout(1) and some supervisors signal the process and then its process
// group; these two signals count as one.
#pragma once

#include <chrono>

namespace tt {

// Signals within this time after the first one are ignored.
inline constexpr std::chrono::milliseconds kSignalDebounce{200};

// Records the time of the first signal. Both functions are async-signal-safe.
void record_first_signal();

// Handler for further signals: ends the process with the default action of the signal.
void force_exit(int number);

}  // namespace tt
