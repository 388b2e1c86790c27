#include "analysis/findings/session_figures.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/aggregate/step_shares.h"
#include "analysis/common/op_info.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/experts/turnover.h"
#include "analysis/index/walk_outlines.h"

namespace tt {

namespace {

constexpr std::uint32_t kCapacities = 20;

// Sums tokens and durations of the steps. The duration of a step is divided equally among its
// tokens. The recording slows learned steps down, so they are not among the times per token.
void gather_steps(const SessionIndex& index, SessionFigures& data) {
  constexpr std::size_t kMaxTokens = std::size_t{1} << 24;  // limit for untrusted files
  for (const IndexedStep& step : index.steps()) {
    if (step.left_out) continue;
    const Ns took = step.end - step.begin;
    if (step.phase == Phase::Generate) {
      data.generated_tokens += step.n_tokens;
      data.generate_time = data.generate_time + took;
      if (step.learned) continue;
      const std::size_t room = kMaxTokens - data.token_ms.size();
      data.token_ms.insert(data.token_ms.end(), std::min<std::size_t>(step.n_tokens, room),
                           static_cast<double>(took.v) / 1e6 / step.n_tokens);
    } else if (step.phase == Phase::Prompt) {
      data.prompt_tokens += step.n_tokens;
      data.prompt_time = data.prompt_time + took;
    }
  }
}

void gather_phase_costs(const SessionIndex& index, SessionFigures& data) {
  for (const IndexedStep& step : index.steps()) {
    if (step.left_out || step.n_tokens == 0) continue;
    PhaseCost& cost = data.phase_costs[step.phase];
    ++cost.steps;
    cost.tokens += step.n_tokens;
  }
  for (auto& [phase, cost] : data.phase_costs) {
    cost.bytes_read = bytes_per_token(index, phase).value_or(0);
    cost.times = counted_times(index, phase);
  }
}

std::expected<void, TraceError> gather_devices(const SessionIndex& index,
                                               const SessionReader& reader, SessionFigures& data) {
  std::map<std::string, std::map<std::string, double>> times;  // by device and kind of op
  std::expected<void, TraceError> done;
  StepShares shares(index, std::nullopt, StepShares::Times::Yes);
  shares.visit(window_of(index, {}), [&](const SeriesShare& share) {
    const auto graph = reader.graph(share.series.graph);
    if (!graph) {
      done = std::unexpected(graph.error());
      return;
    }
    for (std::size_t i = 0; i < (*graph)->ops.size(); ++i) {
      const Op& op = (*graph)->ops[i];
      // Signed: a damaged file may have negative durations.
      const auto ns = i < share.op_ns.size() ? static_cast<std::int64_t>(share.op_ns[i]) : 0;
      times[op.device][op_name(**graph, op)] += static_cast<double>(ns);
    }
  });
  for (const auto& [device, kinds] : times) {
    DeviceTime of{.name = device, .ns = 0, .slowest = {}, .slowest_ns = 0};
    for (const auto& [kind, ns] : kinds) {
      of.ns += ns;
      if (ns <= of.slowest_ns) continue;
      of.slowest = kind;
      of.slowest_ns = ns;
    }
    data.devices.push_back(std::move(of));
  }
  std::ranges::stable_sort(data.devices, std::greater{}, &DeviceTime::ns);
  return done;
}

// The smallest of what the facts say about memory; older sessions have only the RAM.
std::optional<Bytes> available_memory(const SessionInfo& info) {
  std::optional<Bytes> smallest;
  for (const char* fact :
       {"host.memory_available_bytes", "host.memory_limit_bytes", "host.ram_bytes"}) {
    const auto bytes = info.fact_number(fact);
    if (bytes && (!smallest || *bytes < smallest->v)) smallest = Bytes{*bytes};
  }
  return smallest;
}

std::expected<void, TraceError> gather_mapped(const ReadSequence& sequence, SessionFigures& data,
                                              const ContinueCheck& keep_going) {
  const auto is_mapped = [](const ReuseItem& item) { return item.source == Source::Disk; };
  for (const ReuseItem& item : sequence.items | std::views::filter(is_mapped)) {
    data.mapped_read += Bytes{item.reads * item.file.length};
    data.mapped_distinct += Bytes{item.file.length};
  }
  data.available = available_memory(data.info);
  if (!data.available || *data.available >= data.mapped_distinct) return {};
  const auto mapped = reads_of(sequence, is_mapped, keep_going);
  if (!mapped) return std::unexpected(mapped.error());
  const ReuseQuery query{.grain = Grain::Part, .capacities = {*data.available}};
  const auto found = reuse(*mapped, query, keep_going);
  if (!found) return std::unexpected(found.error());
  data.room = {.pins = pin_plan(*mapped, *data.available),
               .lru = found->lru.front(),
               .belady = found->belady.front()};
  return {};
}

// What one pass over the steps finds: the order of reads, and how tokens differ in it.
std::expected<ReadSequence, TraceError> gather_reads(const SessionReader& reader,
                                                     SessionFigures& data,
                                                     const ContinueCheck& keep_going) {
  const auto tokens = complete_tokens(reader, keep_going);
  if (!tokens) return std::unexpected(tokens.error());
  DeterminismTally determinism(reader);
  PatternTally pattern(reader, *tokens);
  TurnoverTally turnover(reader);
  ReadSequenceBuilder reads(reader, Grain::Part);
  const auto walked = walk_outlines(reader, kAllRows, keep_going,
                                    [&](const SessionReader::StepRow& row,
                                        StepDecoder& decoder) -> std::expected<void, TraceError> {
                                      if (auto added = determinism.add(row, decoder); !added)
                                        return added;
                                      if (auto added = pattern.add(row, decoder); !added)
                                        return added;
                                      if (data.info.n_experts > 0)
                                        if (auto added = turnover.add(row, decoder); !added)
                                          return added;
                                      return reads.add(row, decoder);
                                    });
  if (!walked) return std::unexpected(walked.error());
  data.determinism = determinism.take();
  data.prediction = pattern.take().prediction;
  data.experts_followed = turnover.result().followed;
  data.experts_turned = turnover.result().turned;
  return reads.take();
}

// How fast the steps read, and with how many threads.
Status gather_rates(const SessionIndex& index, const SessionReader& reader, SessionFigures& data) {
  data.read_rates = read_rates(index);
  if (!data.read_rates.last_step) return {};
  return reader.step(*data.read_rates.last_step).transform([&](const Step& step) {
    data.threads = step.threads;
  });
}

std::expected<Breakdown, TraceError> by(Axis axis, const SessionIndex& index,
                                        const ContinueCheck& keep_going,
                                        std::optional<TensorKind> kind = {}) {
  return breakdown(index, {.by = axis, .filter = {.kind = kind}}, keep_going);
}

// What was read and written of KV caches and of recurrent states.
std::expected<void, TraceError> gather_caches(const SessionIndex& index, const GraphTemplate& graph,
                                              SessionFigures& data,
                                              const ContinueCheck& keep_going) {
  const auto caches = by(Axis::Tensor, index, keep_going, TensorKind::Kv);
  if (!caches) return std::unexpected(caches.error());
  std::set<std::string_view> states;
  for (const Tensor& tensor : graph.tensors)
    if (is_recurrent_state(tensor)) states.insert(tensor.name);
  for (const BreakdownRow& row : caches->rows) {
    BreakdownRow& sum = states.contains(row.name) ? data.recurrent : data.kv;
    sum.all += row.all;
    sum.generate += row.generate;
  }
  return {};
}

}  // namespace

std::vector<Bytes> cache_capacities(const ReadSequence& reads) {
  std::vector<Bytes> out;
  if (reads.reads.empty()) return out;
  const std::uint64_t all = reads.distinct_bytes().v;
  for (std::uint64_t i = 0; i <= kCapacities; ++i)
    out.push_back(Bytes{all / kCapacities * i + all % kCapacities * i / kCapacities});
  return out;
}

Status gather_reuse(const ReadSequence& reads, SessionFigures& data,
                    const ContinueCheck& keep_going) {
  data.weights_read = reads.bytes();
  data.weights_distinct = reads.distinct_bytes();
  const std::vector<Bytes> capacities = cache_capacities(reads);
  if (capacities.empty()) return {};
  auto found = lru_reuse(reads, capacities, keep_going);
  if (!found) return std::unexpected(found.error());
  data.lru = std::move(found->curve);
  return gather_mapped(reads, data, keep_going);
}

std::expected<SessionFigures, TraceError> gather_session_figures(const SessionIndex& index,
                                                                 const SessionReader& reader,
                                                                 const ContinueCheck& keep_going,
                                                                 const ProgressCallback& progress) {
  ReadSequence reads;
  auto data = gather_walked_figures(index, reader, reads, keep_going, progress);
  if (!data) return data;
  progress("replaying reads");
  if (const auto replayed = gather_reuse(reads, *data, keep_going); !replayed)
    return std::unexpected(replayed.error());
  constexpr std::array kAxes = {Axis::OpKind, Axis::Component, Axis::Layer};
  auto costs = step_costs(index, kAxes, {}, keep_going);
  if (!costs) return std::unexpected(costs.error());
  data->costs = *std::move(costs);
  return data;
}

std::expected<SessionFigures, TraceError> gather_walked_figures(const SessionIndex& index,
                                                                const SessionReader& reader,
                                                                ReadSequence& reads,
                                                                const ContinueCheck& keep_going,
                                                                const ProgressCallback& progress) {
  SessionFigures data;
  data.info = index.info();
  data.left_out = index.left_out();
  data.steps = index.steps().size();
  data.only_interrupted =
      data.steps > 0 && std::ranges::all_of(index.steps(), &IndexedStep::interrupted);
  TraceError error{};
  // Stores a result; the first error is the error of all.
  const auto got = [&](auto answer, auto& place) {
    if (!answer) {
      error = answer.error();
      return false;
    }
    place = *std::move(answer);
    return true;
  };
  Sequentiality order;
  std::shared_ptr<const GraphTemplate> graph;
  const auto stop = [&]() -> std::expected<SessionFigures, TraceError> {
    return std::unexpected(error);
  };
  progress("computing totals");
  if (!got(reader.losses(), data.losses)) return stop();
  data.readable_steps = reader.readable_steps();
  if (!got(token_speed(reader), data.speed)) return stop();
  if (!got(session_conditions(reader, index.leave_out(), keep_going), data.conditions))
    return stop();
  if (!got(by(Axis::OpKind, index, keep_going), data.by_op_kind)) return stop();
  if (!got(by(Axis::Tensor, index, keep_going), data.by_tensor)) return stop();
  if (!got(by(Axis::Source, index, keep_going, TensorKind::Weight), data.by_source)) return stop();
  if (!got(sequentiality(index, {}, kDefaultGap, {.from = 0, .limit = 0}, keep_going), order))
    return stop();
  data.read_order = order.total;
  gather_steps(index, data);
  gather_phase_costs(index, data);
  if (const auto devices = gather_devices(index, reader, data); !devices)
    return std::unexpected(devices.error());
  if (auto gathered = gather_rates(index, reader, data); !gathered)
    return std::unexpected(gathered.error());
  if (!got(last_graph(index, reader), graph)) return stop();
  if (graph) {
    data.memory = model_memory(*graph, data.info);
    if (const auto caches = gather_caches(index, *graph, data, keep_going); !caches)
      return std::unexpected(caches.error());
  }
  if (!got(first_invalid_value(reader, keep_going), data.invalid)) return stop();
  // Only a program that was attached to checks drafts.
  if (!data.info.fact("attach.pid").empty()) {
    DraftLedger drafts;
    if (!got(draft_ledger(reader, {}, keep_going), drafts)) return stop();
    data.generated_tokens -=
        static_cast<std::uint32_t>(std::min<std::uint64_t>(data.generated_tokens, drafts.rejected));
    if (drafts.known > 0) data.drafts = std::move(drafts);
  }
  progress("comparing tokens");
  auto sequence = gather_reads(reader, data, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  reads = *std::move(sequence);
  return data;
}

}  // namespace tt
