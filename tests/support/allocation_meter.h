// How much memory C++ code asks for: the test program replaces operator new.
#pragma once

#include <cstddef>

namespace tt::test {

// Starts a new measurement.
void reset_allocation_peak();
// The most bytes that were held at once since then, beyond those held at its start.
std::size_t allocation_peak();

}  // namespace tt::test
