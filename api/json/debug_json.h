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
  friend bool operator==(const ResumeRun&, const ResumeRun&) = default;
};
struct StopRun {
  friend bool operator==(const StopRun&, const StopRun&) = default;
};
struct AddBreakpoint {
  std::string text;
  friend bool operator==(const AddBreakpoint&, const AddBreakpoint&) = default;
};
struct DeleteBreakpoint {
  std::uint32_t number = 0;
  friend bool operator==(const DeleteBreakpoint&, const DeleteBreakpoint&) = default;
};
struct ChangeOutput {
  std::string text;
  bool keep = false;  // in all later steps
  friend bool operator==(const ChangeOutput&, const ChangeOutput&) = default;
};
struct ReleaseChange {
  std::uint32_t number = 0;
  friend bool operator==(const ReleaseChange&, const ReleaseChange&) = default;
};
using DebugCommand =
    std::variant<ResumeRun, StopRun, AddBreakpoint, DeleteBreakpoint, ChangeOutput, ReleaseChange>;

std::expected<DebugCommand, Problem> parse_debug_command(std::string_view body);
std::expected<DebugCommand, Problem> debug_command_of(const Json& json);

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
