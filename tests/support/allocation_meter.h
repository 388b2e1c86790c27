// Measures the memory that C++ code allocates: the test program replaces operator new.
#pragma once

#include <cstddef>

namespace tt::test {

// Starts a new measurement.
void reset_allocation_peak();
// The peak of allocated bytes since the reset, above the level at the reset.
std::size_t allocation_peak();

}  // namespace tt::test
