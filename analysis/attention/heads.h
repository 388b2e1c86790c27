// Attention heads: the bytes of each head in the weights of Q, K, V and O, and how often a
// session read them. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct HeadUse {
  std::uint64_t reads = 0;  // accesses that read bytes of the head
  Bytes read{};             // bytes of the head read by these accesses
  friend bool operator==(const HeadUse&, const HeadUse&) = default;
};

// A weight of Q, K, V, joint QKV or O. A weight that head_geometry() cannot divide (joint
// QKV, low-rank factors, blocks that span heads) has no heads, only total reads.
struct HeadWeight {
  std::string name;
  Role role = Role::None;
  LayerId layer = kNoLayer;
  FileRange file;
  HeadGeometry geometry;
  std::uint64_t rows = 1;      // byte ranges per head: one per row for O, else one
  std::vector<HeadUse> heads;  // geometry.count entries
  std::uint64_t reads = 0;
  Bytes read{};
  Bytes head_bytes() const { return Bytes{geometry.bytes.v * rows}; }
  // The `row`-th byte range of a head in the model file.
  FileRange range(std::uint32_t head, std::uint64_t row) const;
  friend bool operator==(const HeadWeight&, const HeadWeight&) = default;
};

// Each weight of the evaluated graphs once, in order of first appearance. The number of
// heads is that of the attention of its layer. An access that reads a part of a weight
// counts for the heads that overlap its range.
struct HeadTable {
  std::uint32_t heads = 0, kv_heads = 0;  // from the model's metadata
  std::vector<HeadWeight> weights;
};
std::expected<HeadTable, TraceError> head_table(const SessionReader& reader,
                                                const ContinueCheck& keep_going = never_cancel);

Fields<HeadTable> fields_of(const HeadTable*);

// For a session without weights that are divided by head.
inline constexpr const char* kNoHeadWeights =
    "The session has no accesses to weights of attention heads (Q, K, V, O): the model has none "
    "that "
    "are divided by head, or it was recorded at the level minimal.";

}  // namespace tt
