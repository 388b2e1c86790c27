#include "analysis/sets/set_trend.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <format>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// Facts of what a user sets and of the machine. Versions of libraries and of the kernel are none of
// them: what they change is what a trend shows. Prompts are none, because they differ from session
// to session.
bool is_setting(std::string_view name) {
  constexpr std::array kMachine = {"host.cpu", "host.cores", "host.allowed_processors",
                                   "host.cpu_limit", "host.devices"};
  return name.starts_with("context.") || name.starts_with("record.") ||
         std::ranges::contains(kMachine, name);
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

FactsByName trend_group_of(const SessionInfo& info, const FactsByName& settings) {
  FactsByName group;
  for (const auto& [name, value] : settings)
    if (is_setting(name)) group.emplace(name, value);
  std::string sizes, hashes;
  for (const ModelFile& file : info.model_files) {
    sizes += std::format("{}{}", sizes.empty() ? "" : " ", file.size);
    hashes += std::format("{}{}", hashes.empty() ? "" : " ", file.header_hash);
  }
  group["model"] = info.model_files.empty() ? std::string(info.fact("model.name"))
                                            : file_name(info.model_files.front().path);
  group["model.bytes"] = std::move(sizes);
  group["model.header_hash"] = std::move(hashes);
  return group;
}

// Prompts may have megabytes, and are only compared.
void shorten(FactsByName& facts) {
  constexpr std::size_t kLong = 64;
  for (auto& [name, value] : facts)
    if (value.size() > kLong) value = std::format("{:x}", std::hash<std::string>{}(value));
}

using TrendMembers = std::vector<const TrendMember*>;

std::chrono::sys_time<std::chrono::nanoseconds> start_of(const TrendMember& member) {
  return std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::nanoseconds(member.start_utc_ns));
}

// Points, and the sessions of each: by day, or by start.
std::map<std::int64_t, TrendMembers> points_of(const TrendMembers& members, TrendBy by) {
  std::map<std::int64_t, TrendMembers> points;
  for (const TrendMember* member : members) {
    const auto day = std::chrono::floor<std::chrono::days>(start_of(*member));
    const std::int64_t key =
        by == TrendBy::Day ? day.time_since_epoch().count() : member->start_utc_ns;
    points[key].push_back(member);
  }
  return points;
}

TrendPoint point_of(const TrendMembers& members, TrendBy by) {
  const auto start = start_of(*members.front());
  TrendPoint point{
      .at = by == TrendBy::Day
                ? std::format("{:%F}", std::chrono::floor<std::chrono::days>(start))
                : std::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(start)),
      .sessions = {}};
  for (const TrendMember* member : members) point.sessions.push_back(member->name);
  return point;
}

// The figures in the order of the first session that has them.
std::vector<TrendFigure> named_figures(const TrendMembers& members) {
  std::vector<TrendFigure> figures;
  std::set<std::string> seen;
  for (const TrendMember* member : members)
    for (const SetFigure& of : member->measured.figures)
      if (seen.insert(of.name).second) figures.push_back({.name = of.name, .unit = of.unit});
  return figures;
}

void add_trend(TrendFigure& figure, const std::map<std::int64_t, TrendMembers>& points,
               const TrendQuery& query) {
  std::vector<double> x, y;
  double at = 0;
  for (const auto& [key, members] : points) {
    std::vector<double> values;
    for (const TrendMember* member : members) {
      const auto& figures = member->measured.figures;
      const auto of = std::ranges::find(figures, figure.name, &SetFigure::name);
      if (of == figures.end()) continue;
      if (of->disturbed && query.leave_out == LeaveOut::Disturbed) {
        ++figure.disturbed;
      } else {
        values.push_back(of->value);
      }
    }
    figure.points.push_back(median_of(std::move(values)));
    if (figure.points.back().samples > 0) {
      // Days without sessions count; sessions are numbered.
      x.push_back(query.by == TrendBy::Day ? static_cast<double>(key) : at);
      y.push_back(figure.points.back().median);
    }
    ++at;
  }
  if (y.size() < kLeastTrendPoints) return;
  figure.trend = trend_of(x, y);
  if (const double median = median_of(y).median; median > 0)
    figure.relative = figure.trend->slope / median;
}

bool has_disturbed(const TrendMember& member) {
  return std::ranges::any_of(member.measured.figures, &SetFigure::disturbed);
}

