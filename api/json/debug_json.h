// The body and the answers of /api/v1/generate/{id}/debug (tracer/debug/debugger.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/json/json.h"
#include "api/json/problem.h"
#include "tracer/request/debug_state.h"

namespace tt {

// What a client wants of a run that can be stopped: exactly one of these.
struct ResumeRun {
  RunUntil until = RunUntil::Breakpoint;
  std::uint32_t count = 1;
};
struct StopRun {};
struct AddBreakpoint {
  std::string text;
};
struct DeleteBreakpoint {
  std::uint32_t number = 0;
};
struct ChangeOutput {
  std::string text;
  bool keep = false;  // in all later steps
};
struct ReleaseChange {
  std::uint32_t number = 0;
};
using DebugCommand =
    std::variant<ResumeRun, StopRun, AddBreakpoint, DeleteBreakpoint, ChangeOutput, ReleaseChange>;

std::expected<DebugCommand, Problem> parse_debug_command(std::string_view body);

struct DebugState {
  std::optional<DebugStop> stop;
  std::optional<std::chrono::milliseconds> time_left;
  std::vector<NumberedBreakpoint> breakpoints;
  std::vector<MadeChange> changes;
  std::vector<KeptChange> kept;
  WatchedPage watched;
};
Json to_json(const DebugState& state);
Json to_json(const TensorValues& values);

}  // namespace tt
