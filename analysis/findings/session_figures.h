// The figures from which the findings of a session are decided. Gathered once, for a report and
// for REST. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/read_rates.h"
#include "analysis/aggregate/step_costs.h"
#include "analysis/aggregate/step_times.h"
#include "analysis/common/page.h"
#include "analysis/findings/model_memory.h"
#include "analysis/index/session_index.h"
#include "analysis/speculation/draft_ledger.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/token_speed.h"
#include "analysis/values/first_invalid.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/pin_plan.h"
#include "analysis/weights/reuse.h"
#include "analysis/weights/sequentiality.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The op time of one device.
struct DeviceTime {
  std::string name;
  double ns = 0;
  std::string slowest{};  // the op kind with the most time
  double slowest_ns = 0;
};

// What the tokens of a phase cost.
struct PhaseCost {
  std::uint64_t steps = 0, tokens = 0;
  double bytes_read = 0;  // bytes_per_token()
  CountedTimes times{};
};

struct SessionFigures {
  SessionInfo info;
  LossCounters losses;
  std::optional<std::uint32_t> readable_steps;  // damaged file: number of steps reported on
  std::uint32_t prompt_tokens = 0, generated_tokens = 0;
  Ns prompt_time{}, generate_time{};  // total duration of the steps of the phase: evaluation alone
  TokenSpeed speed;                   // of the whole session
  std::vector<double> token_ms;  // per generated token of a step that was not learned, in order
  std::map<Phase, PhaseCost> phase_costs;  // those with tokens
  SessionConditions conditions;
  std::uint64_t steps = 0, left_out = 0;  // left_out: not in the times and sums
  // No step ran to its end: sums, bytes and memory are of the ops that ran.
  bool only_interrupted = false;
  Breakdown by_op_kind, by_tensor;
  Breakdown by_source;         // of weights
  BreakdownRow kv, recurrent;  // sums of KV caches, and of recurrent states; `all` and `generate`
  CostsByAxis costs;           // by op kind, component and layer: they decide what is slow
  ReadRates read_rates;
  std::uint32_t threads = 0;  // of the last of these steps; 0: not recorded
  Bytes weights_read{}, weights_distinct{};
  // The part of both in the mapped file. The rest are copies in memory (repacked weights,
  // --no-mmap, devices), which no cache or pinning of the file can serve faster.
  Bytes mapped_read{}, mapped_distinct{};
  // At ascending capacities from 0 to weights_distinct; empty: no weight was read.
  std::vector<CachePoint> lru;
  // The memory that was available to the process, by its facts; nullopt: unknown.
  std::optional<Bytes> available;
  // A cache of this size for the mapped weights; empty if they fit into it.
  struct AvailableCache {
    PinPlan pins;
    CachePoint lru, belady;  // at pins.memory
  };
  AvailableCache room;
  Determinism determinism;
  // Choices of experts for generated tokens, as in RouterUse, of all routers; 0: no experts.
  std::uint64_t experts_followed = 0, experts_turned = 0;
  Prediction prediction;
  ReadOrder read_order;             // of reads of the mapped model files, with the default gap
  std::vector<DeviceTime> devices;  // most time first
  ModelMemory memory;
  std::optional<InvalidValue> invalid;  // level VERBOSE
  std::optional<DraftLedger> drafts;    // without rows; nullopt: the session has none
};

// Progress callback: called with the name of each stage, such as "replaying reads". A stage
// may take a minute.
using ProgressCallback = std::function<void(const char* what)>;
inline void no_progress(const char*) {}

std::expected<SessionFigures, TraceError> gather_session_figures(
    const SessionIndex& index, const SessionReader& reader,
    const ContinueCheck& keep_going = never_cancel, const ProgressCallback& progress = no_progress);

// Its parts, for a report, which computes the other parts beside them.
// Everything except `costs` and what gather_reuse() adds. `reads` receives the sequence of weight
// reads.
std::expected<SessionFigures, TraceError> gather_walked_figures(const SessionIndex& index,
                                                                const SessionReader& reader,
                                                                ReadSequence& reads,
                                                                const ContinueCheck& keep_going,
                                                                const ProgressCallback& progress);
// What a cache of the weights would save. The capacities are those of `lru`; none: no weight was
// read.
std::vector<Bytes> cache_capacities(const ReadSequence& reads);
Status gather_reuse(const ReadSequence& reads, SessionFigures& data,
                    const ContinueCheck& keep_going);

}  // namespace tt
