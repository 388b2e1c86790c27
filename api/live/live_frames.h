// Binary frames of the live WebSocket (api/live.md): what a step has by the
// thousand, as columns. Little-endian; the page reads the columns in place, so
// each begins at a multiple of 8 bytes.
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

inline constexpr std::uint32_t kMostFrameRows = 2048;
inline constexpr std::size_t kMostFrameBytes = 32 + 20 * kMostFrameRows;

// The ops of a step, also of the step in flight.
struct OpsFrame {
  std::uint32_t subscription = 0;  // the number that "subscribed" gave
  StepId step;
  OpId first;                  // the rows are ops first, first + 1, ...
  bool complete = false;       // with this frame the step is over and every op was sent
  bool withdrawn = false;      // forget the step's ops: their times turned out to be unusable
  std::vector<Ns> begin, end;  // per row
  friend bool operator==(const OpsFrame&, const OpsFrame&) = default;
};

// What one layer's router chose in a step.
struct RoutingFrame {
  std::uint32_t subscription = 0;
  StepId step;
  std::uint32_t first = 0;  // routing rows of the step before these, of all layers
  bool complete = false;    // the step has no more
  LayerId layer;
  std::vector<std::uint32_t> token, expert, rank;  // per row; token kNone: unknown
  std::vector<float> score;
  friend bool operator==(const RoutingFrame&, const RoutingFrame&) = default;
};

std::vector<std::byte> encode(const OpsFrame& frame);
std::vector<std::byte> encode(const RoutingFrame& frame);

// The error says what is wrong with the bytes.
using LiveFrame = std::variant<OpsFrame, RoutingFrame>;
std::expected<LiveFrame, std::string> decode_live_frame(std::span<const std::byte> bytes);

}  // namespace tt
