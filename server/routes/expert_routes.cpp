// Experts: usage, details of one router, experts per token, and the effect of pinning and caches.
#include <limits>
#include <optional>

#include "analysis/experts/expert_cache.h"
#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "api/json/analysis/expert_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

DetailLimits detail_limits(const Request& request, ParameterReader& read) {
  DetailLimits limits;
  limits.pairs = read.take(number_parameter(request, "pairs", kMaxRows)).value_or(limits.pairs);
  constexpr std::uint64_t kMaxTokens = 100;  // per expert
  limits.tokens =
      read.take(number_parameter(request, "tokens", kMaxTokens)).value_or(limits.tokens);
  return limits;
}

}  // namespace

void add_expert_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  http.Get("/api/v1/sessions/:id/experts", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
      const auto phase = read.take(enum_parameter(request, "phase", Phase::Other));
      return [phase](const SessionReader& reader, const ContinueCheck& keep_going) {
        return expert_use(reader, phase, keep_going);
      };
    });
  });

  http.Get("/api/v1/sessions/:id/experts/layers/:layer",
           [&](const Request& request, Response& response) {
             handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
               const LayerId layer = read.take(layer_in_path(request));
               const auto router = read.take(number_parameter(request, "router", kMaxId));
               const auto phase = read.take(enum_parameter(request, "phase", Phase::Other));
               const DetailLimits limits = detail_limits(request, read);
               return [=](const SessionReader& reader, const ContinueCheck& keep_going) {
                 return router_detail(reader, layer, static_cast<std::uint32_t>(router.value_or(0)),
                                      phase, limits, keep_going);
               };
             });
           });

  http.Get("/api/v1/sessions/:id/experts/tokens", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
      const auto layer = read.take(layer_parameter(request));
      const PageRange range = read.take(page_parameters(request, kDefaultRows));
      return [=](const SessionReader& reader, const ContinueCheck& keep_going) {
        return token_experts(reader, layer, range, keep_going);
      };
    });
  });

  http.Get("/api/v1/sessions/:id/experts/pinning", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
      const auto bytes = read.take(number_parameter(request, "capacity", kMaxJsonInteger));
      std::vector<Bytes> capacities;
      if (bytes) capacities.push_back(Bytes{*bytes});
      return [capacities](const SessionReader& reader, const ContinueCheck& keep_going) {
        return expert_pinning(reader, capacities, keep_going);
      };
    });
  });

  http.Get("/api/v1/sessions/:id/experts/caches", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
      const auto phase = read.take(enum_parameter(request, "phase", Phase::Other));
      const auto slots = read.take(number_parameter(request, "slots", kMaxExpertSlots));
      if (slots == 0)
        read.take(OrProblem<int>(
            std::unexpected(Problem{ErrorCode::BadRequest, "slots must be at least 1."})));
      std::vector<std::uint32_t> sizes;
      if (slots) sizes.push_back(static_cast<std::uint32_t>(*slots));
      return [=](const SessionReader& reader, const ContinueCheck& keep_going) {
        return expert_caches(reader, phase, sizes, keep_going);
      };
    });
  });
}

}  // namespace tt
