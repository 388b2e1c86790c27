#include "server/answers.h"
#include "server/routes.h"

namespace tt {

namespace {

constexpr std::uint64_t kUsualSessions = 100;

using Request = httplib::Request;
using Response = httplib::Response;

}  // namespace

void add_session_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions", [&sessions](const Request& request, Response& response) {
    const auto range = page_parameters(request, kUsualSessions, "offset");
    if (!range) return answer(response, range.error());
    const auto page = sessions.list(*range);
    if (!page) return answer(response, problem_of(page.error()));
    answer(response, to_json(*page));
  });

  http.Get("/api/v1/sessions/:id", [&sessions](const Request& request, Response& response) {
    const auto entry = sessions.entry(request.path_params.at("id"));
    if (!entry) return answer(response, problem_of(entry.error()));
    answer(response, to_json(*entry));
  });
}

}  // namespace tt
