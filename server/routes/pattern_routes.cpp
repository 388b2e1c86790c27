// Order of weight reads, its determinism, and cache hit estimates.
#include <array>
#include <string_view>
#include <utility>

#include "analysis/weights/pattern.h"
#include "analysis/weights/reuse.h"
#include "api/json/analysis/pattern_json.h"
#include "api/json/analysis/reuse_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::size_t kMaxSizes = 100;

ReuseQuery reuse_query(const Request& request, ParameterReader& read) {
  static constexpr std::array<std::string_view, 2> kGrains = {"part", "tensor"};
  ReuseQuery query;
  if (read.take(enum_parameter(request, "grain", kGrains, "part")) == "tensor")
    query.grain = Grain::Tensor;
  for (const std::uint64_t size :
       read.take(numbers_parameter(request, "sizes", kMaxJsonInteger, kMaxSizes)))
    query.capacities.push_back(Bytes{size});
  return query;
}

std::expected<Json, TraceError> pattern_of(const SessionReader& reader,
                                           const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto same = determinism(reader, keep_going);
  if (!same) return std::unexpected(same.error());
  return access_pattern(reader, keep_going).transform([&](const AccessPattern& pattern) {
    return to_json(pattern, *same, *info);
  });
}

}  // namespace

void add_pattern_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  http.Get("/api/v1/sessions/:id/reuse", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response, [&](ParameterReader& read) {
      return [query = reuse_query(request, read)](const SessionReader& reader,
                                                  const ContinueCheck& keep_going) {
        return reuse(reader, query, keep_going);
      };
    });
  });

  http.Get("/api/v1/sessions/:id/pattern", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response,
                           [&](ParameterReader&) { return pattern_of; });
  });

  http.Get("/api/v1/sessions/:id/determinism", [&](const Request& request, Response& response) {
    handle_expensive_query(sessions, queue, request, response,
                           [&](ParameterReader&) { return determinism; });
  });
}

}  // namespace tt
