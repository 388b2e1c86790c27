// Whether the figures of sessions rise or fall over days or from session to session: those of
// set_comparison.h, of the sessions with one model, one machine and the same settings
// (docs/sets.md). Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"
#include "analysis/report/set_comparison.h"
#include "analysis/sets/mann_kendall.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Reads every step of each session; slopes grow with the square of the points.
inline constexpr std::size_t kMaxTrendSessions = 1000;

// What a trend keeps of a session.
struct TrendMember {
  std::string name;
  std::int64_t start_utc_ns = 0;
  std::string model;   // file name
  FactsByName group;   // model, settings and machine: those of one trend are equal
  SetMember measured;  // without rows; of long facts, a hash
};
std::expected<TrendMember, TraceError> trend_member(std::string name, const SessionIndex& index,
                                                    const SessionReader& reader,
                                                    const ContinueCheck& keep_going = never_cancel);

// What the points of a trend are. Day: of the sessions that started on one day (UTC). Session: each
// session, or several that started in the same nanosecond.
enum class TrendBy : std::uint8_t { Day, Session };
const char* to_text(TrendBy);

struct TrendPoint {
  std::string at;  // "2026-11-29", "2026-11-29T13:45:00Z"
  std::vector<std::string> sessions;
};
struct TrendFigure {
  std::string name;
  FigureUnit unit = FigureUnit::Duration;
  // One for each point of the group. No samples: no session has the figure undisturbed.
  std::vector<SampleMedian> points{};
  std::uint64_t disturbed = 0;       // sessions that are left out
  std::optional<TrendTest> trend{};  // none: fewer than kLeastTrendPoints points
  std::optional<double> relative{};  // the slope, divided by the median of the points
  bool significant = false;          // judged together with the other figures (differ())
  std::string sentence{};
};
struct TrendGroup {
  std::string model;
  FactsByName settings{};            // in which it differs from other groups
  std::vector<std::string> mixed{};  // other facts that differ within the group, by name
  std::uint64_t sessions = 0;
  std::uint64_t disturbed = 0;        // sessions of which figures are left out
  std::uint64_t disturbed_steps = 0;  // that the evaluation times leave out
  std::vector<TrendPoint> points{};
  std::vector<TrendFigure> figures{};
  // None of the figures has enough points.
  bool too_few() const;
};
struct SetTrend {
  TrendBy by = TrendBy::Day;
  std::uint64_t sessions = 0;
  std::uint64_t undated = 0;         // sessions without a start time; in no group
  std::vector<TrendGroup> groups{};  // the one with the most sessions first
};

struct TrendQuery {
  TrendBy by = TrendBy::Day;
  // Nothing: times and rates that the machine disturbed count, too.
  LeaveOut leave_out = LeaveOut::Disturbed;
};
SetTrend trend_over(const std::vector<TrendMember>& members, const TrendQuery& query = {});

// The result in sentences: that there are too few points, or one sentence for each figure.
std::vector<std::string> sentences_of(const TrendGroup& group, TrendBy by);

consteval columns::Enumeration words_of(TrendBy) { return columns::words_to("", TrendBy::Session); }
Fields<SetTrend> fields_of(const SetTrend*);

}  // namespace tt
