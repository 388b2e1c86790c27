// Questions about sets of sessions: the comparison of two sets, whether what is learned on one
// session holds for others, and trends over days. SQL over a set is in query_routes.cpp.
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/report/set_comparison.h"
#include "api/json/result_json.h"
#include "api/json/set_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/set_selection.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

TraceError named(const std::string& id, TraceError error) {
  error.message = std::format("Session {}: {}", id, error.message);
  return error;
}

// `read(id, index, reader)` returns what is kept of a session.
template <class Read>
auto read_sessions(SessionStore& sessions, IndexCache& indexes, const std::vector<std::string>& ids,
                   LeaveOut leave_out, const ContinueCheck& keep_going, const Read& read) {
  using Kept = std::invoke_result_t<const Read&, const std::string&, const SessionIndex&,
                                    const SessionReader&>::value_type;
  using All = std::expected<std::vector<Kept>, TraceError>;
  std::vector<Kept> all;
  for (const std::string& id : ids) {
    const auto tag = sessions.tag(id);  // before opening: the file may change
    auto reader = sessions.open(id);
    if (!reader) return All(std::unexpected(named(id, std::move(reader.error()))));
    auto kept = indexes.get_or_build(leave_out, id, tag, *reader, keep_going)
                    .and_then([&](const std::shared_ptr<const SessionIndex>& index) {
                      return read(id, *index, *reader);
                    });
    if (!kept) return All(std::unexpected(named(id, std::move(kept.error()))));
    all.push_back(*std::move(kept));
  }
  return All(std::move(all));
}

std::expected<std::vector<SetMember>, TraceError> members_of(SessionStore& sessions,
                                                             IndexCache& indexes,
                                                             const std::vector<std::string>& ids,
                                                             const SetComparisonBody& body,
                                                             const ContinueCheck& keep_going) {
  return read_sessions(
      sessions, indexes, ids, body.leave_out, keep_going,
      [&](const std::string&, const SessionIndex& index, const SessionReader& reader) {
        return set_member(index, reader, body.by, keep_going);
      });
}

void compare(SessionStore& sessions, IndexCache& indexes, QueryQueue& queue, const Request& request,
             Response& response) {
  const auto body = parse_set_comparison_body(request.body);
  if (!body) return respond(response, body.error());
  const auto left = select_set(sessions, body->left, kMaxComparedSessions);
  if (!left) return respond(response, left.error());
  const auto right = select_set(sessions, body->right, kMaxComparedSessions);
  if (!right) return respond(response, right.error());
  std::vector<std::string> all = *left;
  all.insert(all.end(), right->begin(), right->end());
  queue.respond(request, response, {.version = tag_of_set(sessions, all), .body = request.body},
                [&sessions, &indexes, body = *body, left = *left, right = *right](
                    Response& out, const ContinueCheck& keep_going) {
                  const auto before = members_of(sessions, indexes, left, body, keep_going);
                  if (!before) return respond(out, problem_of(before.error()));
                  const auto after = members_of(sessions, indexes, right, body, keep_going);
                  if (!after) return respond(out, problem_of(after.error()));
                  respond(out, to_json(compare_sets(*before, *after)));
                });
}

void try_generality(SessionStore& sessions, QueryQueue& queue, const Request& request,
                    Response& response) {
  const auto body = parse_generality_body(request.body);
  if (!body) return respond(response, body.error());
  const auto ids = select_set(sessions, body->sessions, kMaxGeneralitySessions);
  if (!ids) return respond(response, ids.error());
  if (ids->size() < 2) {
    return respond(response, Problem{ErrorCode::BadRequest,
                                     "One session has nothing to compare with. Name several."});
  }
  queue.respond(
      request, response, {.version = tag_of_set(sessions, *ids), .body = request.body},
      [&sessions, ids = *ids, query = body->query](Response& out, const ContinueCheck& keep_going) {
        const auto found = generality(
            ids, [&](std::size_t i) { return sessions.open(ids[i]); }, query, keep_going);
        if (!found) return respond(out, problem_of(found.error()));
        respond(out, to_json(*found));
      });
}

void find_trend(SessionStore& sessions, IndexCache& indexes, QueryQueue& queue,
                const Request& request, Response& response) {
  const auto body = parse_trend_body(request.body);
  if (!body) return respond(response, body.error());
  const auto ids = select_set(sessions, body->sessions, kMaxTrendSessions);
  if (!ids) return respond(response, ids.error());
  queue.respond(
      request, response, {.version = tag_of_set(sessions, *ids), .body = request.body},
      [&sessions, &indexes, ids = *ids, query = body->query](Response& out,
                                                             const ContinueCheck& keep_going) {
        const auto members = read_sessions(
            sessions, indexes, ids, LeaveOut::Nothing, keep_going,
            [&](const std::string& id, const SessionIndex& index, const SessionReader& reader) {
              return trend_member(id, index, reader, keep_going);
            });
        if (!members) return respond(out, problem_of(members.error()));
        respond(out, to_json(trend_over(*members, query)));
      });
}

}  // namespace

void add_set_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                    QueryQueue& queue) {
  http.Post("/api/v1/sets/comparison", [&](const Request& request, Response& response) {
    compare(sessions, indexes, queue, request, response);
  });
  http.Post("/api/v1/sets/generality", [&](const Request& request, Response& response) {
    try_generality(sessions, queue, request, response);
  });
  http.Post("/api/v1/sets/trend", [&](const Request& request, Response& response) {
    find_trend(sessions, indexes, queue, request, response);
  });
}

}  // namespace tt
