// SIGINT or SIGTERM asks a program to finish, a second one ends it. timeout(1) and some
// supervisors signal a process twice in one breath, itself and its group: that is one.
#pragma once

#include <chrono>

namespace tt {

// What comes within is the first, still.
inline constexpr std::chrono::milliseconds kOneSignal{200};

// The first has come, now. Both functions may be called in a handler.
void first_signal_came();

// A handler of what comes after it: ends the process as the signal does that has no handler.
void second_signal(int number);

}  // namespace tt
