// What clients want of a request that can be stopped (docs/debug.md), over HTTP and over the live
// protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/json/debug_json.h"
#include "server/models/model_manager.h"

namespace tt {

class Debugger;

Problem not_stopped_problem();
Problem not_debugged_problem(const std::string& request);

// Carries out the command, if there is one. Returns the state afterwards, with what was watched
// from number `watched_from` on.
OrProblem<DebugState> debug_request(Debugger& debugger, const std::optional<DebugCommand>& command,
                                    std::uint64_t watched_from);
// The same of the request `id`, without what was watched.
OrProblem<DebugState> debug_request(const ModelManager& model_manager, const std::string& id,
                                    const std::optional<DebugCommand>& command);

}  // namespace tt
