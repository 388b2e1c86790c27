#include "api/json/analysis/conditions_json.h"

namespace tt {

namespace {

Json share_json(double part, double of) { return of > 0 ? Json(100 * part / of) : Json(); }

Json disk_json(const std::optional<DiskUse>& disk) {
  if (!disk) return {};
  return {{"read_bytes", disk->read},
          {"mapped_bytes", disk->mapped},
          {"reread_factor", optional_json(disk->reread_factor())},
          {"major_faults", disk->faults},
          {"bytes_per_fault", optional_json(disk->bytes_per_fault())}};
}

Json spent_json(const SpentTime& spent) {
  if (spent.steps == 0) return {};
  return {{"steps", spent.steps},         {"graphs_built", spent.graphs_built},
          {"queue_ns", spent.queue_ns},   {"total_ns", spent.total_ns},
          {"sample_ns", spent.sample_ns}, {"detokenize_ns", spent.detokenize_ns},
          {"build_ns", spent.build_ns},   {"evaluate_ns", spent.evaluate_ns},
          {"other_ns", spent.other_ns()}};
}

}  // namespace

Json to_json(const Spread& spread) {
  return {{"p5", spread.p5.v}, {"median", spread.median.v}, {"p95", spread.p95.v}};
}

Json to_json(const PhaseTimes& phase) {
  Json json = {{"steps", phase.steps},
               {"tokens", phase.tokens},
               {"duration_ns", phase.time.v},
               {"normal_steps", phase.normal},
               {"normal_tokens", phase.normal_tokens},
               {"normal_ns", phase.normal_time.v},
               {"learned_steps", phase.learned},
               {"disturbed_steps", phase.disturbed},
               {"left_out_steps", phase.left_out},
               {"step_ns", Json()}};
  if (phase.spread) json["step_ns"] = to_json(*phase.spread);
  return json;
}

Json to_json(const SessionConditions& conditions) {
  Json steps = Json::object(), phases = Json::object();
  for (int i = 0; i <= static_cast<int>(Verdict::Disk); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    const auto found = conditions.steps.find(verdict);
    steps[to_text(verdict)] = found == conditions.steps.end() ? 0 : found->second;
  }
  steps["unknown"] = conditions.unknown;
  for (const auto& [phase, times] : conditions.phases) phases[to_text(phase)] = to_json(times);
  const ThreadTime& time = conditions.time;
  return {{"verdict", conditions.verdict ? Json(to_text(*conditions.verdict)) : Json()},
          {"text", conditions.text},
          {"steps", std::move(steps)},
          {"cpu_percent", share_json(time.cpu_ns, time.total_ns)},
          {"cpu_wait_percent", share_json(time.wait_ns, time.total_ns)},
          {"throttled_percent", share_json(time.throttled_ns, time.total_ns)},
          {"blocked_percent", share_json(time.blocked_ns, time.total_ns)},
          {"disk", disk_json(conditions.disk)},
          {"spent", spent_json(conditions.spent)},
          {"phases", std::move(phases)}};
}

}  // namespace tt