TrendGroup group_trend(const TrendMembers& members, const TrendQuery& query) {
  TrendGroup group{.model = members.front()->model, .sessions = members.size()};
  std::vector<SetMember> facts;
  for (const TrendMember* member : members) {
    facts.push_back({.facts = member->measured.facts, .figures = {}, .rows = {}});
    group.disturbed += query.leave_out == LeaveOut::Disturbed && has_disturbed(*member);
    group.disturbed_steps += member->measured.disturbed_steps;
  }
  std::set<std::string> mixed;
  common_facts(facts, mixed);
  group.mixed.assign(mixed.begin(), mixed.end());
  const auto points = points_of(members, query.by);
  for (const auto& [key, of] : points) group.points.push_back(point_of(of, query.by));
  group.figures = named_figures(members);
  for (TrendFigure& figure : group.figures) add_trend(figure, points, query);
  return group;
}

// ---------------------------------------------------------------- words

std::string slope_text(FigureUnit unit, double slope) {
  const std::string sign = slope < 0 ? "-" : "";
  switch (unit) {
    case FigureUnit::Duration:
    case FigureUnit::Size:
      return sign + figure_text(unit, std::abs(slope));
    case FigureUnit::Share:
      return std::format("{:.3g} percentage points", 100 * slope);
    default:
      return std::format("{:.3g}", slope);
  }
}

std::string sentence_of(const TrendFigure& figure, TrendBy by) {
  std::string name = figure.name;
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  if (!figure.trend) {
    const auto points = std::ranges::count_if(
        figure.points, [](const SampleMedian& point) { return point.samples > 0; });
    return std::format("{}: no trend can be told from {}.", name,
                       counted(static_cast<std::uint64_t>(points), to_text(by)));
  }
  const TrendTest& trend = *figure.trend;
  if (!figure.significant)
    return std::format("{}: no significant trend (p = {:.2g}).", name, trend.p);
  std::string text = std::format("{}: {} by {} per {}", name, trend.rises > 0 ? "rises" : "falls",
                                 slope_text(figure.unit, std::abs(trend.slope)), to_text(by));
  if (figure.relative && figure.unit != FigureUnit::Share)
    text += std::format(" ({:.2g} %)", 100 * std::abs(*figure.relative));
  if (trend.low && trend.high)
    text += std::format(", 95 % interval {} to {}", slope_text(figure.unit, *trend.low),
                        slope_text(figure.unit, *trend.high));
  return text + std::format(" (p = {:.2g}).", trend.p);
}

}  // namespace

const char* to_text(TrendBy by) { return by == TrendBy::Day ? "day" : "session"; }

bool TrendGroup::too_few() const {
  return std::ranges::none_of(figures, [](const TrendFigure& of) { return of.trend.has_value(); });
}

std::expected<TrendMember, TraceError> trend_member(std::string name, const SessionIndex& index,
                                                    const SessionReader& reader,
                                                    const ContinueCheck& keep_going) {
  return set_member(index, reader, std::nullopt, keep_going).transform([&](SetMember measured) {
    const SessionInfo& info = index.info();
    FactsByName group = trend_group_of(info, measured.facts);
    shorten(measured.facts);
    return TrendMember{.name = std::move(name),
                       .start_utc_ns = info.start_utc_ns,
                       .model = group["model"],
                       .group = group,
                       .measured = std::move(measured)};
  });
}

SetTrend trend_over(const std::vector<TrendMember>& members, const TrendQuery& query) {
  SetTrend found{.by = query.by, .sessions = members.size()};
  std::map<FactsByName, TrendMembers> groups;
  for (const TrendMember& member : members) {
    if (member.start_utc_ns <= 0) {  // an imported log without times
      ++found.undated;
    } else {
      groups[member.group].push_back(&member);
    }
  }
  FactsByName common = groups.empty() ? FactsByName{} : groups.begin()->first;
  for (const auto& [facts, of] : groups)
    for (const ComparedFact& fact : differing_facts(common, facts)) common.erase(fact.name);
  for (auto& [facts, of] : groups) {
    std::ranges::stable_sort(of, {}, &TrendMember::start_utc_ns);
    TrendGroup& group = found.groups.emplace_back(group_trend(of, query));
    for (const auto& [name, value] : facts)
      if (!common.contains(name) && name != "model") group.settings.emplace(name, value);
  }
  std::ranges::stable_sort(found.groups, std::greater{}, &TrendGroup::sessions);
  std::vector<double> p;
  std::vector<TrendFigure*> tested;
  for (TrendGroup& group : found.groups) {
    for (TrendFigure& figure : group.figures) {
      if (!figure.trend) continue;
      tested.push_back(&figure);
      p.push_back(figure.trend->p);
    }
  }
  const std::vector<bool> significant = differ(p);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->significant = significant[i];
  for (TrendGroup& group : found.groups)
    for (TrendFigure& figure : group.figures) figure.sentence = sentence_of(figure, query.by);
  return found;
}

