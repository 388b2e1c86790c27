// What a generated token of a recorded session needs from the model files: the input of the
// planner without a running model.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <vector>

#include "tracer/format/file/session_reader.h"
#include "tracer/memory/experts/expert_cache.h"
#include "tracer/memory/plan/fault_replay.h"
#include "tracer/memory/plan/weight_order.h"

namespace tt {

struct TokenDemand {
  // Read whole, distinct, in the order of their first use. The addresses are not those of the
  // recorded process, but have the same place in their pages; weights that were repacked or copied
  // are as if they had been mapped.
  std::vector<WeightRange> weights;
  std::uint64_t expert_bytes = 0;            // of all experts
  std::uint64_t expert_bytes_per_token = 0;  // of those that a token uses; mean, as counted
  std::uint64_t expert_slice_bytes = 0;      // of one tensor; mean
  // The experts that the last steps used, per layer: at most FaultReplay::kMaxTokens of them. The
  // second half is counted, here and in the replay, so that what they read can be compared.
  std::vector<ExpertCache::Layer> layers;
  std::vector<std::vector<std::vector<std::uint32_t>>> routed;  // [step][layer], ascending
  FaultReplay fault_replay{WeightOrder{}};                      // of the same steps
  // compute_time() of its ops, of steps that nothing disturbed. 0: not recorded, or there are none.
  double compute_seconds = 0;
  // Of a token that reads nothing: longer, because threads wait for each other between ops. The
  // first quartile of such steps; without any, compute_seconds.
  double unread_seconds = 0;

  // Measured: medians over the steps that generate one token, without the first `skip` ones.
  std::uint32_t steps = 0;
  std::uint32_t disturbed_steps = 0;  // of all that generate one token, as learned ones
  double seconds = 0;
  bool disk_recorded = false;    // else bytes and faults are unknown
  double bytes = 0, faults = 0;  // read from the disk, major page faults

  // The last of the passes with the most tokens of a prompt that nothing disturbed.
  struct Prompt {
    std::uint32_t tokens = 0;  // 0: there is none
    double seconds = 0;
    double bytes = 0;  // read from the disk; 0 also if that is unknown
  } prompt;
};

// Of the graph that most steps of phase GENERATE have. Empty weights and experts: no accesses
// were recorded. `is_disturbed`: other programs or a limit made the step longer, so its times are
// not those of computing; nor are those of the first generated step and of learned ones.
// `keep_going`: false cancels.
std::expected<TokenDemand, TraceError> token_demand(
    const SessionReader& reader, std::uint32_t skip,
    const std::function<bool(const Step&)>& is_disturbed,
    const std::function<bool()>& keep_going = {});

// Bytes per token that no cache of `room` bytes for all weights can be below, even one that knows
// the future and begins with the best content: optimal replacement of the counted tokens, byte by
// byte.
double least_bytes_per_token(const FaultReplay& tokens, std::uint64_t room);

// Share of the bytes of used experts that a cache of `room` bytes has, replayed on the steps: the
// first half fills it, the second one counts. Without routed experts 0.
double expert_hit_rate(const TokenDemand& demand, std::uint64_t room);
// The same if each expert were as likely as any other: nothing to gain by choosing.
double uniform_hit_rate(const TokenDemand& demand, std::uint64_t room);

}  // namespace tt
