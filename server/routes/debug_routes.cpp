// Stopping and stepping a request (docs/debug.md).
#include <cstdint>
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/json/debug_json.h"
#include "server/http/parameters.h"
#include "server/http/responses.h"
#include "server/models/debug_requests.h"
#include "server/routes/routes.h"
#include "tracer/debug/debugger.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kMaxWatchedFrom = (1ULL << 53) - 1;  // exact in JavaScript

void respond_state(Response& response, const OrProblem<DebugState>& state) {
  if (state) {
    respond(response, to_json(*state));
  } else {
    respond(response, state.error());
  }
}

void respond_values(const Request& request, const Debugger& debugger, Response& response) {
  const auto tensor = text_parameter(request, "tensor");
  if (!tensor) return respond(response, tensor.error());
  const auto indices = text_parameter(request, "indices");
  if (!indices) return respond(response, indices.error());
  auto selection = indices->empty() ? Selection{} : Selection::parse(*indices);
  if (!selection) return respond(response, Problem{ErrorCode::BadRequest, selection.error()});
  const auto limit = number_parameter(request, "limit", kMaxReadElements);
  if (!limit) return respond(response, limit.error());
  const auto wanted = number_parameter(request, "stop", kMaxJsonInteger);
  if (!wanted) return respond(response, wanted.error());
  const auto stop = debugger.stop();
  if (!stop) return respond(response, not_stopped_problem());
  auto read = debugger.read(*tensor, *selection);
  // Another client may have let it go on meanwhile: these would be values of another op.
  const auto after = debugger.stop();
  if (!after || after->number != wanted->value_or(stop->number))
    return respond(
        response, Problem{ErrorCode::NotStopped, std::format("The request is no longer at stop {}.",
                                                             wanted->value_or(stop->number))});
  if (!read) return respond(response, Problem{ErrorCode::BadRequest, read.error()});
  if (*limit && **limit < read->values.size()) read->values.resize(**limit);
  respond(response, to_json(*read));
}

}  // namespace

void add_debug_routes(httplib::Server& http, ModelManager& model_manager) {
  // Calls `handle` with the debugger of the request.
  const auto with_debugger = [&model_manager](auto handle) {
    return [&model_manager, handle](const Request& request, Response& response) {
      const std::string& id = request.path_params.at("id");
      const auto debugger = model_manager.debugger(id);
      if (debugger != nullptr) return handle(request, *debugger, response);
      respond(response, not_debugged_problem(id));
    };
  };
  http.Get("/api/v1/generate/:id/debug",
           with_debugger([](const Request& request, Debugger& debugger, Response& response) {
             const auto from = number_parameter(request, "watched_from", kMaxWatchedFrom);
             if (!from) return respond(response, from.error());
             respond_state(response, debug_request(debugger, std::nullopt, from->value_or(0)));
           }));
  http.Post("/api/v1/generate/:id/debug",
            with_debugger([](const Request& request, Debugger& debugger, Response& response) {
              const auto command = parse_debug_command(request.body);
              if (!command) return respond(response, command.error());
              respond_state(response, debug_request(debugger, *command, UINT64_MAX));
            }));
  http.Get("/api/v1/generate/:id/debug/values", with_debugger(respond_values));
}

}  // namespace tt
