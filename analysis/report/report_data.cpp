// Gathers the data of a report.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <ranges>
#include <utility>

#include "analysis/aggregate/step_shares.h"
#include "analysis/common/op_info.h"
#include "analysis/experts/turnover.h"
#include "analysis/index/walk_outlines.h"
#include "analysis/report/report.h"

namespace tt {

namespace {

constexpr std::uint32_t kCapacities = 20;

// Sums tokens and durations of the steps. The duration of a step is divided equally among its
// tokens. The recording slows learned steps down, so they are not among the times per token.
void gather_steps(const SessionIndex& index, ReportData& data) {
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

std::expected<void, TraceError> gather_devices(const SessionIndex& index,
                                               const SessionReader& reader, ReportData& data) {
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

std::expected<void, TraceError> gather_mapped(const ReadSequence& sequence, ReportData& data,
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
std::expected<ReadSequence, TraceError> gather_reads(const SessionReader& reader, ReportData& data,
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

std::expected<void, TraceError> gather_reuse(const ReadSequence& sequence, ReportData& data,
                                             const ContinueCheck& keep_going) {
  const std::uint64_t all = sequence.distinct_bytes().v;
  ReuseQuery query{.grain = Grain::Part};
  for (std::uint64_t i = 0; i <= kCapacities; ++i)
    query.capacities.push_back(Bytes{all / kCapacities * i + all % kCapacities * i / kCapacities});
  auto found = reuse(sequence, query, keep_going);
  if (!found) return std::unexpected(found.error());
  data.weights_read = found->bytes;
  data.weights_distinct = found->distinct;
  if (found->reads == 0) return {};
  data.lru = std::move(found->lru);
  data.pin = std::move(found->pin);
  data.belady = std::move(found->belady);
  return gather_mapped(sequence, data, keep_going);
}

// Validates on a thread of its own: this takes as long as all other figures together.
class Validating {
 public:
  explicit Validating(const std::filesystem::path& file)
      : validation_(
            std::async([this, file] { return validate(file, [this] { return !stopped_; }); })) {}
  ~Validating() { stopped_ = true; }  // and the future waits for the thread
  Validating(const Validating&) = delete;
  Validating& operator=(const Validating&) = delete;

  std::expected<Validation, TraceError> result(const ContinueCheck& keep_going) {
    do {
      if (!keep_going()) return std::unexpected(cancelled_error());
    } while (validation_.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout);
    return validation_.get();
  }

 private:
  std::atomic<bool> stopped_ = false;
  std::future<std::expected<Validation, TraceError>> validation_;
};

std::expected<Breakdown, TraceError> by(Axis axis, const SessionIndex& index,
                                        const ContinueCheck& keep_going) {
  return breakdown(index, {.by = axis}, keep_going);
}

}  // namespace

std::expected<ReportData, TraceError> gather_report_data(const std::filesystem::path& file,
                                                         const SessionIndex& index,
                                                         const SessionReader& reader,
                                                         const ContinueCheck& keep_going,
                                                         const ProgressCallback& progress) {
  Validating validating(file);
  ReportData data;
  data.info = index.info();
  data.left_out = index.left_out();
  data.steps = index.steps().size();
  TraceError error{};
  // Stores a result; the first error is the error of the report.
  const auto got = [&](auto answer, auto& place) {
    if (!answer) {
      error = answer.error();
      return false;
    }
    place = *std::move(answer);
    return true;
  };
  Sequentiality order;
  const auto stop = [&]() -> std::expected<ReportData, TraceError> {
    return std::unexpected(error);
  };
  progress("computing totals");
  if (!got(reader.losses(), data.losses)) return stop();
  data.readable_steps = reader.readable_steps();
  if (!got(token_speed(reader), data.speed)) return stop();
  if (!got(session_conditions(reader, index.leave_out(), keep_going), data.conditions))
    return stop();
  if (!got(by(Axis::OpKind, index, keep_going), data.by_op_kind)) return stop();
  if (!got(by(Axis::Component, index, keep_going), data.by_component)) return stop();
  if (!got(by(Axis::Layer, index, keep_going), data.by_layer)) return stop();
  if (!got(by(Axis::Tensor, index, keep_going), data.by_tensor)) return stop();
  if (!got(sequentiality(index, {}, kDefaultGap, {.from = 0, .limit = 0}, keep_going), order))
    return stop();
  data.read_order = order.total;
  gather_steps(index, data);
  if (const auto devices = gather_devices(index, reader, data); !devices)
    return std::unexpected(devices.error());
  progress("comparing tokens");
  const auto reads = gather_reads(reader, data, keep_going);
  if (!reads) return std::unexpected(reads.error());
  progress("replaying reads");
  if (const auto replayed = gather_reuse(*reads, data, keep_going); !replayed)
    return std::unexpected(replayed.error());
  progress("validating");
  if (!got(validating.result(keep_going), data.validation)) return stop();
  return data;
}

}  // namespace tt
