// The reads of weights in the order of the ops: what any cache for a model's file would
// have been asked for. Pure functions, any thread.
//
// What a cache holds are items: whole weight tensors, or, as models larger than
// memory want it, the parts that are read by themselves (a routed expert's slice,
// a row of the embedding). A read is one op reading one item; that the weights
// were repacked or copied at load makes no difference, it is the file's bytes
// that a cache would hold.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class Grain : std::uint8_t { Tensor, Part };

struct ReuseItem {
  std::string tensor;
  std::int32_t expert = -1;  // Grain::Part: of an expert's slice
  FileRange file;            // its length is the item's size
  LayerId layer = kNoLayer;
  std::uint64_t reads = 0;
  friend bool operator==(const ReuseItem&, const ReuseItem&) = default;
};

// The reads in the order of the ops. 4 bytes a read.
struct ReadSequence {
  std::vector<ReuseItem> items;      // in order of their first read
  std::vector<std::uint32_t> reads;  // indices into items

  std::uint64_t size(std::uint32_t item) const { return items[item].file.length; }
  Bytes bytes() const;           // of all reads
  Bytes distinct_bytes() const;  // of all items: with so much, only first reads remain
};

// Of the steps `steps` (from, limit). With Grain::Part overlapping ranges are
// items of their own: the row that an embedding reads, the whole of it that a
// tied output reads.
std::expected<ReadSequence, TraceError> weight_reads(const SessionReader& reader, PageRange steps,
                                                     Grain grain,
                                                     const KeepGoing& keep_going = always);

}  // namespace tt
