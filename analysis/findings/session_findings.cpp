#include "analysis/findings/session_findings.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/common/machine_bounds.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/tables/session_overview.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

using enum FigureUnit;

double number(Bytes bytes) { return static_cast<double>(bytes.v); }
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

const BreakdownRow* row_of(const Breakdown& breakdown, std::string_view name) {
  const auto row = std::ranges::find(breakdown.rows, name, &BreakdownRow::name);
  return row == breakdown.rows.end() ? nullptr : &*row;
}

// What is examined: generated tokens, or all steps of a session that generated none.
bool has_generated(const SessionFigures& f) { return f.generated_tokens > 0; }
const TraceSums& examined(const BreakdownRow& row, bool generated) {
  return generated ? row.generate : row.all;
}
FindingBasis basis_of(const SessionFigures& f) {
  if (!has_generated(f)) return {.phase = std::nullopt, .steps = f.steps - f.left_out};
  const auto of = f.conditions.phases.find(Phase::Generate);
  const std::uint64_t steps = of == f.conditions.phases.end() ? 0 : of->second.steps;
  return {.phase = Phase::Generate, .steps = steps};
}
FindingBasis all_steps(const SessionFigures& f) {
  return {.phase = std::nullopt, .steps = f.steps - f.left_out, .clean_only = f.left_out > 0};
}

// Steps from which on the interval of their median says something.
constexpr std::size_t kLeastRates = 8;

bool is_contended_or_throttled(const SessionFigures& f) {
  return f.conditions.verdict == Verdict::Contended || f.conditions.verdict == Verdict::Throttled;
}
bool is_disturbed(const SessionFigures& f) { return is_disturbed(f.conditions.verdict); }
bool is_scarce(const SessionFigures& f) { return f.available && *f.available < f.mapped_distinct; }

// The memory budget that keeps a part of the weights on the disk; nullopt: none does. 0: its size
// is not known.
std::optional<double> active_budget(const SessionInfo& info) {
  const std::string_view set = info.fact("context.memory_budget"),
                         state = info.fact("memory.state");
  if (set.empty() || set == "off" || state == "fits" || state == "unavailable") return std::nullopt;
  const auto used = info.fact_number("memory.budget");
  return static_cast<double>(used ? *used : info.fact_number("context.memory_budget").value_or(0));
}

// --- recording and machine ------------------------------------------------------

void find_damage(const SessionFigures& f, std::vector<Finding>& out) {
  if (!f.readable_steps) return;
  Finding found{.topic = FindingTopic::Recording,
                .kind = FindingKind::DamagedFile,
                .role = FindingRole::Warning,
                .basis = all_steps(f)};
  found.figures.add("readable_steps", Count, *f.readable_steps);
  out.push_back(std::move(found));
}

// Why tokens of the prompt were evaluated again that an earlier request had evaluated.
void find_repeated_prompt(const SessionFigures& f, std::vector<Finding>& out) {
  const std::string_view end = f.info.fact("result.reuse_end");
  if (end.empty()) return;
  const auto number = [&](const char* name) {
    return static_cast<double>(f.info.fact_number(name).value_or(0));
  };
  const double prompt = number("result.prompt_tokens"), common = number("result.common_tokens"),
               reused = number("result.reused_tokens");
  // Of the common ones, those that the memory did not keep.
  const double again =
      std::max(0.0, std::min(common, prompt) - reused) + number("result.repeated_tokens");
  // The prompts have little in common, or the figures contradict each other.
  if (again == 0 || prompt <= reused) return;
  Finding found{.topic = FindingTopic::Recording,
                .kind = FindingKind::RepeatedPrompt,
                .role = FindingRole::Warning};
  found.figures.add("reason", std::string(end))
      .add("from_session", std::string(f.info.fact("result.cached_from")))
      .add("prompt_tokens", Count, prompt)
      .add("common_tokens", Count, common)
      .add("repeated_tokens", Count, again)
      .add("text_before", std::string(f.info.fact("result.text_before")))
      .add("text_prompt", std::string(f.info.fact("result.text_prompt")))
      .add("text_cached", std::string(f.info.fact("result.text_cached")))
      .add("message", FigureUnit::Count, f.info.fact_number("result.differs_in_number"))
      .add("message_begin", std::string(f.info.fact("result.differs_in")))
      .add("repeated_time", Duration, number("result.prompt_ns") * again / (prompt - reused));
  out.push_back(std::move(found));
}

void find_reused_prefix(const SessionFigures& f, std::vector<Finding>& out) {
  const auto reused = f.info.fact_number("result.reused_tokens").value_or(0);
  if (reused == 0) return;
  Finding found{.topic = FindingTopic::Recording, .kind = FindingKind::ReusedPrefix};
  found.figures.add("reused_tokens", Count, static_cast<double>(reused))
      .add("prompt_tokens", Count,
           static_cast<double>(f.info.fact_number("result.prompt_tokens").value_or(reused)))
      .add("from_session", std::string(f.info.fact("result.reused_from")));
  out.push_back(std::move(found));
}

void find_warning(const SessionFigures& f, std::vector<Finding>& out) {
  const std::string_view warning = f.info.fact("load.warning");
  if (warning.empty()) return;
  Finding found{.topic = FindingTopic::Recording,
                .kind = FindingKind::LoadWarning,
                .role = FindingRole::Warning};
  found.figures.add("warning", std::string(warning));
  out.push_back(std::move(found));
}

