#include "server/models/debug_requests.h"

#include <cstddef>
#include <format>
#include <utility>
#include <variant>

#include "tracer/debug/debugger.h"

namespace tt {

namespace {

constexpr std::size_t kMaxWatchedRows = 1000;  // of one answer

template <class... Handlers>
struct CommandHandlers : Handlers... {
  using Handlers::operator()...;
};

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
      CommandHandlers{[&](const ResumeRun& how) -> std::optional<Problem> {
                        if (!debugger.resume(how.until, how.count)) return not_stopped_problem();
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
                        if (!debugger.stop()) return not_stopped_problem();
                        const auto made = debugger.change(*parsed, change.keep);
                        return made ? std::nullopt : bad(made.error());
                      },
                      [&](const ReleaseChange& released) -> std::optional<Problem> {
                        if (debugger.release(released.number)) return {};
                        return bad(std::format("There is no kept change {}.", released.number));
                      }},
      command);
}

}  // namespace

Problem not_stopped_problem() { return {ErrorCode::NotStopped, "The request is not stopped."}; }

Problem not_debugged_problem(const std::string& request) {
  return {ErrorCode::NotFound, "No request \"" + request +
                                   "\" that can be stopped waits or runs. Set \"breakpoints\" in "
                                   "the body of POST /api/v1/generate."};
}

OrProblem<DebugState> debug_request(Debugger& debugger, const std::optional<DebugCommand>& command,
                                    std::uint64_t watched_from) {
  if (command)
    if (auto problem = execute(debugger, *command)) return std::unexpected(*std::move(problem));
  return state_of(debugger, watched_from);
}

OrProblem<DebugState> debug_request(const ModelManager& model_manager, const std::string& id,
                                    const std::optional<DebugCommand>& command) {
  const auto debugger = model_manager.debugger(id);
  if (debugger == nullptr) return std::unexpected(not_debugged_problem(id));
  return debug_request(*debugger, command, UINT64_MAX);
}

}  // namespace tt
