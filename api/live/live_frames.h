// Binary frames of the live WebSocket (api/live.md) for bulk data of a step, stored as
// columns. Little-endian. Columns start at multiples of 8 bytes so that the web UI can read
// them in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

inline constexpr std::uint32_t kMaxFrameRows = 2048;
inline constexpr std::size_t kMaxFrameBytes = 32 + 20 * kMaxFrameRows;

// Ops of a step, running or recorded.
struct OpsFrame {
  std::uint32_t subscription = 0;  // `number` of the "subscribed" event
  StepId step;
  OpId first;                  // the rows are the ops first, first + 1, ...
  bool complete = false;       // last frame of the step: all ops were sent
  bool withdrawn = false;      // discard the ops of this step: their times are invalid
  std::vector<Ns> begin, end;  // per row
  friend bool operator==(const OpsFrame&, const OpsFrame&) = default;
};

// Choices of one layer's router in a step.
struct RoutingFrame {
  std::uint32_t subscription = 0;
  StepId step;
  std::uint32_t first = 0;  // number of routing rows of the step before these, over all layers
  bool complete = false;    // last frame of the step
  LayerId layer;
  std::vector<std::uint32_t> token, expert, rank;  // per row; token kNone: unknown
  std::vector<float> score;
  friend bool operator==(const RoutingFrame&, const RoutingFrame&) = default;
};

std::vector<std::byte> encode(const OpsFrame& frame);
std::vector<std::byte> encode(const RoutingFrame& frame);

// The error describes what is wrong with the bytes.
using LiveFrame = std::variant<OpsFrame, RoutingFrame>;
std::expected<LiveFrame, std::string> decode_live_frame(std::span<const std::byte> bytes);

}  // namespace tt