// Each change that was made at a stop is a fact: altered.0, altered.1...
void find_changes(const SessionFigures& f, std::vector<Finding>& out) {
  std::uint64_t count = 0;
  while (!f.info.fact(std::format("altered.{}", count)).empty()) ++count;
  if (count == 0) return;
  Finding found{.topic = FindingTopic::Recording,
                .kind = FindingKind::AlteredValues,
                .role = FindingRole::Warning};
  found.figures.add("changes", Count, static_cast<double>(count))
      .add("first", std::string(f.info.fact("altered.0")));
  out.push_back(std::move(found));
}

void find_invalid(const SessionFigures& f, std::vector<Finding>& out) {
  Finding found{.topic = FindingTopic::Values,
                .kind = FindingKind::NotANumber,
                .role = FindingRole::Warning,
                .basis = all_steps(f)};
  if (!f.invalid) {
    // The run failed because of it, but no statistics say where it was.
    if (f.info.fact("result.invalid_logits").empty()) return;
    found.figures.add("level", to_text(f.info.level));
    return out.push_back(std::move(found));
  }
  const InvalidValue& at = *f.invalid;
  found.figures.add("step", Count, at.step.v)
      .add("first_op", Count, at.first.v)
      .add("op", Count, at.op.v)
      .add("operation_type", at.op_name)
      .add("output", at.tensor);
  if (at.layer != kNoLayer) found.figures.add("layer", Count, at.layer.v);
  found.figures.add("nan", Count, static_cast<double>(at.nan))
      .add("inf", Count, static_cast<double>(at.inf))
      .add("values", Count, static_cast<double>(at.values));
  if (!at.weights.empty()) found.figures.add("weights", join(at.weights));
  out.push_back(std::move(found));
}

void find_conditions(const SessionFigures& f, std::vector<Finding>& out) {
  const SessionConditions& conditions = f.conditions;
  if (!conditions.text.empty()) {
    Finding found{.topic = FindingTopic::Machine,
                  .kind = FindingKind::MachineVerdict,
                  .role = is_disturbed(f) ? FindingRole::Warning : FindingRole::Main,
                  .basis = {.phase = std::nullopt, .steps = f.steps}};
    found.figures.add("verdict", conditions.verdict ? to_text(*conditions.verdict) : "unknown")
        .add("text", conditions.text);
    for (const auto& [verdict, steps] : conditions.steps)
      found.figures.add(std::string("steps_") + to_text(verdict), Count, steps);
    found.figures.add("steps_unknown", Count, conditions.unknown);
    if (conditions.time.total_ns > 0)
      found.figures.add("blocked", Share, conditions.time.blocked_ns / conditions.time.total_ns);
    if (conditions.verdict == Verdict::Disk) {
      found.figures.add("memory_budget", FigureUnit::Size, active_budget(f.info));
      if (conditions.disk)
        found.figures.add("read_from_disks", FigureUnit::Size,
                          static_cast<double>(conditions.disk->read));
      found.figures.add("major_faults", Count, conditions.time.faults);
    }
    out.push_back(std::move(found));
  }
  if (f.left_out > 0) {
    Finding found{.topic = FindingTopic::Machine,
                  .kind = FindingKind::LeftOutSteps,
                  .role = FindingRole::Warning,
                  .basis = all_steps(f)};
    found.figures.add("left_out", Count, static_cast<double>(f.left_out))
        .add("steps", Count, static_cast<double>(f.steps));
    out.push_back(std::move(found));
  }
}

// --- bytes ----------------------------------------------------------------------

struct Part {
  std::string name;
  double bytes = 0;
};

// What is read, by what it is; the largest first. Weights by where their bytes are.
std::vector<Part> parts_read(const SessionFigures& f) {
  const bool generated = has_generated(f);
  std::vector<Part> parts;
  double weights = 0;
  for (const BreakdownRow& row : f.by_source.rows) {
    const double bytes = examined(row, generated).bytes_read;
    weights += bytes;
    parts.push_back({.name = std::string("weights_") + row.name, .bytes = bytes});
  }
  const double kv = examined(f.kv, generated).bytes_read;
  const double state = examined(f.recurrent, generated).bytes_read;
  parts.push_back({.name = "kv_cache", .bytes = kv});
  parts.push_back({.name = "recurrent_state", .bytes = state});
  const double all = examined(f.by_op_kind.total, generated).bytes_read;
  parts.push_back({.name = "intermediate", .bytes = std::max(0.0, all - weights - kv - state)});
  std::erase_if(parts, [](const Part& part) { return part.bytes < 0.5; });
  std::ranges::stable_sort(parts, std::greater{}, &Part::bytes);
  return parts;
}

bool waits_are_recorded(const SessionFigures& f) {
  return f.by_tensor.total.all.faults > 0 || !f.info.fact("trace.page_faults").empty();
}

