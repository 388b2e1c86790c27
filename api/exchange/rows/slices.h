// A step as slices of time: itself, its ops, what each read from where. What Chrome
// and Perfetto traces are written from.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

inline constexpr std::size_t kSources = static_cast<std::size_t>(Source::Buffer) + 1;

struct Slice {
  std::int64_t begin = 0, end = 0;  // ns since the session's start, begin <= end
};

struct OpSlice {
  Slice time;
  std::string_view name;    // "MUL_MAT", as long as the template
  std::string_view tensor;  // the output's name
  std::string_view device;
  LayerId layer = kNoLayer;
  Bytes read{}, written{};
  std::array<std::uint64_t, kSources> source_bytes{};  // read and written, by where they are
};

struct StepSlice {
  Slice time;
  const Step* step = nullptr;
  Bytes read{}, written{};
  std::uint64_t tokens = 0;  // evaluated in the session up to the end of this step
  std::vector<OpSlice> ops;  // in order; none without times
};

// Slices of steps one after the other never overlap, those of ops neither, and ops
// lie inside their step: times that say otherwise (none that were recorded do) are
// moved on. One thread.
class Slices {
 public:
  // As long as the rows that it was made of, and until the next call.
  const StepSlice& of(const StepRows& rows);

 private:
  StepSlice slice_;
  std::int64_t at_ = 0;
};

}  // namespace tt::exchange
