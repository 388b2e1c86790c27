#include "analysis/report/report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <format>
#include <ranges>

#include "analysis/common/format_units.h"
#include "analysis/findings/session_findings.h"
#include "analysis/tables/session_overview.h"
#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

constexpr std::size_t kRows = 15;     // maximum rows of a table
constexpr std::size_t kPins = 60;     // maximum rows of the table of weights to pin
constexpr std::size_t kPoints = 400;  // maximum points of a line

// The phases beside each other.
ReportSection phases_section(const ReportData& f) {
  ReportSection section{
      .title = "Prompt and generation",
      .text = {"Times and bytes are per token: means over all steps of the phase."},
      .charts = {},
      .columns = {{.name = "phase"}},
      .rows = {}};
  for (const char* column :
       {"tokens", "steps", "time", "read", "written", "time in ops", "page faults in all"})
    section.columns.push_back({.name = column, .right = true});
  for (const PhasePart& part : f.phases) {
    const TraceSums& s = f.by_op_kind.total.*part.sums;
    section.rows.push_back(
        {part.name, std::to_string(part.tokens), std::to_string(part.steps),
         format_duration(part.per_token(static_cast<double>(part.time.v))),
         format_bytes(part.per_token(s.bytes_read)), format_bytes(part.per_token(s.bytes_written)),
         format_duration(part.per_token(s.time_ns)), std::format("{:.0f}", s.faults)});
  }
  return section;
}

const StepCost* row_of(const PhasePart& part, Axis by, const std::string& name) {
  const std::vector<StepCost>& rows = part.costs.at(by).rows;
  const auto row = std::ranges::find(rows, name, &StepCost::name);
  return row == rows.end() ? nullptr : &*row;
}

// The names of an axis, those of the last phase first: layers in order, others with the most time
// first.
std::vector<std::string> shown_rows(const std::vector<PhasePart>& phases, Axis by,
                                    std::vector<std::string>& text) {
  std::vector<std::string> names;
  for (const PhasePart& part : phases | std::views::reverse) {
    std::vector<StepCost> rows = part.costs.at(by).rows;
    if (by != Axis::Layer)
      std::ranges::stable_sort(rows, std::ranges::greater{}, [](const StepCost& row) {
        return std::pair(row.sums.time_ns, row.sums.bytes());
      });
    for (const StepCost& row : rows)
      if (!std::ranges::contains(names, row.name)) names.push_back(row.name);
  }
  if (by != Axis::Layer && names.size() > kRows) {
    text.push_back(std::format("The {} of {} with the most time.", kRows, names.size()));
    names.resize(kRows);
  }
  return names;
}

constexpr const char* kCosts =
    "Read bytes are per token: their mean over all steps. Times are per token of the counted "
    "steps: "
    "their median, or, if they evaluate different numbers of tokens, their sum divided by their "
    "tokens.";

// The phases are apart: a prompt evaluates many tokens with one read of the weights.
ReportSection costs_section(const char* title, const char* first, Axis by,
                            const std::vector<PhasePart>& phases) {
  ReportSection section{
      .title = title, .text = {}, .charts = {}, .columns = {{.name = first}}, .rows = {}};
  const std::vector<std::string> names = shown_rows(phases, by, section.text);
  section.text.emplace_back(kCosts);
  for (const std::string& name : names) section.rows.push_back({name});
  for (const PhasePart& part : phases) {
    section.text.push_back(to_text(part.costs.at(by).timed));
    for (const char* column : {"read", "time", "share of time"})
      section.columns.push_back({.name = std::format("{}: {}", part.name, column), .right = true});
    const double total_ns = part.total_per_token(by).time_ns;
    BarChart bars{.title = std::format("{}, {}", title, part.name), .bars = {}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const StepCost* row = row_of(part, by, names[i]);
      const TraceSums s = row == nullptr ? TraceSums{} : part.per_token(*row);
      bars.bars.push_back(
          {.label = names[i], .value = s.time_ns, .text = step_time_text(s.time_ns)});
      for (std::string cell : {format_bytes(s.bytes_read), step_time_text(s.time_ns),
                               format_percent(s.time_ns, total_ns)})
        section.rows[i].push_back(std::move(cell));
    }
    section.charts.emplace_back(std::move(bars));
  }
  return section;
}