void find_bytes(const SessionFigures& f, std::vector<Finding>& out) {
  const bool generated = has_generated(f);
  const TraceSums& sums = examined(f.by_op_kind.total, generated);
  const FindingBasis basis = basis_of(f);
  const double count = generated ? f.generated_tokens : static_cast<double>(basis.steps);
  if (sums.bytes_read > 0 && count > 0) {
    Finding found{.topic = FindingTopic::BytesRead,
                  .kind = FindingKind::TokenBytes,
                  .role = FindingRole::Main,
                  .basis = basis};
    if (f.only_interrupted) found.figures.add("interrupted", "yes");
    found.figures.add("bytes_read", FigureUnit::Size, sums.bytes_read / count)
        .add("bytes_touched", FigureUnit::Size, sums.bytes() / count)
        .add("accesses", Count, sums.accesses() / count)
        .add("rate", Rate, sums.bytes_per_second());
    double weights = 0, file = 0;
    for (const Part& part : parts_read(f)) {
      found.figures.add(part.name, FigureUnit::Size, part.bytes / count);
      if (part.name.starts_with("weights_")) weights += part.bytes / count;
    }
    for (const ModelFile& model : f.info.model_files) file += static_cast<double>(model.size);
    if (file > 0) found.figures.add("weights_of_model_file", Share, weights / file);
    if (waits_are_recorded(f)) {
      const BreakdownRow& total = f.by_tensor.total;
      found.figures.add("disk_waits", Count, generated ? total.generate.faults : total.all.faults);
    }
    out.push_back(std::move(found));
  }
  const double mapped = f.by_op_kind.disk.bytes();
  const double all = mapped + f.by_op_kind.buffer.bytes();
  if (all > 0) {
    Finding found{
        .topic = FindingTopic::BytesRead, .kind = FindingKind::MappedShare, .basis = all_steps(f)};
    found.figures.add("mapped", Share, mapped / all);
    out.push_back(std::move(found));
  }
}

void find_phases(const SessionFigures& f, std::vector<Finding>& out) {
  const auto prompt = f.phase_costs.find(Phase::Prompt),
             generate = f.phase_costs.find(Phase::Generate);
  if (prompt == f.phase_costs.end() || generate == f.phase_costs.end()) return;
  const auto time = [](const PhaseCost& of) {
    const bool is_known = of.times.spread && !of.times.steps.uses_disturbed;
    return is_known ? std::optional(of.times.per_token.v) : std::nullopt;
  };
  const PhaseCost &before = prompt->second, &after = generate->second;
  if (before.bytes_read <= 0 || after.bytes_read <= 0) return;
  Finding found{.topic = FindingTopic::Phases,
                .kind = FindingKind::PromptAndGeneration,
                .role = FindingRole::Main,
                .basis = {.phase = std::nullopt, .steps = before.steps + after.steps}};
  found.figures.add("prompt_bytes_read", FigureUnit::Size, before.bytes_read)
      .add("generate_bytes_read", FigureUnit::Size, after.bytes_read)
      .add("prompt_tokens_per_step", Count,
           ratio(static_cast<double>(before.tokens), static_cast<double>(before.steps)))
      .add("prompt_time", FigureUnit::Duration, time(before))
      .add("generate_time", FigureUnit::Duration, time(after));
  out.push_back(std::move(found));
}

// --- speed ----------------------------------------------------------------------

// What the user got, and then what of it was evaluation.
void find_speeds(const SessionFigures& f, std::vector<Finding>& out) {
  const auto add = [&](FindingKind kind, FindingBasis basis) -> Figures& {
    out.push_back({.topic = FindingTopic::Speed, .kind = kind, .basis = basis});
    return out.back().figures;
  };
  const FindingBasis prompt{.phase = Phase::Prompt, .steps = f.steps};
  if (const auto rate = f.speed.prompt_per_second()) {
    add(FindingKind::PromptSpeed, prompt)
        .add("tokens", Count, static_cast<double>(f.speed.prompt_tokens))
        .add("time", FigureUnit::Duration, static_cast<double>(f.speed.prompt_ns))
        .add("speed", TokensPerSecond, *rate);
  }
  if (f.speed.first_token_ns)
    add(FindingKind::FirstToken, prompt)
        .add("time", FigureUnit::Duration, static_cast<double>(*f.speed.first_token_ns));
  if (const auto rate = f.speed.per_second()) {
    add(FindingKind::GenerationSpeed, basis_of(f))
        .add("tokens", Count, static_cast<double>(f.speed.tokens))
        .add("time", FigureUnit::Duration, static_cast<double>(f.speed.ns))
        .add("speed", TokensPerSecond, *rate);
  }
  if (has_generated(f)) {
    add(FindingKind::EvaluationTime, basis_of(f))
        .add("per_token", FigureUnit::Duration,
             static_cast<double>(f.generate_time.v) / f.generated_tokens)
        .add("sampling", Share, f.speed.sample_share());
  }
}

// A draft that saves this much more or less than it costs makes generation faster or slower.
constexpr double kDraftEffect = 0.05;

void find_drafts(const SessionFigures& f, std::vector<Finding>& out) {
  if (!f.drafts) return;
  const DraftLedger& drafts = *f.drafts;
  const auto ns = [](const std::optional<Ns>& time) {
    return time ? std::optional(static_cast<double>(time->v)) : std::nullopt;
  };
  const auto per_draft = [&](std::uint64_t tokens) {
    return static_cast<double>(tokens) / static_cast<double>(drafts.known);
  };
  Finding found{.topic = FindingTopic::Drafts,
                .kind = FindingKind::Drafts,
                .role = FindingRole::Main,
                .basis = basis_of(f)};
  found.figures.add("drafts", Count, static_cast<double>(drafts.known))
      .add("drafted", Count, per_draft(drafts.drafted))
      .add("accepted", Count, per_draft(drafts.accepted))
      .add("accepted_share", Share, drafts.accepted_share())
      .add("draft_time", FigureUnit::Duration, ns(drafts.draft))
      .add("check_time", FigureUnit::Duration, ns(drafts.check))
      .add("plain_time", FigureUnit::Duration, ns(drafts.plain))
      .add("cost", FigureUnit::Duration, ns(drafts.cost))
      .add("saving", FigureUnit::Duration, ns(drafts.saving));
  if (drafts.cost && drafts.saving) {
    const auto cost = static_cast<double>(drafts.cost->v),
               saving = static_cast<double>(drafts.saving->v);
    found.figures.add("effect", saving > cost * (1 + kDraftEffect)   ? "faster"
                                : saving < cost * (1 - kDraftEffect) ? "slower"
                                                                     : "same");
  }
  out.push_back(std::move(found));
}

