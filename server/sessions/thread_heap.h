// Counts what threads allocate, so that a cache knows what its entries really hold. A program that
// links this replaces the global operator new and operator delete by functions that call malloc
// and free and count the bytes.
#pragma once

#include <cstdint>

namespace tt {

// Bytes that the calling thread has allocated with operator new, less the bytes that it has freed;
// negative if it freed more, which other threads had allocated. Includes what malloc adds for
// alignment, not what C libraries allocate. The difference of two calls is what the code between
// them keeps.
std::int64_t thread_heap_bytes() noexcept;

}  // namespace tt