// Both sessions per token: sums of runs of different length say nothing.
ReportSection compared_section(const char* title, const char* first, Axis by,
                               const std::vector<PhasePart>& phases,
                               const std::vector<PhasePart>& others) {
  ReportSection section{.title = title,
                        .text = {kCosts, "Of this session, and of the other one."},
                        .charts = {},
                        .columns = {{.name = first}},
                        .rows = {}};
  std::vector<std::string> names = shown_rows(phases, by, section.text);
  for (const PhasePart& part : others)  // rows that only the other session has
    for (const StepCost& row : part.costs.at(by).rows)
      if (!std::ranges::contains(names, row.name) &&
          std::ranges::none_of(
              phases, [&](const PhasePart& own) { return row_of(own, by, row.name) != nullptr; }))
        names.push_back(row.name);
  for (const std::string& name : names) section.rows.push_back({name});
  for (const PhasePart& part : phases) {
    const auto other = std::ranges::find(others, part.phase, &PhasePart::phase);
    if (other == others.end()) continue;
    section.text.push_back("This session: " + to_text(part.costs.at(by).timed));
    section.text.push_back("The other one: " + to_text(other->costs.at(by).timed));
    for (const char* column : {"read", "read, other", "time", "time, other", "time / other time"})
      section.columns.push_back({.name = std::format("{}: {}", part.name, column), .right = true});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const StepCost *a = row_of(part, by, names[i]), *b = row_of(*other, by, names[i]);
      const TraceSums left = a == nullptr ? TraceSums{} : part.per_token(*a),
                      right = b == nullptr ? TraceSums{} : other->per_token(*b);
      const auto cell = [](const StepCost* row, std::string text) {
        return row == nullptr ? "-" : std::move(text);
      };
      for (std::string text :
           {cell(a, format_bytes(left.bytes_read)), cell(b, format_bytes(right.bytes_read)),
            cell(a, step_time_text(left.time_ns)), cell(b, step_time_text(right.time_ns)),
            left.time_ns > 0 && right.time_ns > 0
                ? std::format("{:.2f}", left.time_ns / right.time_ns)
                : std::string("-")})
        section.rows[i].push_back(std::move(text));
    }
  }
  return section;
}

ReportSection experts_section(const ReportData& f) {
  const PhasePart& part = f.phases.back();
  ReportSection section{.title = std::format("Experts, {}", part.name),
                        .text = {},
                        .charts = {},
                        .columns = {{.name = "layer"}},
                        .rows = {}};
  for (const std::uint32_t percent : kUsePercents) {
    const ExpertsFor of = experts_for(f.experts, percent);
    section.text.push_back(
        std::format("{} % of the choices go to {:g} of {} experts per layer (median; {} to {}).",
                    percent, of.median, f.experts.front().experts, of.least, of.most));
  }
  section.text.emplace_back(
      "Entropy: of the choices in bits, and its maximum, which all experts chosen equally often "
      "have. Turnover: the part of a token's experts that the token before did not use.");
  for (const char* column :
       {"experts per token", "tokens", "entropy", "turnover", "for 90 % of the choices"})
    section.columns.push_back({.name = column, .right = true});
  section.columns.push_back({.name = "most used, share of the choices"});
  BarChart bars{.title = "Experts that have 90 % of the choices, by layer", .bars = {}};
  for (const RouterUse& use : f.experts) {
    const std::string layer = use.router == 0 ? std::to_string(use.layer.v)
                                              : std::format("{}.{}", use.layer.v, use.router);
    const std::string carry = std::to_string(use.experts_for(kUsePercents[0]));
    section.rows.push_back(
        {layer, std::format("{} of {}", use.per_token, use.experts), std::to_string(use.tokens),
         std::format("{:.2f} of {:.2f}", use.entropy(), std::log2(std::max(1U, use.experts))),
         std::format("{:.0f} %", 100 * use.turnover()), carry, use.most_used(4)});
    bars.bars.push_back({.label = layer,
                         .value = static_cast<double>(use.experts_for(kUsePercents[0])),
                         .text = carry});
  }
  section.charts.emplace_back(std::move(bars));
  return section;
}