// From this share of the time on, a faster evaluation helps less than simpler sampling.
constexpr double kMuchSampling = 0.2;
bool is_sampling_slow(const SessionFigures& f) {
  return f.speed.sample_share().value_or(0) > kMuchSampling;
}

// From one wait per token on, the disk is the limit.
double waits_per_token(const SessionFigures& f) {
  return ratio(f.by_tensor.total.generate.faults, f.generated_tokens);
}

// Shares of the threads' time in which they waited for a processor, or were stopped by a CPU limit.
// From half of it on, this is what limits the speed, whatever the rest was spent on.
constexpr double kLimitingShare = 0.5;
double waited_share(const SessionFigures& f) {
  return ratio(f.conditions.time.wait_ns, f.conditions.time.total_ns);
}
double stopped_share(const SessionFigures& f) {
  return ratio(f.conditions.time.throttled_ns, f.conditions.time.total_ns);
}

// Whether the steps waited for a processor is unknown: slow reads do not show that it computed.
bool may_have_waited(const SessionFigures& f, BandwidthUse use) {
  return !f.conditions.verdict && (use == BandwidthUse::Below || use == BandwidthUse::FromCache);
}

const char* speed_limit(const SessionFigures& f, const BandwidthFinding& bandwidth) {
  if (f.conditions.verdict == Verdict::Disk || waits_per_token(f) >= 1) return "disk";
  if (is_contended_or_throttled(f) && waited_share(f) + stopped_share(f) >= kLimitingShare)
    return waited_share(f) >= stopped_share(f) ? "waiting" : "cpu_limit";
  if (is_contended_or_throttled(f)) return "disturbed";
  if (is_sampling_slow(f)) return "sampling";
  if (may_have_waited(f, bandwidth.use)) return "unknown";
  switch (bandwidth.use) {
    case BandwidthUse::Near:
      return "bandwidth";
    case BandwidthUse::Below:
    case BandwidthUse::FromCache:
      return "computation";
    case BandwidthUse::Unclear:
    case BandwidthUse::Exceeded:
    case BandwidthUse::Unknown:
      break;
  }
  return "unknown";
}

const char* to_text(BandwidthUse use) {
  switch (use) {
    case BandwidthUse::Unknown:
      return "unknown";
    case BandwidthUse::Below:
      return "below";
    case BandwidthUse::Near:
      return "near";
    case BandwidthUse::Unclear:
      return "unclear";
    case BandwidthUse::FromCache:
      return "from_cache";
    case BandwidthUse::Exceeded:
      return "exceeded";
  }
  return "unknown";
}

bool only_cpu_computes(const SessionFigures& f) {
  return f.devices.size() == 1 && f.devices.front().name == "CPU";
}
// An import may not say where its ops ran.
bool other_device_computes(const SessionFigures& f) {
  return std::ranges::any_of(
      f.devices, [](const auto& device) { return !device.name.empty() && device.name != "CPU"; });
}
// Of the generated steps.
std::uint64_t threads_of(const SessionFigures& f) {
  return f.threads > 0 ? f.threads : f.info.fact_number("context.threads").value_or(0);
}

// Why the limit is not known, if the machine did not disturb the run.
void add_unknown(const SessionFigures& f, const BandwidthFinding& bandwidth, Figures& figures) {
  const auto measured_with = f.info.fact_number("host.read_bandwidth_threads");
  figures.add("unknown_because", may_have_waited(f, bandwidth.use)         ? "no_conditions"
                                 : bandwidth.use == BandwidthUse::Unclear  ? "near_bandwidth"
                                 : bandwidth.use == BandwidthUse::Exceeded ? "exceeded_bandwidth"
                                 : other_device_computes(f)                ? "other_device"
                                 : !has_generated(f)                       ? "no_generation"
                                 : bandwidth.bandwidth > 0
                                     ? "few_steps"
                                     : machine_bounds(f.info, threads_of(f)).no_read_bandwidth);
  figures.add("rates", Count, static_cast<double>(f.read_rates.clean.size()))
      .add("rates_needed", Count, static_cast<double>(kLeastRates))
      .add("threads", Count, static_cast<double>(threads_of(f)))
      .add("measured_with_threads", Count, measured_with);
}

// Steps that the times are of and that nothing disturbed.
std::uint64_t clean_steps(const SessionFigures& f) {
  const TimedSteps& timed = f.costs.at(Axis::OpKind).timed;
  return timed.verdict == Verdict::Clean ? timed.used : 0;
}

// Two layers with times so near are equally slow.
constexpr double kEquallySlow = 1.05;

