// How good the times of a session are: the verdict on the machine, and the spread of step times.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/disk_use.h"
#include "analysis/common/page.h"
#include "analysis/common/spread.h"
#include "analysis/common/verdict.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Steps of one phase. Normal steps are those whose duration is that of the model: not learned
// (the recording slowed them down), not dropped (such a step can contain several evaluations), not
// aborted; with `clean`, also without another verdict than clean.
struct PhaseTimes {
  std::uint32_t steps = 0, tokens = 0;  // all steps
  Ns time{};                            // of all steps
  std::uint32_t normal = 0, learned = 0;
  std::uint32_t disturbed = 0;  // verdict known and not clean
  std::uint32_t left_out = 0;   // normal but for their verdict, with `clean`
  Ns normal_time{};
  std::uint32_t normal_tokens = 0;
  std::optional<Spread> spread;  // of the normal steps' durations
  friend bool operator==(const PhaseTimes&, const PhaseTimes&) = default;
};

// What the time of the steps that have all of these values was spent on.
struct SpentTime {
  std::uint32_t steps = 0;
  std::uint64_t graphs_built = 0;
  std::uint64_t queue_ns = 0;  // before the first step; not a part of `total_ns`
  std::uint64_t total_ns = 0;  // from the start of the session to the end of the last step
  std::uint64_t sample_ns = 0, detokenize_ns = 0, build_ns = 0, evaluate_ns = 0;
  std::uint64_t other_ns() const;  // recording, passing tokens on
  void add(const StepConditions& step);
  friend bool operator==(const SpentTime&, const SpentTime&) = default;
};

struct SessionConditions {
  std::optional<Verdict> verdict;          // of the whole session; nullopt: not recorded
  ThreadTime time;                         // of the steps that were not learned, if there are any
  std::map<Verdict, std::uint32_t> steps;  // by their own verdict
  std::uint32_t unknown = 0;               // steps without conditions
  std::map<Phase, PhaseTimes> phases;
  // What the process read during the steps; nullopt: nothing, or it was not recorded.
  std::optional<DiskUse> disk;
  SpentTime spent;   // no steps: not recorded
  std::string text;  // the verdict with evidence and advice, or why there is none; empty: no steps
  friend bool operator==(const SessionConditions&, const SessionConditions&) = default;
};

// Adds up steps in any order; without `disk`.
class ConditionTally {
 public:
  explicit ConditionTally(LeaveOut leave_out = LeaveOut::Nothing) : leave_out_(leave_out) {}
  void add(const Step& step);  // needs no ops or slots
  SessionConditions result(const SessionInfo& info) &&;

 private:
  LeaveOut leave_out_;
  SessionConditions sums_;
  ThreadTime learned_;
  std::map<Phase, std::vector<Ns>> durations_;
};

// Reads all steps; their accesses only if they read from disks.
std::expected<SessionConditions, TraceError> session_conditions(
    const SessionReader& reader, LeaveOut leave_out = LeaveOut::Nothing,
    const ContinueCheck& keep_going = never_cancel);

Fields<SessionConditions> fields_of(const SessionConditions*);

}  // namespace tt
