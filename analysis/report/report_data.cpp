// Gathers the data of a report.
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "analysis/report/report.h"

namespace tt {

namespace {

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

// What the best policies would save, at the capacities of data.lru.
std::expected<void, TraceError> gather_policies(const ReadSequence& sequence, ReportData& data,
                                                const ContinueCheck& keep_going) {
  std::vector<Bytes> capacities;
  for (const CachePoint& point : data.lru) capacities.push_back(point.capacity);
  if (capacities.empty()) return {};
  auto pin = pin_curve(sequence, capacities, keep_going);
  if (!pin) return std::unexpected(pin.error());
  auto belady = belady_curve(sequence, capacities, keep_going);
  if (!belady) return std::unexpected(belady.error());
  data.pin = *std::move(pin);
  data.belady = *std::move(belady);
  return {};
}

// Of the phase that the report shows last: generation, if the session generated.
std::expected<void, TraceError> gather_experts(const SessionReader& reader, ReportData& data,
                                               const ContinueCheck& keep_going) {
  if (data.info.n_experts == 0 || data.phases.empty()) return {};
  const auto sums = data.phases.back().sums;
  const std::optional<Phase> phase = sums == &BreakdownRow::generate
                                         ? std::optional(Phase::Generate)
                                     : sums == &BreakdownRow::prompt ? std::optional(Phase::Prompt)
                                                                     : std::nullopt;
  auto use = expert_use(reader, phase, keep_going);
  if (!use) return std::unexpected(use.error());
  data.experts = *std::move(use);
  return {};
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
    for (const Axis by : kComparedAxes) {
      auto costs = step_costs(index, by, {.phase = part.phase}, keep_going);
      if (!costs) return std::unexpected(costs.error());
      part.costs[by] = *std::move(costs);
    }
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
  Validating validating(file);
  ReadSequence reads;
  auto figures = gather_session_figures(index, reader, keep_going, progress, &reads);
  if (!figures) return std::unexpected(figures.error());
  ReportData data{*std::move(figures), {}, {}, {}, {}, {}};
  auto phases = phase_parts(index, keep_going);
  if (!phases) return std::unexpected(phases.error());
  data.phases = *std::move(phases);
  if (const auto found = gather_experts(reader, data, keep_going); !found)
    return std::unexpected(found.error());
  if (const auto found = gather_policies(reads, data, keep_going); !found)
    return std::unexpected(found.error());
  progress("validating");
  auto validation = validating.result(keep_going);
  if (!validation) return std::unexpected(validation.error());
  data.validation = *std::move(validation);
  return data;
}

}  // namespace tt