void add_layers(const StepCosts& layers, Figures& figures) {
  const StepCost *first = nullptr, *second = nullptr;
  const auto time = [](const StepCost* row) { return row == nullptr ? 0 : row->sums.time_ns; };
  for (const StepCost& row : layers.rows) {
    if (row.key == AxisRows::kNoLayerKey || time(&row) <= 0) continue;
    if (time(&row) > time(first)) {
      second = std::exchange(first, &row);
    } else if (time(&row) > time(second)) {
      second = &row;
    }
  }
  if (first == nullptr) return;
  figures.add("slowest_layer", first->name).add("slowest_layer_time", Share, first->share);
  if (second == nullptr) return;
  figures.add("second_layer", second->name)
      .add("second_layer_time", Share, second->share)
      .add("layers_differ", time(first) >= kEquallySlow * time(second) ? "yes" : "no");
}

void find_limit(const SessionFigures& f, std::vector<Finding>& out) {
  if (f.by_op_kind.rows.empty()) return;
  Finding found{.topic = FindingTopic::Speed,
                .kind = FindingKind::SpeedLimit,
                .role = FindingRole::Main,
                .basis = basis_of(f)};
  found.basis.phase = f.costs.at(Axis::OpKind).phase;
  found.basis.clean_only = f.costs.at(Axis::OpKind).timed.disturbed > 0 || f.left_out > 0;
  const BandwidthFinding bandwidth = bandwidth_use(f);
  Figures& figures = found.figures;
  figures.add("limit", speed_limit(f, bandwidth))
      .add("speed", TokensPerSecond, f.speed.per_second())
      .add("bandwidth_use", to_text(bandwidth.use));
  if (bandwidth.bandwidth > 0) figures.add("read_bandwidth", Rate, bandwidth.bandwidth);
  if (bandwidth.bound > 0) figures.add("bound_speed", TokensPerSecond, bandwidth.bound);
  if (bandwidth.median > 0) figures.add("read_rate", Rate, bandwidth.median);
  if (bandwidth.low > 0)
    figures.add("read_rate_low", Rate, bandwidth.low).add("read_rate_high", Rate, bandwidth.high);
  if (figures.word("limit") == "unknown") add_unknown(f, bandwidth, figures);
  if (is_sampling_slow(f)) figures.add("sampling", Share, f.speed.sample_share());
  figures.add("memory_budget", FigureUnit::Size, active_budget(f.info));
  // Other programs only slow a step down: it could read at least as fast.
  if ((is_disturbed(f) || bandwidth.use == BandwidthUse::Exceeded) && bandwidth.fastest > 0)
    figures.add("read_rate_fastest", Rate, bandwidth.fastest);
  if (is_disturbed(f)) {
    figures.add("verdict", to_text(*f.conditions.verdict))
        .add("clean_steps", Count, static_cast<double>(clean_steps(f)));
    if (is_contended_or_throttled(f))
      figures.add("waited", Share, waited_share(f)).add("stopped", Share, stopped_share(f));
    if (f.conditions.time.total_ns > 0)
      figures.add("blocked", Share, f.conditions.time.blocked_ns / f.conditions.time.total_ns);
  }
  const auto& ops = f.costs.at(Axis::OpKind).rows;
  const auto slowest =
      std::ranges::max_element(ops, {}, [](const StepCost& row) { return row.sums.time_ns; });
  // The times of disturbed steps are mostly waiting.
  const bool has_times = !is_disturbed(f) || clean_steps(f) > 0;
  if (has_times && slowest != ops.end() && slowest->sums.time_ns > 0) {
    figures.add("slowest_op", slowest->name)
        .add("slowest_op_time", Share, slowest->share)
        .add("slowest_op_rate", Rate, slowest->sums.bytes_per_second());
  }
  if (has_times) add_layers(f.costs.at(Axis::Layer), figures);
  out.push_back(std::move(found));
}

// --- order and repetition -------------------------------------------------------

void find_order(const SessionFigures& f, std::vector<Finding>& out) {
  double all = 0;
  for (const BreakdownRow& row : f.by_source.rows) all += row.all.bytes_read;
  if (all <= 0) return;
  Finding found{.topic = FindingTopic::Order,
                .kind = FindingKind::ReadInOrder,
                .role = FindingRole::Main,
                .basis = all_steps(f)};
  constexpr double kAll = 0.9995;  // 100.0 %
  const double mapped = number(f.read_order.bytes), part = std::min(1.0, mapped / all);
  found.figures.add("mapped_bytes", FigureUnit::Size, mapped)
      .add("mapped_of_weight_bytes", Share, part)
      .add("all_mapped", part < kAll ? "no" : "yes")
      .add("gap", FigureUnit::Size, static_cast<double>(kDefaultGap));
  if (mapped > 0)
    found.figures.add("in_order", Share, number(f.read_order.sequential_bytes) / mapped);
  out.push_back(std::move(found));
}

void find_repeat(const SessionFigures& f, std::vector<Finding>& out) {
  if (has_generated(f) && f.weights_read.v > 0) {
    Finding found{.topic = FindingTopic::Repeat,
                  .kind = FindingKind::SameWeights,
                  .role = FindingRole::Main,
                  .basis = basis_of(f)};
    const auto differing = [&](Cause cause) {
      return static_cast<double>(f.determinism.differing[std::to_underlying(cause)]);
    };
    found.figures.add("pairs", Count, static_cast<double>(f.determinism.pairs))
        .add("same_weights", Count, static_cast<double>(f.determinism.same_weights))
        .add("identical", Count, static_cast<double>(f.determinism.identical))
        .add("accesses_of_other_rows", Count, differing(Cause::Token))
        .add("accesses_of_other_cells", Count, differing(Cause::KvWindow))
        .add("accesses_of_other_experts", Count, differing(Cause::Experts))
        .add("accesses_of_other_graph", Count, differing(Cause::Graph));
    if (f.experts_followed > 0)
      found.figures.add(
          "experts_again", Share,
          1 - static_cast<double>(f.experts_turned) / static_cast<double>(f.experts_followed));
    out.push_back(std::move(found));
  }
  if (f.prediction.reads > 0) {
    Finding found{.topic = FindingTopic::Repeat,
                  .kind = FindingKind::PatternPrediction,
                  .basis = basis_of(f)};
    found.figures.add("predicted", Share, f.prediction.accuracy());
    out.push_back(std::move(found));
  }
}

