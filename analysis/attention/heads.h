// Attention heads: the bytes that each owns in the weights of Q, K, V and O, and
// how often a session read them. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct HeadUse {
  std::uint64_t reads = 0;  // accesses that touch the head's bytes
  Bytes read{};             // of the head's, by all of these
  friend bool operator==(const HeadUse&, const HeadUse&) = default;
};

// A weight of Q, K, V (also all three in one) or O. What head_geometry() does not divide
// (joint QKV, low-rank factors, blocks that span heads) has no heads, and its reads.
struct HeadWeight {
  std::string name;
  Role role = Role::None;
  LayerId layer = kNoLayer;
  FileRange file;
  HeadGeometry geometry;
  std::uint64_t rows = 1;      // stretches per head: of O one in each row, else one
  std::vector<HeadUse> heads;  // geometry.count of them
  std::uint64_t reads = 0;
  Bytes read{};
  Bytes head_bytes() const { return Bytes{geometry.bytes.v * rows}; }
  // The `row`-th stretch of a head's bytes in the model's file.
  FileRange stretch(std::uint32_t head, std::uint64_t row) const;
  friend bool operator==(const HeadWeight&, const HeadWeight&) = default;
};

// Of the graphs that the session evaluated, each weight once, by first
// appearance, its heads as many as the attention of its layer has. An access that touches part of a
// weight counts for the heads whose bytes lie in its range.
struct HeadTable {
  std::uint32_t heads = 0, kv_heads = 0;  // of the model
  std::vector<HeadWeight> weights;
};
std::expected<HeadTable, TraceError> head_table(const SessionReader& reader,
                                                const KeepGoing& keep_going = always);

}  // namespace tt
