// Which cells an attention mask lets at least one query attend to.
//
// Plain values without the standard library: also used inside other people's programs
// (attach/agent).
#pragma once

#include <stdint.h>
#include <string.h>

namespace tt {

inline constexpr uint16_t kHalfMinusInf = 0xFC00;

// Sets the flag of each cell that the query of this row attends to. `half`: the row has F16 values,
// else F32; the others are minus infinity.
inline void mark_attended(const char* row, bool half, uint64_t cells, uint8_t* attended) {
  if (half) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
    for (uint64_t i = 0; i < cells; ++i)
      if (values[i] != kHalfMinusInf) attended[i] = 1;
  } else {
    const auto* values = reinterpret_cast<const float*>(row);
    for (uint64_t i = 0; i < cells; ++i)
      if (values[i] != -__builtin_inff()) attended[i] = 1;
  }
}

// The first cell from `begin` on that the query of this row attends to; -1: none.
inline int32_t first_attended(const char* row, bool half, uint64_t cells, uint64_t begin = 0) {
  uint64_t i = begin;
  if (half) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
    while (i < cells && values[i] == kHalfMinusInf) ++i;
  } else {
    const auto* values = reinterpret_cast<const float*>(row);
    while (i < cells && values[i] == -__builtin_inff()) ++i;
  }
  return i < cells ? static_cast<int32_t>(i) : -1;
}

// Writes the indices of the attended cells, ascending. Usually they are one run, so groups of
// eight equal flags are handled together. `ids`: room for `cells`. Returns their number.
inline uint32_t number_attended(const uint8_t* attended, uint64_t cells, int32_t* ids) {
  constexpr uint64_t kAtOnce = 8;
  constexpr uint64_t kAll = 0x0101010101010101;
  uint32_t count = 0;
  uint64_t i = 0;
  for (; i + kAtOnce <= cells; i += kAtOnce) {
    uint64_t eight = 0;
    memcpy(&eight, attended + i, sizeof eight);
    if (eight == 0) continue;
    if (eight == kAll) {
      for (uint64_t k = 0; k < kAtOnce; ++k) ids[count + k] = static_cast<int32_t>(i + k);
      count += kAtOnce;
      continue;
    }
    for (uint64_t k = 0; k < kAtOnce; ++k) {
      ids[count] = static_cast<int32_t>(i + k);
      count += attended[i + k];
    }
  }
  for (; i < cells; ++i) {
    ids[count] = static_cast<int32_t>(i);
    count += attended[i];
  }
  return count;
}

}  // namespace tt
