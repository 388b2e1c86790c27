// Sequentiality of the reads of the mapped model files, as a disk with readahead would see them if
// every such read went to the disk. Copies of weights in memory (repacked, --no-mmap, devices) are
// not read from the files.
//
// A read is sequential if it begins in the same file, 0 to `gap` bytes after the end of the
// previous read; otherwise it is random (the disk must seek). Reads are in op order; within
// an op, in the order of its sources, with experts and rows ascending. The first read is
// random.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

inline constexpr std::uint64_t kDefaultGap = std::uint64_t{128}
                                             << 10;  // default readahead of the Linux kernel

struct ReadOrder {
  std::uint64_t reads = 0, sequential = 0;
  Bytes bytes{}, sequential_bytes{};  // only bytes of a mapped model file
  void add(const ReadOrder& more);
  friend bool operator==(const ReadOrder&, const ReadOrder&) = default;
};

// The end position of the previous read.
class ReadHead {
 public:
  explicit ReadHead(std::uint64_t gap) : gap_(gap) {}
  bool follows(std::uint32_t file, std::uint64_t offset) const {
    return moved_ && file == file_ && offset >= end_ && offset - end_ <= gap_;
  }
  // From the end of the previous read, forward or back; nullopt: there was none, or it was in
  // another file.
  std::optional<std::uint64_t> distance_to(std::uint32_t file, std::uint64_t offset) const {
    if (!moved_ || file != file_) return std::nullopt;
    return offset >= end_ ? offset - end_ : end_ - offset;
  }
  void move_to(std::uint32_t file, std::uint64_t end) {
    moved_ = true;
    file_ = file;
    end_ = end;
  }
  // Of one range, and of ranges that are read by one request; not empty.
  ReadOrder read(const FileRange& range) { return read(std::span(&range, 1)); }
  ReadOrder read(std::span<const FileRange> ranges);

 private:
  const std::uint64_t gap_;
  bool moved_ = false;
  std::uint32_t file_ = 0;
  std::uint64_t end_ = 0;
};

struct Sequentiality {
  std::uint64_t gap = 0;
  ReadOrder total;
  struct OfLayer {
    LayerId layer;  // of the op; kNoLayer (last): outside of layers
    ReadOrder order;
    friend bool operator==(const OfLayer&, const OfLayer&) = default;
  };
  std::vector<OfLayer> layers;
  // Steps with at least one read. A prompt step reads once for all of its tokens.
  struct OfStep {
    StepId step;
    std::uint32_t first_token = 0, n_tokens = 0;
    ReadOrder order;
    friend bool operator==(const OfStep&, const OfStep&) = default;
  };
  Page<OfStep> steps;
  std::uint64_t left_out_steps = 0;  // of the index; in no sum
};

// For the reads that pass the filter. Steps that overlap the token and time ranges of the
// filter count completely. `page` selects rows of `steps`.
std::expected<Sequentiality, TraceError> sequentiality(
    const SessionIndex& index, const TraceFilter& filter, std::uint64_t gap, PageRange page,
    const ContinueCheck& keep_going = never_cancel);

Fields<ReadOrder> fields_of(const ReadOrder*);
Fields<Sequentiality> fields_of(const Sequentiality*);

}  // namespace tt