// --- waits and memory -----------------------------------------------------------

const BreakdownRow* most_faults(const Breakdown& breakdown) {
  const auto most = std::ranges::max_element(
      breakdown.rows, {}, [](const BreakdownRow& row) { return row.all.faults; });
  return most == breakdown.rows.end() || most->all.faults == 0 ? nullptr : &*most;
}

void find_waits(const SessionFigures& f, std::vector<Finding>& out) {
  if (f.by_op_kind.rows.empty()) return;
  const BreakdownRow& total = f.by_tensor.total;
  Finding found{.topic = FindingTopic::Waits,
                .kind = FindingKind::DiskWaits,
                .role = FindingRole::Main,
                .basis = all_steps(f)};
  if (waits_are_recorded(f)) {
    found.figures.add("waits", Count, total.all.faults)
        .add("waits_generating", Count, total.generate.faults);
    if (const BreakdownRow* most = most_faults(f.by_tensor))
      found.figures.add("most_for", most->name)
          .add("most_share", Share, ratio(most->all.faults, total.all.faults));
  }
  out.push_back(std::move(found));
}

// The cache size at which the bytes that the kernel's cache saves grow most, and the size before.
void add_cliff(const SessionFigures& f, Figures& figures) {
  double most = 0;
  const CachePoint *below = nullptr, *above = nullptr;
  for (const auto& [before, at] : f.lru | std::views::adjacent<2>) {
    const double gain = number(at.bytes) - number(before.bytes);
    if (gain <= most) continue;
    most = gain;
    below = &before;
    above = &at;
  }
  figures.add("reread_ever", most > 0 ? "yes" : "no");
  if (below == nullptr) return;
  figures.add("less_memory", FigureUnit::Size, number(below->capacity))
      .add("reread_with_less", Share, 1 - ratio(number(below->bytes), number(f.weights_read)))
      .add("more_memory", FigureUnit::Size, number(above->capacity))
      .add("reread_with_more", Share, 1 - ratio(number(above->bytes), number(f.weights_read)));
}

void find_enough_memory(const SessionFigures& f, std::vector<Finding>& out) {
  auto found = enough_memory(f.memory, f.only_interrupted);
  if (!found) return;
  found->basis = all_steps(f);
  if (!f.lru.empty()) add_cliff(f, found->figures);
  out.push_back(*std::move(found));
}

void find_memory(const SessionFigures& f, std::vector<Finding>& out) {
  if (const std::string budget = memory_budget_text(f.info); !budget.empty()) {
    Finding found{.topic = FindingTopic::Memory, .kind = FindingKind::MemoryBudget};
    found.figures.add("text", budget);
    out.push_back(std::move(found));
  }
  find_enough_memory(f, out);
  if (f.weights_read.v == 0 || (f.mapped_distinct.v > 0 && !f.available)) return;
  Finding found{.topic = FindingTopic::Memory,
                .kind = FindingKind::WeightsFit,
                .role = is_scarce(f) ? FindingRole::Warning : FindingRole::Detail,
                .basis = all_steps(f)};
  found.figures.add("mapped", FigureUnit::Size, number(f.mapped_distinct))
      .add("copies", FigureUnit::Size, number(f.weights_distinct) - number(f.mapped_distinct));
  if (f.available) found.figures.add("available", FigureUnit::Size, number(*f.available));
  out.push_back(std::move(found));
}

// --- advice -------------------------------------------------------------------

using AdviceList = std::vector<Advice>;

Figures& advise(AdviceList& out, AdviceKind kind, std::optional<double> gain = {}) {
  out.push_back({.kind = kind, .figures = {}, .estimated_gain = gain});
  return out.back().figures;
}

void advise_validity(const std::optional<FailedCheck>& failed, AdviceList& out) {
  if (!failed) return;
  advise(out, AdviceKind::DoNotTrust).add("check", failed->check).add("evidence", failed->evidence);
}

void advise_machine(const SessionFigures& f, AdviceList& out) {
  const ThreadRoom room = thread_room(f.info);
  const auto add = [&](AdviceKind kind) {
    advise(out, kind)
        .add("conditions", f.conditions.text)
        .add("threads", Count, static_cast<double>(room.threads))
        .add("processors", Count, static_cast<double>(room.processors))
        .add("below_one_processor", room.is_below_one_thread() ? "yes" : "no");
  };
  if (!is_contended_or_throttled(f)) return;
  if (room.has_too_many_threads()) return add(AdviceKind::ThreadsAboveProcessors);
  add(f.conditions.verdict == Verdict::Contended ? AdviceKind::StopOtherPrograms
                                                 : AdviceKind::RaiseCpuLimit);
}

