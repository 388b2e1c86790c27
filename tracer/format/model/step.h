// One evaluation of a graph: template id, one end time per executed op, and the
// facts that really vary. A value; on-disk layout: docs/trace-format.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

enum class Phase : std::uint8_t { Prompt, Generate, Encode, Embed, Other };

// How a step's times were taken. Fast: the abort clock. Learned: exact, because
// the graph was new and its op boundaries were being observed. Exact: asked
// for, or the graph cannot be timed fast (another device, counts that vary).
// None: level MINIMAL, or the step's times were dropped (then `dropped`).
enum class Timing : std::uint8_t { Fast, Learned, Exact, None };

// Values of one Slot of the template in this step.
struct SlotValues {
  std::vector<std::int64_t> ints;  // ids, positions, rows; experts token-major
  std::vector<float> floats;       // ExpertScores, token-major, rank within token
  friend bool operator==(const SlotValues&, const SlotValues&) = default;
};

// VERBOSE: what an op's output held. NaN and Inf are counted, not averaged.
struct ValueStats {
  OpId op;
  float min = 0, max = 0, mean = 0, std = 0;
  std::uint64_t nan = 0, inf = 0;
  friend bool operator==(const ValueStats&, const ValueStats&) = default;
};

struct Step {
  StepId id;
  Phase phase = Phase::Other;
  Timing timing = Timing::None;
  TemplateId graph{};             // {} (0): not recorded (level MINIMAL or dropped)
  AllocationId allocation{};      // {} (0): none
  Ns begin{}, end{};              // around llama_decode / llama_encode
  Ns first_op{};                  // when the first op could begin
  std::vector<Ns> op_ends;        // per op of the template; shorter when the step was cancelled
  std::uint32_t n_tokens = 0;     // evaluated in this step
  std::uint32_t first_token = 0;  // index into the session's tokens of the first of them
  std::uint32_t threads = 0;
  bool dropped = false;           // no free buffer: times and slots are missing, tokens are not
  bool aborted = false;           // cancelled or failed inside
  std::vector<SlotValues> slots;  // per slot of the template; empty when not recorded
  std::vector<ValueStats> stats;

  // How many of its template's `ops` ran. They do so in order; times that were not kept
  // say nothing: such a step ran whole unless it was cancelled.
  std::size_t ops_run(std::size_t ops) const {
    return op_ends.empty() && !aborted ? ops : std::min(op_ends.size(), ops);
  }
  // When an op began: where the one before it ended on the calling thread, so that the wait
  // at that one's barrier is in its time. Of an op without a time, when the step did.
  Ns op_begin(OpId op) const {
    if (op.v >= op_ends.size()) return begin;
    return op.v == 0 ? first_op : op_ends[op.v - 1];
  }
  friend bool operator==(const Step&, const Step&) = default;
};

// A major page fault: a thread that evaluated the graph touched bytes that were not in
// memory, and waited for the disk. Where that was is derived (analysis/index/fault_places.h).
struct PageFault {
  Ns at{};
  std::uint64_t address = 0;  // that was touched
  friend bool operator==(const PageFault&, const PageFault&) = default;
};

// Those of one step, in order of time.
struct StepFaults {
  StepId step;
  std::uint64_t count = 0;
  std::vector<PageFault> faults;  // `count` of them, or none where they were only counted
  friend bool operator==(const StepFaults&, const StepFaults&) = default;
};

// One token of the session, prompt and generated alike, in sequence order.
struct Token {
  std::uint32_t index = 0;    // from 0 in the session
  std::int32_t id = 0;        // vocabulary id
  std::int32_t position = 0;  // in the model's sequence
  bool generated = false;
  bool reused = false;  // its cache cells come from an earlier request (prefix reuse)
  std::string text;     // its bytes as the vocabulary has them; may be half a character
  friend bool operator==(const Token&, const Token&) = default;
};

// Where each tensor's data lay. Written when a template is first used and
// again only when an address changed. addresses.size() == template's tensors.
struct Allocation {
  AllocationId id{};
  TemplateId graph{};
  std::vector<std::uint64_t> addresses;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

const char* to_text(Phase);
const char* to_text(Timing);

}  // namespace tt