ReportSection latency_section(const ReportData& f) {
  ReportSection section{
      .title = "Time per token", .text = {}, .charts = {}, .columns = {}, .rows = {}};
  std::vector<double> sorted = f.token_ms;
  std::ranges::sort(sorted);
  const auto at = [&](double share) { return *quantile(std::span<const double>(sorted), share); };
  const auto time = [](double ms) { return format_duration(ms * 1e6); };
  section.text.push_back(std::format("Of {}: median {}, 5 % within {}, 95 % within {}, slowest {}.",
                                     counted(sorted.size(), "generated token"), time(at(0.5)),
                                     time(at(0.05)), time(at(0.95)), time(sorted.back())));
  if (const auto of = f.conditions.phases.find(Phase::Generate);
      of != f.conditions.phases.end() && of->second.disturbed > of->second.left_out)
    section.text.emplace_back(
        "The steps that the machine disturbed are among them; the tables below leave them out, if "
        "others are left.");
  if (const auto of = f.conditions.phases.find(Phase::Generate);
      of != f.conditions.phases.end() && of->second.learned > 0)
    section.text.push_back(std::format(
        "Without {} with a new graph, which the recording slowed down.",
        of->second.learned == 1 ? "one step" : std::format("{} steps", of->second.learned)));
  // Downsamples to the maximum of each group of tokens, so that no peak is hidden.
  const std::size_t group = (f.token_ms.size() + kPoints - 1) / kPoints;
  LineChart::Line line{.name = "ms", .points = {}};
  for (std::size_t i = 0; i < f.token_ms.size(); i += group) {
    const auto end =
        f.token_ms.begin() + static_cast<std::ptrdiff_t>(std::min(i + group, f.token_ms.size()));
    line.points.emplace_back(
        static_cast<double>(i),
        *std::max_element(f.token_ms.begin() + static_cast<std::ptrdiff_t>(i), end));
  }
  section.charts.emplace_back(LineChart{.title = "Time per token",
                                        .x_label = "generated token",
                                        .y_label = "ms",
                                        .lines = {std::move(line)}});
  return section;
}

// What is known about actual disk reads: page faults.
std::string faults_text(const ReportData& f) {
  const BreakdownRow& all = f.by_tensor.total;
  if (f.info.fact("trace.page_faults").empty() && all.all.faults == 0)
    return "Page faults were not recorded, so it is unknown which reads came from the disk.";
  if (all.all.faults == 0)
    return "No page fault was recorded: everything that was read was already in memory.";
  return std::format(
      "Ops waited for the disk {:.0f} times (page faults), {:.0f} of these while tokens were "
      "generated. Readahead also loaded adjacent pages, so more pages were read than this.",
      all.all.faults, all.generate.faults);
}

