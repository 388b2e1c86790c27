// What a disk read of the model files while a session was recorded, from a recording of the disk's
// requests (blkparse), beside what the session itself recorded: page faults and bytes read.
//
// The clock of blkparse begins with its first event. The time of the session at that moment is
// given, or found from the page faults: a fault ends when the request that reads its page has been
// completed, so the right offset is the one that most faults agree on.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/disk_use.h"
#include "analysis/common/page.h"
#include "analysis/disk/blkparse.h"
#include "analysis/disk/file_extents.h"
#include "analysis/weights/sequentiality.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct DiskQuery {
  std::optional<std::int64_t>
      clock_offset_ns{};  // session time of the first event; else from faults
};

// Requests with at least one byte of a model file; the bytes are those of model files. A request is
// sequential if it begins 0 to kDefaultGap bytes after the end of the previous one, in the same
// file.
using DiskTally = ReadOrder;

struct DiskReads {
  // By page faults: `faults` were compared, of which `agreeing` have a request that was completed
  // within a millisecond. Unknown: the figures are of the whole recording, and there are no steps.
  enum class Clock : std::uint8_t { Unknown, Given, Faults };
  Clock clock = Clock::Unknown;
  std::int64_t clock_offset_ns = 0;
  std::uint64_t faults_compared = 0, faults_agreeing = 0;

  // During the session, or, with an unknown clock, in the whole recording.
  DiskTally total;
  Bytes distinct{};                 // bytes of model files that were read at least once
  Bytes readahead{};                // read by requests for readahead
  Bytes unused{};                   // of `distinct`, bytes that no recorded op accessed
  Bytes other{};                    // read by the disk, of other files
  std::uint64_t reads_outside = 0;  // of model files, before the first step or after the last
  std::optional<std::int64_t> latency_ns{};  // median, from issue to completion

  // What the session recorded.
  Bytes used{};              // bytes of mapped model files that the ops accessed, each counted once
  std::uint64_t faults = 0;  // major page faults
  std::optional<std::uint64_t> disk_read_bytes{};  // of the process
  // Page faults whose page was read by a request since the begin of the step before.
  std::uint64_t faults_explained = 0, faults_with_place = 0;
  // With what the disk says.
  DiskUse use() const { return {.read = total.bytes.v, .faults = faults, .mapped = used.v}; }

  struct OfTensor {
    std::string tensor;
    FileRange file;
    LayerId layer = kNoLayer;
    std::uint64_t reads = 0;  // requests with a byte of it
    Bytes bytes{}, distinct{};
    std::uint64_t faults = 0;
    friend bool operator==(const OfTensor&, const OfTensor&) = default;
  };
  std::vector<OfTensor> tensors;  // with reads or faults; most bytes first
  Bytes outside_tensors{};        // header and padding of the files

  struct OfStep {
    StepId step;
    Phase phase = Phase::Other;
    DiskTally reads;  // issued between the end of the previous step and the end of this one
    Bytes used{};
    std::uint64_t faults = 0;
    std::optional<std::uint64_t> disk_read_bytes{};
    friend bool operator==(const OfStep&, const OfStep&) = default;
  };
  std::vector<OfStep> steps;  // all steps
};

// `reads`: of the disk with the model files, by time.
std::expected<DiskReads, TraceError> disk_reads(const SessionReader& reader,
                                                const std::vector<DiskRead>& reads,
                                                const ExtentMap& extents, const DiskQuery& query,
                                                const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
