// Gathers what a report tells.
#include <algorithm>
#include <set>

#include "analysis/report.h"

namespace tt {

namespace {

constexpr PageRange kAllSteps{.from = 0, .limit = kNone};
constexpr int kCapacities = 20;

// Times and tokens of the steps, and what ran their ops.
std::expected<void, TraceError> gather_steps(const SessionIndex& index, const SessionReader& reader,
                                             ReportFigures& figures) {
  std::set<TemplateId> seen;
  std::set<std::string> devices;
  for (const IndexedStep& step : index.steps()) {
    const Ns took = step.end - step.begin;
    if (step.phase == Phase::Generate) {
      figures.generated_tokens += step.n_tokens;
      figures.generate_time = figures.generate_time + took;
      figures.token_ms.push_back(static_cast<double>(took.v) / 1e6);
    } else if (step.phase == Phase::Prompt) {
      figures.prompt_tokens += step.n_tokens;
      figures.prompt_time = figures.prompt_time + took;
    }
    if (step.series == kNone || !seen.insert(index.series()[step.series].graph).second) continue;
    const auto graph = reader.graph(index.series()[step.series].graph);
    if (!graph) return std::unexpected(graph.error());
    for (const Op& op : (*graph)->ops) devices.insert(op.device);
  }
  figures.devices.assign(devices.begin(), devices.end());
  return {};
}

std::expected<void, TraceError> gather_reuse(const SessionReader& reader, ReportFigures& figures) {
  const auto sequence = weight_reads(reader, kAllSteps, Grain::Part);
  if (!sequence) return std::unexpected(sequence.error());
  figures.weights_read = sequence->bytes();
  figures.weights_distinct = sequence->distinct_bytes();
  if (sequence->reads.empty()) return {};
  std::vector<Bytes> capacities;
  for (std::uint64_t i = 0; i <= kCapacities; ++i)
    capacities.push_back(Bytes{figures.weights_distinct.v * i / kCapacities});
  figures.lru = lru_curve(*sequence, reuse_distances(*sequence), capacities);
  figures.pin = pin_curve(*sequence, capacities);
  figures.belady = belady_curve(*sequence, capacities);
  return {};
}

std::expected<Breakdown, TraceError> by(Axis axis, const SessionIndex& index,
                                        const SessionReader& reader, const KeepGoing& keep_going) {
  return breakdown(index, reader, {.by = axis}, keep_going);
}

}  // namespace

std::expected<ReportFigures, TraceError> report_figures(const std::filesystem::path& file,
                                                        const SessionIndex& index,
                                                        const SessionReader& reader,
                                                        const KeepGoing& keep_going) {
  ReportFigures figures;
  figures.info = index.info();
  TraceError error{};
  // Each answer in its place; the first that fails is the report's.
  const auto got = [&](auto answer, auto& place) {
    if (!answer) {
      error = answer.error();
      return false;
    }
    place = *std::move(answer);
    return true;
  };
  AccessPattern pattern;
  Sequentiality order;
  const auto stop = [&]() -> std::expected<ReportFigures, TraceError> {
    return std::unexpected(error);
  };
  if (!got(reader.losses(), figures.losses)) return stop();
  if (!got(by(Axis::OpKind, index, reader, keep_going), figures.by_op_kind)) return stop();
  if (!got(by(Axis::Component, index, reader, keep_going), figures.by_component)) return stop();
  if (!got(by(Axis::Layer, index, reader, keep_going), figures.by_layer)) return stop();
  if (!got(by(Axis::Tensor, index, reader, keep_going), figures.by_tensor)) return stop();
  if (!got(sequentiality(index, {}, kUsualGap, {.from = 0, .limit = 0}, keep_going), order))
    return stop();
  figures.read_order = order.total;
  if (!keep_going()) return std::unexpected(cancelled_error());
  if (!got(determinism(reader), figures.determinism)) return stop();
  if (!got(access_pattern(reader), pattern)) return stop();
  figures.prediction = pattern.prediction;
  if (const auto steps = gather_steps(index, reader, figures); !steps)
    return std::unexpected(steps.error());
  if (!keep_going()) return std::unexpected(cancelled_error());
  if (const auto reuse = gather_reuse(reader, figures); !reuse)
    return std::unexpected(reuse.error());
  if (!got(validate(file, keep_going), figures.validation)) return stop();
  return figures;
}

}  // namespace tt
