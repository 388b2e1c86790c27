// Gathers the data of a report.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/report/report.h"

namespace tt {

namespace {

// A part of the data that is computed on a thread of its own, beside the other parts.
template <class Result>
class Beside {
 public:
  // `compute` gets the check whether it shall go on. Where no thread can be created, result()
  // computes (the default policy of std::async).
  explicit Beside(std::function<std::expected<Result, TraceError>(const ContinueCheck&)> compute)
      : result_(std::async([this, compute = std::move(compute)] {
          return compute([this] { return !stopped_; });
        })) {}
  ~Beside() { stopped_ = true; }  // and the future waits for the thread
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  std::expected<Result, TraceError> result(const ContinueCheck& keep_going) {
    do {
      if (!keep_going()) return std::unexpected(cancelled_error());
    } while (result_.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout);
    return result_.get();
  }

 private:
  std::atomic<bool> stopped_ = false;
  std::future<std::expected<Result, TraceError>> result_;
};

// What the best policies would save, at the capacities of SessionFigures::lru.
struct PolicyCurves {
  std::vector<CachePoint> pin, belady;
};

std::expected<PolicyCurves, TraceError> gather_policies(const ReadSequence& reads,
                                                        const ContinueCheck& keep_going) {
  const std::vector<Bytes> capacities = cache_capacities(reads);
  if (capacities.empty()) return PolicyCurves{};
  auto pin = pin_curve(reads, capacities, keep_going);
  if (!pin) return std::unexpected(pin.error());
  auto belady = belady_curve(reads, capacities, keep_going);
  if (!belady) return std::unexpected(belady.error());
  return PolicyCurves{*std::move(pin), *std::move(belady)};
}

// Of the phase that the report shows last: generation, if the session generated.
std::expected<std::vector<RouterUse>, TraceError> gather_experts(const std::filesystem::path& file,
                                                                 const SessionIndex& index,
                                                                 std::span<const PhasePart> phases,
                                                                 bool is_truncated,
                                                                 const ContinueCheck& keep_going) {
  if (index.info().n_experts == 0 || phases.empty()) return std::vector<RouterUse>{};
  const auto sums = phases.back().sums;
  const std::optional<Phase> phase = sums == &BreakdownRow::generate
                                         ? std::optional(Phase::Generate)
                                     : sums == &BreakdownRow::prompt ? std::optional(Phase::Prompt)
                                                                     : std::nullopt;
  auto reader = SessionReader::open(file);  // of this thread
  if (!reader) return std::unexpected(reader.error());
  if (is_truncated) {
    const auto end = reader->truncate_at_damage(keep_going);
    if (!end) return std::unexpected(end.error());
  }
  return expert_use(*reader, phase, keep_going);
}

struct PhaseFigures {
  std::vector<PhasePart> phases;
  std::vector<RouterUse> experts;
  CostsByAxis costs;  // SessionFigures::costs
};

std::expected<PhaseFigures, TraceError> gather_phases(const std::filesystem::path& file,
                                                      const SessionIndex& index, bool is_truncated,
                                                      const ContinueCheck& keep_going) {
  auto phases = phase_parts(index, keep_going);
  if (!phases) return std::unexpected(phases.error());
  auto experts = gather_experts(file, index, *phases, is_truncated, keep_going);
  if (!experts) return std::unexpected(experts.error());
  const auto ranked = std::ranges::find(*phases, ranked_phase(index, {}), &PhasePart::phase);
  std::expected<CostsByAxis, TraceError> costs;
  if (ranked != phases->end()) {
    costs = ranked->costs;
  } else if (costs = step_costs(index, kComparedAxes, {}, keep_going); !costs) {
    return std::unexpected(costs.error());
  }
  return PhaseFigures{*std::move(phases), *std::move(experts), *std::move(costs)};
}

}  // namespace

std::expected<std::vector<PhasePart>, TraceError> phase_parts(const SessionIndex& index,
                                                              const ContinueCheck& keep_going) {
  PhasePart prompt{.name = "prompt", .phase = Phase::Prompt, .sums = &BreakdownRow::prompt};
  PhasePart generation{
      .name = "generation", .phase = Phase::Generate, .sums = &BreakdownRow::generate};
  PhasePart all{.name = "all steps", .sums = &BreakdownRow::all};
  for (const IndexedStep& step : index.steps()) {
    if (step.left_out) continue;
    PhasePart& part = step.phase == Phase::Prompt     ? prompt
                      : step.phase == Phase::Generate ? generation
                                                      : all;
    part.phase = step.phase;
    ++part.steps;
    part.tokens += step.n_tokens;
    part.time = part.time + (step.end - step.begin);
  }
  std::vector<PhasePart> parts;
  for (const PhasePart* part : {&prompt, &generation})
    if (part->steps > 0) parts.push_back(*part);
  if (parts.empty() && all.steps > 0) parts.push_back(all);
  for (PhasePart& part : parts) {
    auto costs = step_costs(index, kComparedAxes, {.phase = part.phase}, keep_going);
    if (!costs) return std::unexpected(costs.error());
    part.costs = *std::move(costs);
  }
  return parts;
}

std::expected<ReportComparison, TraceError> gather_report_comparison(
    const ComparedSession& session, const ComparedSession& other, const ContinueCheck& keep_going) {
  auto comparison = compare(session, other, {.tokens = {.from = 0, .limit = 0}}, keep_going);
  if (!comparison) return std::unexpected(comparison.error());
  auto phases = phase_parts(other.index, keep_going);
  if (!phases) return std::unexpected(phases.error());
  return ReportComparison{.other = other.index.info(),
                          .comparison = *std::move(comparison),
                          .phases = *std::move(phases)};
}

std::expected<ReportData, TraceError> gather_report_data(const std::filesystem::path& file,
                                                         const SessionIndex& index,
                                                         const SessionReader& reader,
                                                         const ContinueCheck& keep_going,
                                                         const ProgressCallback& progress) {
  // Each of them takes about as long as what is computed here meanwhile.
  Beside<Validation> validating([&](const ContinueCheck& check) { return validate(file, check); });
  const bool is_truncated = reader.readable_steps().has_value();
  Beside<PhaseFigures> dividing(
      [&](const ContinueCheck& check) { return gather_phases(file, index, is_truncated, check); });
  ReadSequence reads;
  auto figures = gather_walked_figures(index, reader, reads, keep_going, progress);
  if (!figures) return std::unexpected(figures.error());
  ReportData data{*std::move(figures), {}, {}, {}, {}, {}};
  progress("replaying reads");
  Beside<PolicyCurves> replaying(
      [&](const ContinueCheck& check) { return gather_policies(reads, check); });
  if (const auto found = gather_reuse(reads, data, keep_going); !found)
    return std::unexpected(found.error());
  auto policies = replaying.result(keep_going);
  if (!policies) return std::unexpected(policies.error());
  data.pin = std::move(policies->pin);
  data.belady = std::move(policies->belady);
  progress("validating");
  auto phases = dividing.result(keep_going);
  if (!phases) return std::unexpected(phases.error());
  data.phases = std::move(phases->phases);
  data.experts = std::move(phases->experts);
  data.costs = std::move(phases->costs);
  auto validation = validating.result(keep_going);
  if (!validation) return std::unexpected(validation.error());
  data.validation = *std::move(validation);
  return data;
}

}  // namespace tt