// Only where the weights do not fit: else they are in memory after their first read.
void advise_memory(const SessionFigures& f, AdviceList& out) {
  if (!is_scarce(f)) return;
  const std::string_view budget = f.info.fact("context.memory_budget");
  if (!budget.empty() && budget != "off") return;
  const PinPlan& pins = f.room.pins;
  const bool helps = !pins.weights.empty() && pins.saved > f.room.lru.bytes;
  const double read = number(f.mapped_read);
  Figures& figures =
      advise(out, helps ? AdviceKind::PinWeights : AdviceKind::LessWeightsOrMoreMemory);
  figures.add("mapped", FigureUnit::Size, number(f.mapped_distinct))
      .add("available", FigureUnit::Size, number(*f.available))
      .add("saved_by_lru", Share, ratio(number(f.room.lru.bytes), read))
      .add("saved_by_pinning", Share, ratio(number(pins.saved), read))
      .add("saved_at_most", Share, ratio(number(f.room.belady.bytes), read));
  if (!helps) return;
  figures.add("pinned", FigureUnit::Size, number(pins.held))
      .add("less_read", FigureUnit::Size, number(pins.saved) - number(f.room.lru.bytes))
      .add("generated_tokens", Count, f.generated_tokens)
      .add("repacked", f.info.fact("context.repack") == "on" ? "yes" : "no");
  // The first names of what to pin; the complete list is in the table of the report.
  constexpr std::size_t kNames = 8;
  const auto names = names_of(pins);
  for (const std::string& name : names | std::views::take(kNames)) figures.add("weights", name);
  if (names.size() > kNames)
    figures.add("more_weights", Count, static_cast<double>(names.size() - kNames));
}

// Reading weights once at the start of a prompt is unavoidable. Page faults in every token
// mean that weights were evicted from memory. If they do not fit, locking them fails.
void advise_faults(const SessionFigures& f, AdviceList& out) {
  if (!has_generated(f) || waits_per_token(f) < 1 || is_scarce(f)) return;
  Figures& figures = advise(out, AdviceKind::KeepWeights);
  figures.add("waits_per_token", Count, waits_per_token(f));
  if (const BreakdownRow* most = most_faults(f.by_tensor)) figures.add("most_for", most->name);
  if (f.available) figures.add("available", FigureUnit::Size, number(*f.available));
  figures.add("locked", f.info.fact("context.mlock") == "on" ? "yes" : "no");
}

void advise_threads(const SessionFigures& f, AdviceList& out) {
  const ThreadRoom room = thread_room(f.info);
  const auto threads = static_cast<double>(room.threads),
             processors = static_cast<double>(room.processors);
  // With the machine busy, more threads would wait, too, and advise_machine() says when to use
  // fewer.
  if (threads == 0 || processors == 0 || threads == processors || is_contended_or_throttled(f))
    return;
  const bool more = threads < processors;
  advise(out, more ? AdviceKind::MoreThreads : AdviceKind::FewerThreads,
         more ? std::optional(1 - threads / processors) : std::nullopt)
      .add("threads", Count, threads)
      .add("processors", Count, processors);
}

// Without a memory budget, which excludes repacking, and with memory for the copies.
void advise_repacking(const SessionFigures& f, AdviceList& out) {
  const std::string_view budget = f.info.fact("context.memory_budget");
  if (f.info.fact("context.repack") != "off" || f.weights_read.v == 0 ||
      (!budget.empty() && budget != "off") || is_scarce(f))
    return;
  advise(out, AdviceKind::Repack)
      .add("weights_read", FigureUnit::Size, number(f.weights_read))
      .add("copies", FigureUnit::Size, number(f.weights_distinct));
}

void advise_sampling(const SessionFigures& f, AdviceList& out) {
  if (!is_sampling_slow(f)) return;
  constexpr double kLeastRest = 0.01;  // of the time: the rest is not known better
  const double share = *f.speed.sample_share();
  advise(out, AdviceKind::SimplerSampling, share)
      .add("sampling", Share, share)
      .add("times_as_fast", Count, 1 / std::max(kLeastRest, 1 - share))
      .add("per_token", FigureUnit::Duration,
           ratio(static_cast<double>(*f.speed.sample_ns), static_cast<double>(f.speed.tokens)))
      .add("grammar", f.info.fact("request.grammar").empty() ? "no" : "yes");
}

// Half the bytes need at least half the time. That a quantization with half the bytes has kernels
// that are as fast is not known, so none is named.
void advise_bandwidth(const SessionFigures& f, AdviceList& out) {
  if (is_sampling_slow(f) || is_disturbed(f)) return;
  const BandwidthFinding bandwidth = bandwidth_use(f);
  if (bandwidth.use != BandwidthUse::Near) return;
  advise(out, AdviceKind::FewerBytes, 0.5)
      .add("read_rate_low", Rate, bandwidth.low)
      .add("read_rate_high", Rate, bandwidth.high)
      .add("read_bandwidth", Rate, bandwidth.bandwidth);
}

void advise_attention(const SessionFigures& f, AdviceList& out) {
  constexpr double kMuchAttention = 0.3;
  if (is_disturbed(f) && clean_steps(f) == 0) return;
  const auto& components = f.costs.at(Axis::Component).rows;
  const auto attention =
      std::ranges::find(components, to_text(Component::Attention), &StepCost::name);
  if (attention == components.end() || row_of(f.by_op_kind, "SOFT_MAX") == nullptr ||
      row_of(f.by_op_kind, "FLASH_ATTN_EXT") != nullptr)
    return;
  const double share = attention->share;
  if (share < kMuchAttention) return;
  advise(out, AdviceKind::FlashAttention, share).add("attention", Share, share);
}

