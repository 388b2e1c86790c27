// Stopping and stepping a request (docs/debug.md).
#include <cstdint>
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "api/json/debug_json.h"
#include "server/http/parameters.h"
#include "server/http/responses.h"
#include "server/routes/routes.h"
#include "tracer/debug/debugger.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::size_t kMaxWatchedRows = 1000;                // of one answer
constexpr std::uint64_t kMaxWatchedFrom = (1ULL << 53) - 1;  // exact in JavaScript

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

Problem not_stopped() { return {ErrorCode::NotStopped, "The request is not stopped."}; }

DebugState state_of(const Debugger& debugger, std::uint64_t watched_from) {
  return {.stop = debugger.stop(),
          .time_left = debugger.time_left(),
          .breakpoints = debugger.breakpoints(),
          .changes = debugger.changes(),
          .kept = debugger.kept(),
          .watched = debugger.watched(watched_from, kMaxWatchedRows)};
}

// nullopt: done.
std::optional<Problem> execute(Debugger& debugger, const DebugCommand& command) {
  const auto bad = [](std::string why) {
    return std::optional(Problem{ErrorCode::BadRequest, std::move(why)});
  };
  return std::visit(
      Overloaded{[&](const ResumeRun& how) -> std::optional<Problem> {
                   if (!debugger.resume(how.until, how.count)) return not_stopped();
                   return {};
                 },
                 [&](const StopRun&) -> std::optional<Problem> {
                   debugger.interrupt();
                   return {};
                 },
                 [&](const AddBreakpoint& added) -> std::optional<Problem> {
                   const auto number = debugger.add(added.text);
                   return number ? std::nullopt : bad(number.error());
                 },
                 [&](const DeleteBreakpoint& deleted) -> std::optional<Problem> {
                   if (debugger.remove(deleted.number)) return {};
                   return bad(std::format("There is no breakpoint {}.", deleted.number));
                 },
                 [&](const ChangeOutput& change) -> std::optional<Problem> {
                   const auto parsed = Change::parse(change.text);
                   if (!parsed) return bad(parsed.error());
                   if (!debugger.stop()) return not_stopped();
                   const auto made = debugger.change(*parsed, change.keep);
                   return made ? std::nullopt : bad(made.error());
                 },
                 [&](const ReleaseChange& released) -> std::optional<Problem> {
                   if (debugger.release(released.number)) return {};
                   return bad(std::format("There is no kept change {}.", released.number));
                 }},
      command);
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
  if (!stop) return respond(response, not_stopped());
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
      respond(response, Problem{ErrorCode::NotFound,
                                "No request \"" + id +
                                    "\" that can be stopped waits or runs. Set \"breakpoints\" in "
                                    "the body of POST /api/v1/generate."});
    };
  };
  http.Get("/api/v1/generate/:id/debug",
           with_debugger([](const Request& request, Debugger& debugger, Response& response) {
             const auto from = number_parameter(request, "watched_from", kMaxWatchedFrom);
             if (!from) return respond(response, from.error());
             respond(response, to_json(state_of(debugger, from->value_or(0))));
           }));
  http.Post("/api/v1/generate/:id/debug",
            with_debugger([](const Request& request, Debugger& debugger, Response& response) {
              const auto command = parse_debug_command(request.body);
              if (!command) return respond(response, command.error());
              if (const auto problem = execute(debugger, *command))
                return respond(response, *problem);
              respond(response, to_json(state_of(debugger, UINT64_MAX)));
            }));
  http.Get("/api/v1/generate/:id/debug/values", with_debugger(respond_values));
}

}  // namespace tt
