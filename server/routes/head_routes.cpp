// Attention heads: their bytes in the weights, and KV cache reads per step.
#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "api/json/analysis/head_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kDefaultKvSteps = 1000;

}  // namespace

void add_head_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  http.Get("/api/v1/sessions/:id/heads", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response,
                           [&](ParameterReader&) { return head_table; });
  });

  http.Get("/api/v1/sessions/:id/kv", [&](const Request& request, Response& response) {
    handle_session_query(sessions, queue, request, response, [&](ParameterReader& read) {
      const PageRange range = read.take(page_parameters(request, kDefaultKvSteps));
      return [range](const SessionReader& reader, const ContinueCheck& keep_going) {
        return kv_use(reader, range, keep_going);
      };
    });
  });
}

}  // namespace tt
