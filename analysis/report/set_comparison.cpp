#include "analysis/report/set_comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/step_times.h"
#include "analysis/fields/fields.h"
#include "analysis/report/comparison.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/token_speed.h"
#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

// The median time per token of the steps of a phase that have the time of the model.
std::optional<double> token_ns(const SessionIndex& index, Phase phase) {
  TraceFilter filter;
  filter.phase = phase;
  const TimedSteps timed = timed_steps(index, filter);
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

// What all sessions agree on; the names of the other facts are added to `mixed`.
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

}  // namespace

std::expected<SetMember, TraceError> set_member(const SessionIndex& index,
                                                const SessionReader& reader, Axis by,
                                                const ContinueCheck& keep_going) {
  SetMember member{.facts = settings_of(index.info()), .figures = {}, .rows = {}};
  const auto add = [&](const char* name, FigureUnit unit, std::optional<double> value) {
    if (value) member.figures.push_back({.name = name, .unit = unit, .value = *value});
  };
  const auto speed = token_speed(reader);
  if (!speed) return std::unexpected(speed.error());
  const auto conditions = session_conditions(reader, index.leave_out(), keep_going);
  if (!conditions) return std::unexpected(conditions.error());
  add("tokens per second", FigureUnit::TokensPerSecond, speed->per_second());
  add("prompt tokens per second", FigureUnit::TokensPerSecond, speed->prompt_per_second());
  add("time to the first token", FigureUnit::Duration,
      speed->first_token_ns.transform([](std::int64_t ns) { return static_cast<double>(ns); }));
  add("evaluation of a generated token", FigureUnit::Duration, token_ns(index, Phase::Generate));
  add("evaluation of a prompt token", FigureUnit::Duration, token_ns(index, Phase::Prompt));
  add("bytes read per generated token", FigureUnit::Size, bytes_per_token(index, Phase::Generate));
  add("bytes read per prompt token", FigureUnit::Size, bytes_per_token(index, Phase::Prompt));
  const ThreadTime& time = conditions->time;
  if (time.total_ns > 0) {
    add("threads waiting for a processor", FigureUnit::Share, time.wait_ns / time.total_ns);
    add("threads waiting for the disk", FigureUnit::Share, time.blocked_ns / time.total_ns);
  }
  const auto rows = breakdown(index, {.by = by, .step_times = true}, keep_going);
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

static consteval columns::Enumeration words_of(FigureUnit) {
  return columns::words_to("", FigureUnit::Word);
}

static const Fields<SampleMedian>& fields_of(const SampleMedian*) {
  const fields::Notes few{.null = "fewer than 6 sessions"};
  static const auto fields =
      Fields<SampleMedian>("SetMedian")
          .add("sessions", "number of sessions that have the figure", &SampleMedian::samples)
          .add("median", "", &SampleMedian::median)
          .add("low",
               "start of the interval that contains the median of all runs that could have been "
               "recorded, with a probability of at least 95 %",
               &SampleMedian::low, few)
          .add("high", "end of this interval", &SampleMedian::high, few);
  return fields;
}

static const Fields<ComparedFact>& fields_of(const ComparedFact*) {
  static const auto fields = Fields<ComparedFact>()
                                 .add("name", "", &ComparedFact::name)
                                 .add("left", "", &ComparedFact::left, {.null = "not recorded"})
                                 .add("right", "", &ComparedFact::right, {.null = "not recorded"});
  return fields;
}

static const Fields<ComparedFigure>& fields_of(const ComparedFigure*) {
  const auto side = [](SampleMedian ComparedFigure::* of) {
    return [of](const ComparedFigure& row) {
      return (row.*of).samples == 0 ? std::nullopt : std::optional(row.*of);
    };
  };
  const fields::Notes none{.null = "no session of this set has the figure"};
  static const auto fields =
      Fields<ComparedFigure>("SetFigure")
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
  return fields;
}

const Fields<SetComparison>& fields_of(const SetComparison*) {
  static const auto fields =
      Fields<SetComparison>("SetComparison")
          .add("left_sessions", "", &SetComparison::left)
          .add("right_sessions", "", &SetComparison::right)
          .add("facts",
               "what all sessions of a set have in common and what differs between the sets",
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
  return fields;
}

}  // namespace tt
