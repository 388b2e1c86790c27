// Binary frames of the live WebSocket (api/live.md): the ops of a step, also of
// the step in flight, as columns. Little-endian; the page reads the columns in
// place, so each begins at a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "tracer/format/ids.h"

namespace tt {

struct OpsFrame {
  std::uint32_t subscription = 0;  // the number that "subscribed" gave
  StepId step;
  OpId first;                  // the rows are ops first, first + 1, ...
  bool complete = false;       // with this frame the step is over and every op was sent
  bool withdrawn = false;      // forget the step's ops: their times turned out to be unusable
  std::vector<Ns> begin, end;  // per row
  friend bool operator==(const OpsFrame&, const OpsFrame&) = default;
};

std::vector<std::byte> encode(const OpsFrame& frame);

// The error says what is wrong with the bytes.
std::expected<OpsFrame, std::string> decode_ops_frame(std::span<const std::byte> bytes);

}  // namespace tt
