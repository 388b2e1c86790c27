// Requests about sets of sessions: the bodies of the routes below /api/v1/sets.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/verdict.h"
#include "analysis/sets/generality.h"
#include "analysis/sets/set_trend.h"
#include "api/json/problem.h"
#include "api/json/query_json.h"

namespace tt {

// The sessions of a set, as a client names them: a list of ids, or what the list of sessions is
// filtered by (GET /api/v1/sessions). A filter without conditions selects all sessions.
struct SetSelector {
  std::vector<std::string> ids{};  // sorted, no two equal; empty: the filter
  std::string words{}, state{}, model{};
};

// Of one request. Each session of a statement is opened once or more; a comparison and generality()
// read every step of each session.
inline constexpr std::size_t kMaxQuerySessions = 1000;
inline constexpr std::size_t kMaxComparedSessions = 100;  // on each side

struct SetQueryBody {
  SetSelector sessions;
  QueryBody query;
};
std::expected<SetQueryBody, Problem> parse_set_query_body(std::string_view body);

struct SetComparisonBody {
  SetSelector left, right;
  Axis by = Axis::OpKind;  // one of kComparedAxes
  LeaveOut leave_out = LeaveOut::Nothing;
};
std::expected<SetComparisonBody, Problem> parse_set_comparison_body(std::string_view body);

struct GeneralityBody {
  SetSelector sessions;
  GeneralityQuery query;
};
std::expected<GeneralityBody, Problem> parse_generality_body(std::string_view body);

struct TrendBody {
  SetSelector sessions;
  TrendQuery query;
};
std::expected<TrendBody, Problem> parse_trend_body(std::string_view body);

}  // namespace tt
