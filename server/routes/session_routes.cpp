// Sessions: list, show, rename, delete, restore. Their files are in session_file_routes.cpp,
// their recorded data in trace_routes.cpp.
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/parameters.h"
#include "server/http/responses.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

constexpr std::uint64_t kDefaultSessions = 100;

using Request = httplib::Request;
using Response = httplib::Response;

const std::string& id_of(const Request& request) { return request.path_params.at("id"); }

constexpr std::array<std::pair<std::string_view, SessionKey>, 6> kKeys = {{
    {"start", SessionKey::Start},
    {"title", SessionKey::Title},
    {"model", SessionKey::Model},
    {"steps", SessionKey::Steps},
    {"tokens", SessionKey::Tokens},
    {"bytes", SessionKey::FileBytes},
}};

std::expected<SessionQuery, Problem> query_of(const Request& request) {
  SessionQuery query;
  constexpr std::array<std::string_view, 12> kSorts = {"start",  "-start",  "title", "-title",
                                                       "model",  "-model",  "steps", "-steps",
                                                       "tokens", "-tokens", "bytes", "-bytes"};
  auto words = text_parameter(request, "q");
  auto state = enum_parameter(request, "state", kSessionStates);
  auto model = text_parameter(request, "model");
  const auto sort = enum_parameter(request, "sort", kSorts, "-start");
  const auto page = page_parameters(request, kDefaultSessions);
  if (!words) return std::unexpected(words.error());
  if (!state) return std::unexpected(state.error());
  if (!model) return std::unexpected(model.error());
  if (!sort) return std::unexpected(sort.error());
  if (!page) return std::unexpected(page.error());
  query.words = *std::move(words);
  query.state = *std::move(state);
  query.model = *std::move(model);
  query.page = *page;
  query.descending = sort->starts_with('-');
  const std::string_view key = std::string_view(*sort).substr(query.descending ? 1 : 0);
  for (const auto& [name, value] : kKeys)
    if (name == key) query.key = value;
  return query;
}

void respond_session(Response& response, const std::expected<SessionEntry, TraceError>& session) {
  if (!session) return respond(response, problem_of(session.error()));
  respond(response, to_json(*session));
}

}  // namespace

void add_session_list_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions", [&sessions](const Request& request, Response& response) {
    const auto query = query_of(request);
    if (!query) return respond(response, query.error());
    const auto page = sessions.list(*query);
    if (!page) return respond(response, problem_of(page.error()));
    respond(response, to_json(*page));
  });

  http.Get("/api/v1/sessions/:id", [&sessions](const Request& request, Response& response) {
    if (not_modified(request, response, sessions.tag(id_of(request)))) return;
    respond_session(response, sessions.entry(id_of(request)));
  });

  http.Patch("/api/v1/sessions/:id", [&sessions](const Request& request, Response& response) {
    const auto title = parse_title_body(request.body);
    if (!title) return respond(response, title.error());
    respond_session(response, sessions.rename(id_of(request), *title));
  });

  http.Delete("/api/v1/sessions/:id", [&sessions](const Request& request, Response& response) {
    const auto deleted = sessions.remove(id_of(request));
    if (!deleted) return respond(response, problem_of(deleted.error()));
    respond(response,
            Json{{"id", deleted->id}, {"restore_until_utc_ns", deleted->restore_until_utc_ns}});
  });

  http.Post("/api/v1/sessions/:id/restore",
            [&sessions](const Request& request, Response& response) {
              respond_session(response, sessions.restore(id_of(request)));
            });
}

void add_session_routes(httplib::Server& http, const SessionServices& services) {
  const auto& [sessions, retention, caches, indexes, totals, queue, statements, page] = services;
  add_session_list_routes(http, sessions);
  add_export_routes(http, sessions, retention, page);
  add_trace_routes(http, sessions, indexes, queue);
  add_analysis_routes(http, sessions, indexes, queue);
  add_values_routes(http, sessions, queue);
  add_heat_routes(http, sessions, indexes, queue);
  add_query_routes(http, sessions, totals, statements);
  add_set_routes(http, sessions, indexes, queue);
  add_graph_routes(http, sessions, queue);
  add_report_routes(http, sessions, indexes, queue);
}

}  // namespace tt
