// The sequence of weight reads in op order: the input of a simulated cache for the model
// files. Pure functions, any thread.
//
// A cache item is a complete weight tensor, or a part that is read separately (a routed
// expert's slice, an embedding row), which suits models larger than memory. A read is one op
// reading one item. Items are ranges of the model file, even if weights were repacked or
// copied at load.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/index/step_decoder.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class Grain : std::uint8_t { Tensor, Part };
constexpr const char* to_text(Grain grain) { return grain == Grain::Tensor ? "tensor" : "part"; }

struct ReuseItem {
  std::string tensor;
  std::int32_t expert = -1;  // Grain::Part: the expert of the slice; -1: not an expert slice
  FileRange file;            // its length is the item's size
  LayerId layer = kNoLayer;
  Source source = Source::Disk;  // other than Disk: a copy in memory, repacked for example
  std::uint64_t reads = 0;
  friend bool operator==(const ReuseItem&, const ReuseItem&) = default;
};

// The reads in op order; 4 bytes per read.
struct ReadSequence {
  std::vector<ReuseItem> items;      // in order of first read
  std::vector<std::uint32_t> reads;  // indices into items

  std::uint64_t size(std::uint32_t item) const { return items[item].file.length; }
  Bytes bytes() const;           // total size of all reads
  Bytes distinct_bytes() const;  // total size of all items: the capacity that saves all rereads
};

// The subsequence of the reads of items for which `keep` is true.
std::expected<ReadSequence, TraceError> reads_of(const ReadSequence& sequence,
                                                 const std::function<bool(const ReuseItem&)>& keep,
                                                 const ContinueCheck& keep_going = never_cancel);

// Collects the reads of the steps that a walk visits (analysis/index/walk_outlines.h), in order.
class ReadSequenceBuilder {
 public:
  // The reader must outlive this object.
  ReadSequenceBuilder(const SessionReader& reader, Grain grain);
  ReadSequenceBuilder(const ReadSequenceBuilder&) = delete;
  ReadSequenceBuilder& operator=(const ReadSequenceBuilder&) = delete;
  ~ReadSequenceBuilder();

  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder);
  ReadSequence take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The reads of the steps `steps`. With Grain::Part, overlapping ranges are separate items: the
// row that an embedding reads, and the complete tensor that a tied output reads.
std::expected<ReadSequence, TraceError> weight_reads(
    const SessionReader& reader, PageRange steps, Grain grain,
    const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
