#include "analysis/report/set_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/step_times.h"
#include "analysis/common/format_units.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/fields/fields.h"
#include "analysis/report/comparison.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/token_speed.h"
#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

struct TokenPhase {
  Phase phase;
  const char* token;
  TraceSums BreakdownRow::* sums;
};
constexpr std::array<TokenPhase, 2> kTokenPhases = {
    {{Phase::Generate, "generated token", &BreakdownRow::generate},
     {Phase::Prompt, "prompt token", &BreakdownRow::prompt}}};

TimedSteps timed_steps_of(const SessionIndex& index, Phase phase) {
  TraceFilter filter;
  filter.phase = phase;
  return timed_steps(index, filter);
}

// The median time per token of the steps of a phase that have the time of the model.
std::optional<double> token_ns(const SessionIndex& index, const TimedSteps& timed) {
  const Phase phase = timed.phase;
  std::vector<double> times;
  for (std::size_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (step.phase == phase && step.n_tokens > 0 && timed.is_used(index, i))
      times.push_back(static_cast<double>((step.end - step.begin).v) / step.n_tokens);
  }
  std::ranges::sort(times);
  return quantile(std::span<const double>(times), 0.5);
}

// The value of `name` in each session that has it.
using Samples = std::map<std::string, std::pair<FigureUnit, std::vector<double>>>;

template <class List>
Samples samples_of(const std::vector<SetMember>& members, List list) {
  Samples samples;
  for (const SetMember& member : members) {
    for (const SetFigure& figure : member.*list) {
      auto& of_name = samples[figure.name];
      of_name.first = figure.unit;
      of_name.second.push_back(figure.value);
    }
  }
  return samples;
}

template <class List>
std::vector<ComparedFigure> compare_list(const std::vector<SetMember>& left,
                                         const std::vector<SetMember>& right, List list) {
  Samples before = samples_of(left, list), after = samples_of(right, list);
  std::set<std::string> seen;
  std::vector<ComparedFigure> compared;
  for (const auto* members : {&left, &right}) {  // the order of the first session that has it
    for (const SetMember& member : *members) {
      for (const SetFigure& figure : member.*list) {
        if (!seen.insert(figure.name).second) continue;
        const auto &a = before[figure.name].second, &b = after[figure.name].second;
        ComparedFigure row{.name = figure.name,
                           .unit = figure.unit,
                           .left = median_of(a),
                           .right = median_of(b),
                           .p = rank_sum_p(a, b)};
        if (!a.empty() && !b.empty() && row.left.median > 0)
          row.ratio = row.right.median / row.left.median;
        compared.push_back(std::move(row));
      }
    }
  }
  return compared;
}

}  // namespace

std::string figure_text(FigureUnit unit, double value) {
  switch (unit) {
    case FigureUnit::Duration:
      return format_duration(value);
    case FigureUnit::Size:
      return format_bytes(value);
    case FigureUnit::Share:
      return format_percent(value, 1);
    default:
      return std::format("{:.2f}", value);
  }
}

FactsByName common_facts(const std::vector<SetMember>& members, std::set<std::string>& mixed) {
  FactsByName common = members.empty() ? FactsByName{} : members.front().facts;
  for (const SetMember& member : members) {
    for (const ComparedFact& fact : differing_facts(common, member.facts)) {
      mixed.insert(fact.name);
      common.erase(fact.name);
    }
  }
  for (const std::string& name : mixed) common.erase(name);
  return common;
}

std::expected<SetMember, TraceError> set_member(const SessionIndex& index,
                                                const SessionReader& reader, std::optional<Axis> by,
                                                const ContinueCheck& keep_going) {
  SetMember member{.facts = settings_of(index.info()), .figures = {}, .rows = {}};
  const auto add = [&](std::string name, FigureUnit unit, std::optional<double> value,
                       bool disturbed = false) {
    if (value)
      member.figures.push_back(
          {.name = std::move(name), .unit = unit, .value = *value, .disturbed = disturbed});
  };
  const auto speed = token_speed(reader);
  if (!speed) return std::unexpected(speed.error());
  const auto conditions = session_conditions(reader, index.leave_out(), keep_going);
  if (!conditions) return std::unexpected(conditions.error());
  const bool disturbed = is_disturbed(conditions->verdict);
  add("tokens per second", FigureUnit::TokensPerSecond, speed->per_second(), disturbed);
  add("prompt tokens per second", FigureUnit::TokensPerSecond, speed->prompt_per_second(),
      disturbed);
  add("time to the first token", FigureUnit::Duration,
      speed->first_token_ns.transform([](std::int64_t ns) { return static_cast<double>(ns); }),
      disturbed);
  const auto sources = breakdown(index, {.by = Axis::Source}, keep_going);
  if (!sources) return std::unexpected(sources.error());
  for (const auto& [phase, token, sums] : kTokenPhases) {
    const TimedSteps timed = timed_steps_of(index, phase);
    member.disturbed_steps += timed.disturbed;
    add(std::format("evaluation of a {}", token), FigureUnit::Duration, token_ns(index, timed),
        timed.uses_disturbed && is_disturbed(timed.verdict));
  }
  for (const auto& [phase, token, sums] : kTokenPhases)
    add(std::format("bytes read per {}", token), FigureUnit::Size, bytes_per_token(index, phase));
  for (const auto& [phase, token, sums] : kTokenPhases) {
    const double all = (sources->total.*sums).bytes_read;
    double disk = 0;
    for (const BreakdownRow& row : sources->rows)
      if (row.name == to_text(Source::Disk)) disk += (row.*sums).bytes_read;
    if (all > 0)
      add(std::format("DISK share of the bytes of a {}", token), FigureUnit::Share, disk / all);
  }
  const ThreadTime& time = conditions->time;
  if (time.total_ns > 0) {
    add("threads waiting for a processor", FigureUnit::Share, time.wait_ns / time.total_ns);
    add("threads waiting for the disk", FigureUnit::Share, time.blocked_ns / time.total_ns);
  }
  if (!by) return member;
  const auto rows = breakdown(index, {.by = *by, .step_times = true}, keep_going);
  if (!rows) return std::unexpected(rows.error());
  for (const BreakdownRow& row : rows->rows) {
    if (row.step)
      member.rows.push_back(
          {.name = row.name, .value = static_cast<double>(row.step->spread.median.v)});
  }
  return member;
}

