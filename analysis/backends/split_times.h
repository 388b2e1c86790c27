// Where the time of graphs went that run on several backends: the time of each backend, and what
// was copied between them. From the splits that tt attach records (docs/attach.md). Pure functions,
// any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/common/verdict.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The splits of one backend in the steps of one phase.
struct BackendTime {
  Phase phase = Phase::Other;
  std::string backend;
  std::uint64_t steps = 0, splits = 0, ops = 0;
  // From the begin of the call to the first wait for the backend that returned; without such a
  // wait, to the end of the call.
  Ns time{};
  std::uint64_t not_waited = 0;  // splits without such a wait: their time may be longer
  friend bool operator==(const BackendTime&, const BackendTime&) = default;
};

// What was copied from one backend to another in the steps of one phase.
struct BackendTransfer {
  Phase phase = Phase::Other;
  std::string from, to;  // from "": not known
  std::uint64_t copies = 0;
  Bytes bytes{};
  Ns time{}, wait{};             // without `wait`: for the end of what uses the tensor
  std::uint64_t not_waited = 0;  // copies that a device makes later
  friend bool operator==(const BackendTransfer&, const BackendTransfer&) = default;
};

struct SplitTimes {
  std::uint64_t total = 0;                 // steps with splits; all figures are of these
  Ns time{};                               // of the steps
  std::uint64_t disturbed = 0;             // of the steps; their times are in all sums
  std::optional<Verdict> verdict{};        // of the steps, the disturbed ones if there are any
  std::vector<BackendTime> backends;       // by phase, then the longest first
  std::vector<BackendTransfer> transfers;  // by phase, then the most bytes first
  friend bool operator==(const SplitTimes&, const SplitTimes&) = default;
};

std::expected<SplitTimes, TraceError> split_times(const SessionReader& reader,
                                                  const ContinueCheck& keep_going = never_cancel);

Fields<SplitTimes> fields_of(const SplitTimes*);

// For a session without splits.
inline constexpr const char* kNoSplits =
    "The session has no splits: its graphs ran on one backend that reports its ops, or the times "
    "of each op were recorded instead (tt attach --exact, and all sessions of tt record).";

}  // namespace tt