ReportSection faults_section(const Breakdown& by_tensor) {
  ReportSection section{.title = "Page faults by tensor",
                        .text = {},
                        .charts = {},
                        .columns = {{.name = "tensor"},
                                    {.name = "page faults", .right = true},
                                    {.name = "share", .right = true},
                                    {.name = "in the prompt", .right = true},
                                    {.name = "generating", .right = true}},
                        .rows = {}};
  std::vector<BreakdownRow> rows = by_tensor.rows;
  std::erase_if(rows, [](const BreakdownRow& row) { return row.all.faults == 0; });
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const BreakdownRow& row) { return row.all.faults; });
  if (rows.size() > kRows) {
    section.text.push_back(
        std::format("The {} of {} with the most page faults.", kRows, rows.size()));
    rows.resize(kRows);
  }
  BarChart bars{.title = section.title, .bars = {}};
  for (const BreakdownRow& row : rows) {
    const auto count = [](double faults) { return std::format("{:.0f}", faults); };
    bars.bars.push_back(
        {.label = row.name, .value = row.all.faults, .text = count(row.all.faults)});
    section.rows.push_back({row.name, count(row.all.faults),
                            format_percent(row.all.faults, by_tensor.total.all.faults),
                            count(row.prompt.faults), count(row.generate.faults)});
  }
  section.charts.emplace_back(std::move(bars));
  return section;
}

ReportSection memory_section(const ReportData& f) {
  ReportSection section{
      .title = "Weight cache simulation",
      .text = {std::format("{} of weights were read, {} of distinct bytes.",
                           format_bytes(static_cast<double>(f.weights_read.v)),
                           format_bytes(static_cast<double>(f.weights_distinct.v))),
               "LRU: the least recently used weights are evicted, as in a page "
               "cache. Pinned: the most read weights stay in memory. Best: the "
               "optimal policy, which knows all future reads (Belady).",
               faults_text(f)},
      .charts = {},
      .columns = {{.name = "memory", .right = true},
                  {.name = "LRU", .right = true},
                  {.name = "pinned", .right = true},
                  {.name = "best", .right = true}},
      .rows = {}};
  const auto share = [&](const CachePoint& p) {
    return f.weights_read.v == 0
               ? 0.0
               : 100.0 * static_cast<double>(p.bytes.v) / static_cast<double>(f.weights_read.v);
  };
  LineChart chart{.title = "Bytes saved by a weight cache",
                  .x_label = "memory for weights, MiB",
                  .y_label = "% of the bytes read",
                  .lines = {}};
  const auto add = [&](const char* name, const std::vector<CachePoint>& curve) {
    LineChart::Line line{.name = name, .points = {}};
    for (const CachePoint& p : curve)
      line.points.emplace_back(static_cast<double>(p.capacity.v) / (1 << 20), share(p));
    chart.lines.push_back(std::move(line));
  };
  add("best", f.belady);
  add("LRU", f.lru);
  add("pinned", f.pin);
  section.charts.emplace_back(std::move(chart));
  for (std::size_t i = 0; i < f.lru.size(); i += 4) {
    section.rows.push_back({format_bytes(static_cast<double>(f.lru[i].capacity.v)),
                            std::format("{:.1f} %", share(f.lru[i])),
                            std::format("{:.1f} %", share(f.pin[i])),
                            std::format("{:.1f} %", share(f.belady[i]))});
  }
  return section;
}

ReportSection pins_section(const PinPlan& plan) {
  ReportSection section{
      .title = "Weights to pin",
      .text = {std::format(
          "With {} of memory, most bytes saved per byte held first: {} held, {} of reads saved.",
          format_bytes(static_cast<double>(plan.memory.v)),
          format_bytes(static_cast<double>(plan.held.v)),
          format_bytes(static_cast<double>(plan.saved.v)))},
      .charts = {},
      .columns = {{.name = "tensor"},
                  {.name = "experts"},
                  {.name = "held", .right = true},
                  {.name = "reads", .right = true},
                  {.name = "saved", .right = true}},
      .rows = {}};
  for (const PinnedWeight& weight : plan.weights | std::views::take(kPins)) {
    section.rows.push_back(
        {weight.tensor, runs_text(weight.experts), format_bytes(static_cast<double>(weight.held.v)),
         std::to_string(weight.reads), format_bytes(static_cast<double>(weight.saved.v))});
  }
  if (plan.weights.size() > kPins)
    section.text.push_back(std::format("The first {} of {}.", kPins, plan.weights.size()));
  return section;
}