SetComparison compare_sets(const std::vector<SetMember>& left,
                           const std::vector<SetMember>& right) {
  SetComparison comparison{.left = left.size(), .right = right.size()};
  std::set<std::string> mixed;
  const FactsByName before = common_facts(left, mixed), after = common_facts(right, mixed);
  for (ComparedFact& fact : differing_facts(before, after))
    if (!mixed.contains(fact.name)) comparison.facts.push_back(std::move(fact));
  comparison.mixed.assign(mixed.begin(), mixed.end());
  comparison.figures = compare_list(left, right, &SetMember::figures);
  comparison.rows = compare_list(left, right, &SetMember::rows);
  std::vector<ComparedFigure*> all;
  for (auto* list : {&comparison.figures, &comparison.rows})
    for (ComparedFigure& row : *list) all.push_back(&row);
  std::vector<double> p;
  for (const ComparedFigure* row : all) p.push_back(row->p);
  const std::vector<bool> different = differ(p);
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->different = different[i];
  // As far apart as two sets of these sizes can be.
  const std::vector<double> low(left.size(), 1.0), high(right.size(), 2.0);
  comparison.too_few = rank_sum_p(low, high) > 0.05;
  std::ranges::stable_sort(comparison.rows, std::greater{}, [](const ComparedFigure& row) {
    return std::abs(row.right.median - row.left.median);
  });
  return comparison;
}

Fields<SampleMedian> fields_of(const SampleMedian*) {
  const fields::Notes few{.null = "fewer than 6 sessions"};
  return Fields<SampleMedian>("SetMedian")
      .add("sessions", "number of sessions that have the figure", &SampleMedian::samples)
      .add("median", "", &SampleMedian::median)
      .add("low",
           "start of the interval that contains the median of all runs that could have been "
           "recorded, with a probability of at least 95 %",
           &SampleMedian::low, few)
      .add("high", "end of this interval", &SampleMedian::high, few);
}

static Fields<ComparedFact> fields_of(const ComparedFact*) {
  return Fields<ComparedFact>()
      .add("name", "", &ComparedFact::name)
      .add("left", "", &ComparedFact::left, {.null = "not recorded"})
      .add("right", "", &ComparedFact::right, {.null = "not recorded"});
}

static Fields<ComparedFigure> fields_of(const ComparedFigure*) {
  const auto side = [](SampleMedian ComparedFigure::* of) {
    return [of](const ComparedFigure& row) {
      return (row.*of).samples == 0 ? std::nullopt : std::optional(row.*of);
    };
  };
  const fields::Notes none{.null = "no session of this set has the figure"};
  return Fields<ComparedFigure>("SetFigure")
      .add("name", "", &ComparedFigure::name)
      .add("unit", "", &ComparedFigure::unit)
      .add("left", "", side(&ComparedFigure::left), none)
      .add("right", "", side(&ComparedFigure::right), none)
      .add("ratio", "ratio of the medians, right to left", &ComparedFigure::ratio,
           {.null = "one of them is missing or 0"})
      .add("p",
           "probability that two sets without any difference are at least as far apart "
           "(Mann-Whitney test, two-sided)",
           &ComparedFigure::p)
      .add("different",
           "whether the difference is significant, judged together with all other figures and "
           "rows (Benjamini-Hochberg, 5 %)",
           &ComparedFigure::different);
}

Fields<SetComparison> fields_of(const SetComparison*) {
  return Fields<SetComparison>("SetComparison")
      .add("left_sessions", "", &SetComparison::left)
      .add("right_sessions", "", &SetComparison::right)
      .add("facts", "what all sessions of a set have in common and what differs between the sets",
           &SetComparison::facts)
      .add("mixed_facts", "names of facts that differ within a set", &SetComparison::mixed)
      .add("figures", "rates and times of the whole sessions", &SetComparison::figures)
      .add("rows",
           "median time per step of the rows of the axis, largest difference of the medians "
           "first",
           &SetComparison::rows)
      .add("too_few",
           "there are too few sessions for any difference to be significant, whatever it is",
           &SetComparison::too_few);
}

}  // namespace tt
