// Kill points: a process can be killed right before each call that changes a file or folder.
// The file states that a kill can leave behind are those before such a call, or within a write.
// The functions of kill_points.cpp override libc's in the program that links them (or preloads
// them with LD_PRELOAD). They only forward to libc until die_before_change() is called, but
// nothing is flushed to the disk.
#pragma once

#include <cstdint>

namespace tt::test {

enum class Torn : bool { No, Half };

// The number of such calls of this process so far, in all its threads.
std::uint64_t changes();

// Kills this process (SIGKILL) before the nth such call from now on (1: the next). With
// Torn::Half, the first half of a torn write reaches the file.
void die_before_change(std::uint64_t nth, Torn torn = Torn::No);

}  // namespace tt::test
