// A route for each row of analysis/analyses.h.
#include <string>
#include <utility>

#include "analysis/analyses.h"
#include "analysis/common/verdict.h"
#include "api/json/result_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/session_cache.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

// "steps/{step}/residency" as a pattern of cpp-httplib.
std::string pattern_of(const Analysis& row) {
  std::string pattern = "/api/v1/sessions/:id/";
  for (const char* c = row.path; *c != '\0'; ++c) {
    if (*c == '{') pattern += ':';
    if (*c != '{' && *c != '}') pattern += *c;
  }
  return pattern;
}

Problem problem_of(const Request& request, const ParameterError& error) {
  if (error.in_path) {
    return {ErrorCode::NotFound,
            "\"" + shortened(request.path_params.at(error.name)) + "\" " + error.detail};
  }
  return parameter_problem(error.name, error.detail);
}

OrProblem<Question> question_of(const Analysis& row, const Request& request) {
  const auto text = [&](const std::string& name) -> std::optional<std::string> {
    if (const auto in_path = request.path_params.find(name); in_path != request.path_params.end())
      return in_path->second;
    if (!request.has_param(name)) return std::nullopt;
    return request.get_param_value(name);
  };
  return row.parse(text).transform_error(
      [&](const ParameterError& error) { return problem_of(request, error); });
}

// Cost::Index: whether the index was built before.
Work work_of(const Analysis& row, const Request& request, SessionStore& sessions,
             const IndexCache& indexes) {
  if (row.cost == Analysis::Cost::Little) return Work::Small;
  if (row.cost == Analysis::Cost::AllSteps) return Work::AllSteps;
  const bool clean = request.get_param_value("clean") == "true";
  const std::string& id = request.path_params.at("id");
  const bool is_built =
      indexes.is_built(clean ? LeaveOut::Disturbed : LeaveOut::Nothing, id, sessions.tag(id));
  return is_built ? Work::Small : Work::AllSteps;
}

}  // namespace

void add_analysis_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                         QueryQueue& queue) {
  for (const Analysis& row : analyses()) {
    http.Get(pattern_of(row), [&row, &sessions, &indexes, &queue](const Request& request,
                                                                  Response& response) {
      const auto make_query = [&](ParameterReader& read) {
        return [&sessions, &indexes, id = request.path_params.at("id"),
                question = read.take(question_of(row, request))](const SessionReader& reader,
                                                                 const ContinueCheck& keep_going) {
          const Subject subject{
              .reader = reader, .index = [&](LeaveOut leave_out, const ContinueCheck& check) {
                return indexes.get_or_build(leave_out, id, sessions.tag(id), reader, check);
              }};
          return question(subject, keep_going).transform(json_of);
        };
      };
      handle_session_query(sessions, queue, request, response, make_query,
                           work_of(row, request, sessions, indexes));
    });
  }
}

}  // namespace tt
