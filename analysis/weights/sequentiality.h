// Whether a model's files are read in order: what a disk, and the kernel's reading
// ahead, would see if every read of a weight went there.
//
// A read is sequential when it begins in the same file at most `gap` bytes behind
// the end of the read before it, and not before that end; else it is random: the
// disk has to seek. Reads come in the order of the ops, those of one op in the
// order of its sources, its experts and rows ascending. The first read is random.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"

namespace tt {

inline constexpr std::uint64_t kUsualGap = std::uint64_t{128}
                                           << 10;  // the kernel reads ahead so far

struct ReadOrder {
  std::uint64_t reads = 0, sequential = 0;
  Bytes bytes{}, sequential_bytes{};  // as far as they lie in a file
  friend bool operator==(const ReadOrder&, const ReadOrder&) = default;
};

struct Sequentiality {
  std::uint64_t gap = 0;
  ReadOrder total;
  struct OfLayer {
    LayerId layer;  // of the op; kNoLayer, the last: outside of any
    ReadOrder order;
    friend bool operator==(const OfLayer&, const OfLayer&) = default;
  };
  std::vector<OfLayer> layers;
  // Steps that read something: a prompt step's tokens are read for together.
  struct OfStep {
    StepId step;
    std::uint32_t first_token = 0, n_tokens = 0;
    ReadOrder order;
    friend bool operator==(const OfStep&, const OfStep&) = default;
  };
  Page<OfStep> steps;
};

// Of the reads that pass the filter; of its tokens and times the steps that reach
// into them, whole. `page` picks rows of `steps`.
std::expected<Sequentiality, TraceError> sequentiality(const SessionIndex& index,
                                                       const TraceFilter& filter, std::uint64_t gap,
                                                       PageRange page,
                                                       const KeepGoing& keep_going = always);

}  // namespace tt
