// A step as time slices: the step, its ops, the bytes that each op accessed by memory source, its
// experts, and which op read what another one wrote. Input of the Chrome and Perfetto exports.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

inline constexpr std::size_t kSources = static_cast<std::size_t>(Source::Buffer) + 1;

struct Slice {
  std::int64_t begin = 0, end = 0;  // ns since the session's start, begin <= end
};

// Bytes per second; 0 for an empty slice.
double per_second(Bytes bytes, const Slice& time);

struct OpSlice {
  Slice time;
  std::string_view name;    // "MUL_MAT"; lives as long as the template
  std::string_view tensor;  // name of the output tensor
  std::string_view label;   // "ffn_out-3 MUL_MAT"; valid UTF-8
  std::string_view device;
  LayerId layer = kNoLayer;
  Component component = Component::Other;  // of the output tensor
  Bytes read{}, written{};
  std::array<std::uint64_t, kSources> source_bytes{};  // bytes read and written, by source
};

// The first op of a step that reads an expert of a layer.
struct ExpertSlice {
  std::uint32_t op = 0;
  LayerId layer = kNoLayer;
  std::int32_t expert = 0, rank = -1;  // best rank among the tokens of the step; -1: unknown
  float score = 0;                     // at that rank; NaN: unknown
};

// An op and a later one that reads memory which the first one wrote last.
struct Handover {
  std::uint32_t writer = 0, reader = 0;
};

struct StepSlice {
  Slice time;
  const Step* step = nullptr;
  Bytes read{}, written{};
  std::uint64_t tokens = 0;             // tokens evaluated up to the end of this step
  std::vector<OpSlice> ops;             // in order; empty without times
  std::vector<ExpertSlice> experts;     // by op
  std::span<const Handover> handovers;  // by reader; may name ops that did not run
};

// Slices of consecutive steps do not overlap, slices of ops do not overlap, and ops are inside
// their step. Times that violate this (never in recorded sessions) are shifted. One thread.
class Slices {
 public:
  // Valid as long as the rows, and until the next call.
  const StepSlice& of(const StepRows& rows);

 private:
  struct Graph {
    std::vector<std::string> labels;  // per op
    std::vector<Handover> handovers;
  };
  const Graph& graph_of(const StepRows& rows);

  std::map<TemplateId, Graph> graphs_;  // cache
  StepSlice slice_;
  std::int64_t at_ = 0;
};

}  // namespace tt::exchange
