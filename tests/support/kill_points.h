// Where a process may die: right before a call by which a file or a folder changes. All the
// files that a kill can leave are those before some such call, or in the middle of one that
// writes. The functions of kill_points.cpp stand before libc's in the program that they are
// linked into (or loaded before, LD_PRELOAD), and do what those do until somebody asks for more;
// but nothing is flushed to the disk.
#pragma once

#include <cstdint>

namespace tt::test {

enum class Torn : bool { No, Half };

// Such calls of this process so far, of all its threads.
std::uint64_t changes();

// Before the nth from now on (1: the next) this process ends as by SIGKILL; of a torn write
// the first half reached the file.
void die_before_change(std::uint64_t nth, Torn torn = Torn::No);

}  // namespace tt::test
