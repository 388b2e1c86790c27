// One step as a row: its time and bytes, in total and per layer. Used by the token x layer
// heat map and the step list.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/common/step_facts.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct StepSummary : StepFacts {
  std::uint64_t ops_timed = 0;  // ops with a time
  std::uint64_t accesses = 0;   // of all executed ops
  Bytes read{}, written{};
  Bytes mapped{};  // of mapped model files that were read, each byte counted once
  // One entry per layer 0..n_layers-1, then one for ops outside of layers and for layer
  // numbers >= n_layers.
  std::vector<Ns> layer_ns;
  std::vector<Bytes> layer_bytes;  // read plus written
  friend bool operator==(const StepSummary&, const StepSummary&) = default;
};

// `graph` is null for a step without a template; then only the step's own attributes are
// set. `accesses` must be accesses_of(*graph).
StepSummary step_summary(const GraphTemplate* graph, std::span<const Access> accesses,
                         const Step& step, std::uint32_t n_layers);

// The steps `range` of a session, in order.
std::expected<Page<StepSummary>, TraceError> step_summaries(
    const SessionReader& reader, PageRange range, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
