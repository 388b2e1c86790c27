// What a stopped run shows (tracer/debug/debugger.h), as values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

// Which op of a run.
struct OpPlace {
  StepId step;
  std::uint32_t first_token = 0, n_tokens = 0;  // that the step evaluates
  OpId op;                                      // in the step
  LayerId layer = kNoLayer;
  std::string operation;  // as ggml describes it: "MUL_MAT", "SILU"
  std::string name;       // of its output
};

// What the output of an op is like. The numbers are of its finite elements.
struct OutputStatistics {
  double min = 0, max = 0, mean = 0, std = 0, norm = 0;
  std::uint64_t elements = 0, nan = 0, inf = 0;
};

// What can be read at a stop: the output of the op and its sources.
struct StoppedTensor {
  std::string label;  // "output", "src0", "src1"...
  std::string name, type;
  std::array<std::uint64_t, 4> ne{};  // innermost first
  std::string unreadable;             // why its values cannot be read; empty: they can
};

struct DebugStop {
  std::uint64_t number = 0;  // of the run, from 1
  OpPlace place;
  bool is_before = false;                  // the op has not run
  std::vector<std::uint32_t> breakpoints;  // numbers of those that stopped it; empty: a step
  std::vector<StoppedTensor> tensors;
  // The parts of the output that a change can choose: all, indices, head, expert. Empty: it cannot
  // be changed.
  std::vector<std::string> changeable{};
};

struct TensorValues {
  std::array<std::uint64_t, 4> ne{};  // of the selected elements, innermost first
  std::vector<float> values;          // of them, in memory order; integers are converted
  OutputStatistics statistics;        // of them
};

// What an op computed that a `watch` matches.
struct WatchedOutput {
  std::uint32_t breakpoint = 0;
  OpPlace place;
  std::optional<OutputStatistics> statistics;  // nullopt: not numbers
};

// A page of them. `first`: the number of the first row among all of the run; older rows are gone if
// it is larger than what was asked for.
struct WatchedPage {
  std::uint64_t first = 0;
  std::vector<WatchedOutput> rows;
};

// How far a stopped run goes on: to a breakpoint, or until `count` ops have run, an op of another
// layer has, or the first op of another step has.
enum class RunUntil : std::uint8_t { Breakpoint, Op, Layer, Step };

struct NumberedBreakpoint {
  std::uint32_t number = 0;
  std::string text;
  std::uint64_t hits = 0;
};

// A change that was made (tracer/debug/change.h), as the session records it. One that is kept has a
// record for each run of steps in which it changed as many elements at the same op.
struct MadeChange {
  OpPlace place;  // in the first step
  std::string text;
  std::uint64_t elements = 0;  // in each step
  StepId last_step;
  std::uint32_t kept = 0;  // number of the kept change; 0: made once
  // Of the last record of a kept change that needed another one, but there were too many: the step
  // from which on it is not made.
  std::optional<StepId> ended{};
};

// A change that is made again in each later step, at the same op.
struct KeptChange {
  std::uint32_t number = 0;  // of the run, from 1
  OpPlace place;             // where it was made first
  std::string text;
  std::uint64_t steps = 0;  // in which it was made
  std::string problem;      // why it was not made in the last step; empty: it was
};

}  // namespace tt