// Some ops always run on the CPU, so a few per cent of the time are not a fallback.
void advise_devices(const SessionFigures& f, AdviceList& out) {
  constexpr double kFallback = 0.05;
  const std::string_view present = f.info.fact("host.devices");
  const auto cpu = std::ranges::find(f.devices, "CPU", &DeviceTime::name);
  if (cpu == f.devices.end()) return;
  double all = 0;
  std::vector<std::string> others;
  for (const DeviceTime& device : f.devices) {
    all += device.ns;
    if (device.name != "CPU") others.push_back(device.name);
  }
  if (others.empty() && !present.empty())
    advise(out, AdviceKind::UseDevice).add("devices", std::string(present));
  if (others.empty() || cpu->ns < kFallback * all || all <= 0) return;
  advise(out, AdviceKind::MoreLayersOnDevice, cpu->ns / all)
      .add("on_cpu", Share, cpu->ns / all)
      .add("slowest_op", cpu->slowest)
      .add("slowest_op_of_cpu", Share, ratio(cpu->slowest_ns, cpu->ns))
      .add("devices", join(others));
}

void advise_nothing(const SessionFigures& f, AdviceList& out) {
  if (!out.empty() || f.weights_read.v == 0 || is_disturbed(f)) return;
  const bool no_conditions = !f.conditions.verdict && !f.conditions.text.empty();
  advise(out, AdviceKind::ChangeNothing)
      .add("bandwidth_use", to_text(bandwidth_use(f).use))
      .add("conditions", no_conditions ? "unknown" : "known");
}

}  // namespace

BandwidthFinding bandwidth_use(const SessionFigures& f) {
  BandwidthFinding found;
  const MachineBounds bounds = machine_bounds(f.info, threads_of(f));
  found.bandwidth = bounds.read_bandwidth;
  const std::vector<double>& rates = f.read_rates.clean;
  if (!rates.empty()) found.median = rates[rates.size() / 2];
  // Order statistics: the median is between these ranks in 95 % of all samples.
  if (rates.size() >= kLeastRates) {
    const auto n = static_cast<double>(rates.size());
    const double half = 0.98 * std::sqrt(n);
    found.low = rates[static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)))];
    found.high =
        rates[std::min(rates.size() - 1, static_cast<std::size_t>(std::ceil(n / 2 + half)))];
  }
  if (!only_cpu_computes(f)) return found;
  // Weights that fit into the last cache are not read from memory.
  if (f.weights_distinct.v > 0 && f.weights_distinct.v <= bounds.last_cache) {
    found.use = BandwidthUse::FromCache;
    return found;
  }
  if (found.bandwidth <= 0) return found;
  found.fastest = f.read_rates.fastest;
  if (exceeds(found.fastest, bounds)) {
    found.use = BandwidthUse::Exceeded;
    return found;
  }
  const double read = examined(f.by_op_kind.total, true).bytes_read;
  if (has_generated(f) && read > 0) found.bound = found.bandwidth * f.generated_tokens / read;
  if (found.low <= 0) return found;
  const double threshold = kNearBound * found.bandwidth;
  found.use = found.low >= threshold   ? BandwidthUse::Near
              : found.high < threshold ? BandwidthUse::Below
                                       : BandwidthUse::Unclear;
  return found;
}

std::optional<Finding> enough_memory(const ModelMemory& memory, bool only_interrupted) {
  if (memory.is_empty()) return std::nullopt;
  Finding found{
      .topic = FindingTopic::Memory, .kind = FindingKind::EnoughMemory, .role = FindingRole::Main};
  found.figures.add("enough", FigureUnit::Size, number(memory.enough()))
      .add("exact", memory.compute ? "yes" : "no")
      .add("file", FigureUnit::Size, number(memory.file))
      .add("repacked", FigureUnit::Size, number(memory.repacked))
      .add("kv_cache", FigureUnit::Size, number(memory.kv))
      .add("recurrent_state", FigureUnit::Size, number(memory.recurrent))
      .add("compute", FigureUnit::Size, number(memory.compute_buffers()))
      .add("cache_tokens", Count, memory.cache_tokens);
  if (!memory.flash_attention.empty()) found.figures.add("flash_attention", memory.flash_attention);
  if (only_interrupted) found.figures.add("interrupted", "yes");
  return found;
}

std::vector<Finding> session_findings(const SessionFigures& figures) {
  std::vector<Finding> findings;
  find_damage(figures, findings);
  find_changes(figures, findings);
  find_invalid(figures, findings);
  find_limit(figures, findings);
  find_speeds(figures, findings);
  find_drafts(figures, findings);
  find_repeated_prompt(figures, findings);
  find_reused_prefix(figures, findings);
  find_conditions(figures, findings);
  find_bytes(figures, findings);
  find_phases(figures, findings);
  find_order(figures, findings);
  find_repeat(figures, findings);
  find_waits(figures, findings);
  find_memory(figures, findings);
  find_warning(figures, findings);
  return findings;
}

std::vector<Advice> session_advice(const SessionFigures& figures,
                                   const std::optional<FailedCheck>& failed) {
  std::vector<Advice> advice;
  advise_validity(failed, advice);
  advise_machine(figures, advice);
  advise_sampling(figures, advice);
  advise_memory(figures, advice);
  advise_faults(figures, advice);
  advise_bandwidth(figures, advice);
  advise_attention(figures, advice);
  advise_threads(figures, advice);
  advise_repacking(figures, advice);
  advise_devices(figures, advice);
  advise_nothing(figures, advice);
  return advice;
}

}  // namespace tt