std::vector<std::string> sentences_of(const TrendGroup& group, TrendBy by) {
  std::vector<std::string> sentences;
  if (group.points.size() < kLeastTrendPoints) {
    sentences.push_back(std::format("No trend can be told from {}: at least {} are needed.",
                                    counted(group.points.size(), to_text(by)), kLeastTrendPoints));
  } else if (group.too_few()) {
    sentences.push_back(std::format("No trend can be told: no figure is known of {}.",
                                    counted(kLeastTrendPoints, to_text(by))));
  } else {
    for (const TrendFigure& figure : group.figures) sentences.push_back(figure.sentence);
  }
  return sentences;
}

static Fields<TrendPoint> fields_of(const TrendPoint*) {
  return Fields<TrendPoint>()
      .add("at", "day, or start of the session, in UTC (ISO 8601)", &TrendPoint::at)
      .add("sessions", "", &TrendPoint::sessions);
}

static Fields<TrendTest> fields_of(const TrendTest*) {
  const fields::Notes few{.null = "fewer than 5 points"};
  return Fields<TrendTest>()
      .add("points", "points that have the figure", &TrendTest::points)
      .add("rises", "pairs of points that rise minus those that fall", &TrendTest::rises)
      .add("p",
           "probability that the values in an arbitrary order have as many rises or falls "
           "(Mann-Kendall test, two-sided)",
           &TrendTest::p)
      .add("slope", "per day or session: the median of the slopes of all pairs (Theil-Sen)",
           &TrendTest::slope)
      .add("low",
           "start of the interval that contains the slope with a probability of at least 95 %",
           &TrendTest::low, few)
      .add("high", "end of this interval", &TrendTest::high, few);
}

static Fields<TrendFigure> fields_of(const TrendFigure*) {
  return Fields<TrendFigure>("SetTrendFigure")
      .add("name", "", &TrendFigure::name)
      .add("unit", "", &TrendFigure::unit)
      .add("points",
           "medians of the sessions of each of the group's `points`; null: no session "
           "has the figure, or all were disturbed",
           [](const TrendFigure& of) {
             std::vector<std::optional<SampleMedian>> points;
             for (const SampleMedian& point : of.points)
               points.push_back(point.samples == 0 ? std::nullopt : std::optional(point));
             return points;
           })
      .add("disturbed_sessions", "sessions whose value is left out", &TrendFigure::disturbed)
      .add("trend", "", &TrendFigure::trend, {.null = "fewer than 5 points"})
      .add("relative", "the slope, divided by the median of the points", &TrendFigure::relative,
           {.null = "there is no slope, or the median is 0"})
      .add("significant",
           "judged together with all figures of all groups (Benjamini-Hochberg, 5 %)",
           &TrendFigure::significant)
      .add("sentence", "the result in a sentence", &TrendFigure::sentence);
}

static Fields<TrendGroup> fields_of(const TrendGroup*) {
  return Fields<TrendGroup>()
      .add("model", "file name of the model", &TrendGroup::model)
      .add("settings", "model, settings and machine, as far as groups differ in them",
           &TrendGroup::settings)
      .add("mixed_facts", "names of other facts that differ within the group", &TrendGroup::mixed)
      .add("sessions", "", &TrendGroup::sessions)
      .add("disturbed_sessions", "sessions of which figures are left out", &TrendGroup::disturbed)
      .add("disturbed_steps", "steps that the evaluation times leave out",
           &TrendGroup::disturbed_steps)
      .add("points", "days or sessions, ascending", &TrendGroup::points)
      .add("figures", "", &TrendGroup::figures)
      .add("too_few", "no figure has the 5 points that a trend needs", &TrendGroup::too_few);
}

Fields<SetTrend> fields_of(const SetTrend*) {
  return Fields<SetTrend>("SetTrend")
      .add("by", "what the points of a trend are", &SetTrend::by)
      .add("sessions", "", &SetTrend::sessions)
      .add("undated_sessions", "sessions without a start time, which no group has",
           &SetTrend::undated)
      .add("groups",
           "sessions with one model, the same settings and one machine; the group with the "
           "most sessions first",
           &SetTrend::groups);
}

}  // namespace tt