ReportSection checks_section(const Validation& validation) {
  ReportSection section{
      .title = "Is the recording valid?",
      .text = {validation.passed() ? "All checks passed." : "No: see the failed checks."},
      .charts = {},
      .columns = {{.name = "check"}, {.name = "status"}, {.name = "details"}},
      .rows = {}};
  for (const CheckResult& check : validation.checks) {
    std::string details = check.summary;
    if (!check.evidence.empty()) details += ": " + check.evidence.front();
    section.rows.push_back({to_text(check.check), to_text(check.status), std::move(details)});
  }
  return section;
}

ReportSection facts_section(const SessionInfo& info) {
  ReportSection section{.title = "Metadata",
                        .text = {},
                        .charts = {},
                        .columns = {{.name = "name"}, {.name = "value"}},
                        .rows = {}};
  for (const ModelFile& file : info.model_files)
    section.rows.push_back(
        {"model file",
         std::format("{} ({})", file.path, format_bytes(static_cast<double>(file.size)))});
  for (const auto& [name, value] : info.facts) section.rows.push_back({name, value});
  return section;
}

std::string title_of(const SessionInfo& info) { return info.title.empty() ? info.id : info.title; }

std::string when(std::int64_t unix_ns) {
  if (unix_ns == 0) return "at an unknown time";  // imported from a format without times
  using namespace std::chrono;
  return std::format("{:%F %T} UTC", sys_time<seconds>{seconds{unix_ns / 1'000'000'000}});
}

}  // namespace

std::vector<Advice> advice_of(const ReportData& data) {
  std::optional<FailedCheck> failed;
  for (const CheckResult& check : data.validation.checks) {
    if (check.status != CheckStatus::Failed) continue;
    failed = {.check = to_text(check.check), .evidence = check.evidence.front()};
    break;
  }
  return session_advice(data, failed);
}

Report report_of(const ReportData& data, const ReportComparison* compared) {
  const SessionInfo& info = data.info;
  const auto program = attached_program(info);
  Report report{.title = title_of(info),
                .subtitle = std::format("Session {}, {}, level {}, {}, {}{}", info.id,
                                        when(info.start_utc_ns), to_text(info.level),
                                        counted(info.n_layers, "layer"), to_text(info.state),
                                        program ? ", " + program->text : ""),
                .compared = {},
                .findings = session_findings(data),
                .advice = advice_of(data),
                .sections = {}};
  const std::vector<PhasePart>& phases = data.phases;
  if (compared != nullptr) {
    const SessionInfo& other = compared->other;
    report.compared = {.with = std::format("{} (session {})", title_of(other), other.id),
                       .comparison = compared->comparison};
    report.sections.push_back(compared_section("Compared by component", "component",
                                               Axis::Component, phases, compared->phases));
    report.sections.push_back(
        compared_section("Compared by kind of op", "op", Axis::OpKind, phases, compared->phases));
  }
  if (!phases.empty()) report.sections.push_back(phases_section(data));
  if (!data.token_ms.empty()) report.sections.push_back(latency_section(data));
  if (!data.by_op_kind.rows.empty()) {
    report.sections.push_back(costs_section("By kind of op", "op", Axis::OpKind, phases));
    report.sections.push_back(costs_section("By component", "component", Axis::Component, phases));
    report.sections.push_back(costs_section("By layer", "layer", Axis::Layer, phases));
    report.sections.push_back(costs_section("By tensor", "tensor", Axis::Tensor, phases));
  }
  if (!data.experts.empty()) report.sections.push_back(experts_section(data));
  if (!data.lru.empty()) report.sections.push_back(memory_section(data));
  if (data.by_tensor.total.all.faults > 0)
    report.sections.push_back(faults_section(data.by_tensor));
  if (!data.room.pins.weights.empty()) report.sections.push_back(pins_section(data.room.pins));
  report.sections.push_back(checks_section(data.validation));
  report.sections.push_back(facts_section(info));
  return report;
}

}  // namespace tt
