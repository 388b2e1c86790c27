// One evaluation of a graph: template id, one end time per executed op, and the values
// that vary from step to step. A value; on-disk layout: docs/trace-format.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

enum class Phase : std::uint8_t { Prompt, Generate, Encode, Embed, Other };

// How the op times of a step were measured. Fast: in the abort callback. Learned: the graph
// was new and was split after every op to observe its op boundaries. Exact: split after every
// op, because the request asked for it or the graph cannot be timed fast (another device, op
// counts that vary). None: level MINIMAL, or the times were dropped (`dropped` is set then).
enum class Timing : std::uint8_t { Fast, Learned, Exact, None };

// Values of one Slot of the template in this step.
struct SlotValues {
  std::vector<std::int64_t> ints;  // ids, positions, rows; experts token-major
  std::vector<float> floats;       // ExpertScores, token-major, rank within token
  friend bool operator==(const SlotValues&, const SlotValues&) = default;
};

// Level VERBOSE: statistics of an op's output. NaN and Inf are counted, not averaged.
struct ValueStats {
  OpId op;
  float min = 0, max = 0, mean = 0, std = 0;
  std::uint64_t nan = 0, inf = 0;
  friend bool operator==(const ValueStats&, const ValueStats&) = default;
};

// How a step ran: what the machine did between the end of the previous step (for the first one,
// the start of the session) and the end of this one, and what this time was spent on. Read once
// per step, outside the graph. nullopt: the system does not provide it, or nobody asked.
struct StepConditions {
  using Value = std::optional<std::uint64_t>;
  // Of the machine (tracer/recorder/machine_state.h). Times are sums over threads or processors,
  // so they may exceed `interval_ns`.
  Value interval_ns;  // time that the other values cover
  // Threads that evaluate graphs: time on a processor, time waiting for one (less the CPU time of
  // the thread that writes the recording).
  Value cpu_ns, cpu_wait_ns;
  // The whole process. A major fault waited for the disk, a minor one did not.
  Value voluntary_switches, involuntary_switches, minor_faults, major_faults, disk_read_bytes;
  // Time for which a CPU limit (cgroup) stopped the processors of the process's groups.
  Value throttled_ns;
  // Pressure (PSI, "some"): time in which any task of the system waited. Read at most every
  // 10 ms, as is `throttled_ns`: steps in between have 0, the next one has the sum.
  Value pressure_cpu_ns, pressure_io_ns, pressure_memory_ns;
  // Of the inference thread (tracer/engine/generation_run.h), without overlap. The request waited
  // for others before its first step. Between the previous step and this one: choosing its token,
  // and converting tokens to text.
  Value queue_ns, sample_ns, detokenize_ns;
  // From the begin of the step until the graph could run: building it or finding the previous one
  // again, memory for it, its inputs. Then running it, until its output could be read.
  Value build_ns, evaluate_ns;
  Value graphs_built;  // 0: the graph of the previous step was used again
  // Of the machine, as of its last reading. Mean frequency of the processors, read at most every
  // 10 ms.
  Value frequency_khz;
  // How often processors were slowed down because of their temperature, read at most every 10 ms.
  Value thermal_throttles;
  // The memory limit that applies (tracer/memory/limits/memory_limit.h), and what the process has
  // locked; read at most once per second.
  Value memory_limit_bytes, locked_bytes;
  // Weights in memory, at the last snapshot (StepResidency).
  Value resident_bytes;
  friend bool operator==(const StepConditions&, const StepConditions&) = default;
};

// All values with their names in files, SQL and exports, in this order.
struct StepCondition {
  const char* name;
  StepConditions::Value StepConditions::* value;
  bool is_level = false;  // a state at the end of the interval, not a count over it
};
inline constexpr std::array kStepConditions = {
    StepCondition{"interval_ns", &StepConditions::interval_ns},
    StepCondition{"cpu_ns", &StepConditions::cpu_ns},
    StepCondition{"cpu_wait_ns", &StepConditions::cpu_wait_ns},
    StepCondition{"voluntary_switches", &StepConditions::voluntary_switches},
    StepCondition{"involuntary_switches", &StepConditions::involuntary_switches},
    StepCondition{"minor_faults", &StepConditions::minor_faults},
    StepCondition{"major_faults", &StepConditions::major_faults},
    StepCondition{"disk_read_bytes", &StepConditions::disk_read_bytes},
    StepCondition{"throttled_ns", &StepConditions::throttled_ns},
    StepCondition{"pressure_cpu_ns", &StepConditions::pressure_cpu_ns},
    StepCondition{"pressure_io_ns", &StepConditions::pressure_io_ns},
    StepCondition{"pressure_memory_ns", &StepConditions::pressure_memory_ns},
    StepCondition{"queue_ns", &StepConditions::queue_ns},
    StepCondition{"sample_ns", &StepConditions::sample_ns},
    StepCondition{"detokenize_ns", &StepConditions::detokenize_ns},
    StepCondition{"build_ns", &StepConditions::build_ns},
    StepCondition{"evaluate_ns", &StepConditions::evaluate_ns},
    StepCondition{"graphs_built", &StepConditions::graphs_built},
    StepCondition{"frequency_khz", &StepConditions::frequency_khz, true},
    StepCondition{"thermal_throttles", &StepConditions::thermal_throttles},
    StepCondition{"memory_limit_bytes", &StepConditions::memory_limit_bytes, true},
    StepCondition{"locked_bytes", &StepConditions::locked_bytes, true},
    StepCondition{"resident_bytes", &StepConditions::resident_bytes, true}};

// Adds the values of the following interval. A value that one of them lacks is absent in the sum;
// levels are those of the following interval.
// Wraps: values of a damaged file may be of any size.
inline StepConditions& operator+=(StepConditions& sum, const StepConditions& next) {
  for (const StepCondition& of : kStepConditions) {
    StepConditions::Value& to = sum.*of.value;
    const StepConditions::Value& more = next.*of.value;
    if (of.is_level) {
      to = more;
      continue;
    }
    to = to && more ? StepConditions::Value(*to + *more) : std::nullopt;
  }
  return sum;
}

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
  std::uint32_t first_token = 0;  // index of the first one in the session's tokens
  std::uint32_t threads = 0;
  bool dropped = false;  // no free buffer: times and slots are missing, tokens are not
  bool aborted = false;  // cancelled or failed before the graph was complete
  StepConditions conditions;
  std::vector<SlotValues> slots;  // per slot of the template; empty when not recorded
  std::vector<ValueStats> stats;

  // How many of the template's `ops` ops ran; ops run in order. A step without times that
  // was not aborted ran completely.
  std::size_t ops_run(std::size_t ops) const {
    return op_ends.empty() && !aborted ? ops : std::min(op_ends.size(), ops);
  }
  // Begin of an op: the end of the previous op on the calling thread. The time of an op
  // therefore includes the wait at the previous op's barrier. Without a time: the step's begin.
  Ns op_begin(OpId op) const {
    if (op.v >= op_ends.size()) return begin;
    return op.v == 0 ? first_op : op_ends[op.v - 1];
  }
  std::optional<Ns> op_duration(OpId op) const {
    if (op.v >= op_ends.size()) return std::nullopt;
    return op_ends[op.v] - op_begin(op);
  }
  friend bool operator==(const Step&, const Step&) = default;
};

// Major: the page was not in memory, and the thread waited for the disk. Minor: it was, but not in
// the process's page table, or it was new memory. Recorded on request.
enum class FaultKind : std::uint8_t { Major, Minor };

// A page fault of a thread that evaluated the graph. The op and tensor are derived
// (analysis/index/fault_location.h).
struct PageFault {
  Ns at{};
  std::uint64_t address = 0;  // faulting address
  friend bool operator==(const PageFault&, const PageFault&) = default;
};

// The page faults of one kind of one step, ordered by time.
struct StepFaults {
  StepId step;
  std::uint64_t count = 0;
  std::vector<PageFault> faults;  // `count` entries; empty when faults were only counted
  friend bool operator==(const StepFaults&, const StepFaults&) = default;
};

// What of the weights in the model files was in memory (the page cache) just before a step.
// Recorded on request (tracer/gguf/file_residency.h).
struct StepResidency {
  StepId step;
  Ns at{};
  // The parts consist of units of this many bytes: those of which at least half was in memory.
  std::uint64_t unit = 0;
  std::vector<FileRange> resident;  // by file and offset, not adjacent
  friend bool operator==(const StepResidency&, const StepResidency&) = default;
};

// What OutputValues has of an op: its output, or the attention weights, which FLASH_ATTN_EXT
// computes and does not put out (ne: keys, queries, heads, streams).
enum class ValuesOf : std::uint8_t { Output, Attention };

// The values of an op's output, as the op had computed it.
struct OutputValues {
  OpId op;
  ValuesOf of = ValuesOf::Output;
  std::array<std::uint64_t, 4> ne{};  // elements per dimension
  std::vector<float> values;  // of all elements, in the order of the dimensions: ne[0] first
  friend bool operator==(const OutputValues&, const OutputValues&) = default;
};

// Captured on request (tracer/probe/value_capture.h).
struct StepValues {
  StepId step;
  std::uint64_t not_captured = 0;     // outputs that were asked for and did not fit
  std::vector<OutputValues> outputs;  // by op and `of`, each at most once
  friend bool operator==(const StepValues&, const StepValues&) = default;
};

// What a scheduler of ggml copied for a split: one of its inputs, from the memory of another
// backend.
struct BackendCopy {
  // Of the step's template: the tensor that was copied, or the copy if only that is part of the
  // graph. kNoTensor: neither.
  TensorId tensor = kNoTensor;
  std::uint32_t from = kNone;  // index into StepSplits::backends; kNone: not known
  std::uint64_t bytes = 0;
  Ns begin{}, end{};  // of the calls that copied, with `wait`
  Ns wait{};          // for the end of what uses the tensor and its copy
  // Whether the bytes were there at `end`. Otherwise a device copies them later.
  bool complete = false;
  friend bool operator==(const BackendCopy&, const BackendCopy&) = default;
};

// A part of a graph that runs on one backend, after its inputs were copied.
struct BackendSplit {
  std::uint32_t backend = 0;          // index into StepSplits::backends
  OpId first{};                       // of the step's template
  std::uint32_t ops = 0;              // may be 0: views only
  Ns begin{}, end{};                  // of the call that computes it
  std::optional<Ns> done{};           // its backend had ended: the first wait for it that returned
  std::vector<BackendCopy> copies{};  // before `begin`
  friend bool operator==(const BackendSplit&, const BackendSplit&) = default;
};

// The splits of a step of an attached program whose graph runs on several backends, or on one that
// does not report its ops.
struct StepSplits {
  StepId step;
  std::vector<std::string> backends;  // names in ggml: "CPU", "CUDA0"
  std::vector<BackendSplit> splits;   // in the order in which they ran
  friend bool operator==(const StepSplits&, const StepSplits&) = default;
};

// Whether the ops and tensors exist in a template with so many.
inline bool are_of_graph(const StepSplits& of, std::size_t ops, std::size_t tensors) {
  return std::ranges::all_of(of.splits, [&](const BackendSplit& split) {
    return std::uint64_t{split.first.v} + split.ops <= ops &&
           std::ranges::all_of(split.copies, [&](const BackendCopy& copy) {
             return copy.tensor == kNoTensor || copy.tensor.v < tensors;
           });
  });
}

// What became of a token that a draft proposed: a small model, or another source, whose tokens the
// model evaluates in one step to check them.
enum class Draft : std::uint8_t {
  None,      // not proposed by a draft, or not recorded
  Accepted,  // the model continued with it
  Rejected,  // not part of the answer: its position was evaluated again, with another token
  Unknown    // no later step of the sequence says which
};

// One token of the session, prompt and generated alike, in the order in which they were evaluated.
struct Token {
  std::uint32_t index = 0;    // from 0 in the session
  std::int32_t id = 0;        // vocabulary id
  std::int32_t position = 0;  // in the model's sequence
  bool generated = false;
  bool reused = false;  // its KV cells come from an earlier request (prefix reuse)
  std::string text;     // bytes of the token; may be an incomplete UTF-8 character
  // Of a session with several requests: the request, whose prompt or answer has the token, from 1
  // in the order of their begins. nullopt: the session has one, or it is not recorded.
  std::optional<std::uint32_t> sequence{};
  Draft draft = Draft::None;
  friend bool operator==(const Token&, const Token&) = default;
};

// Whether the token is part of an answer. The result of the last draft of an answer is not known:
// its tokens are not.
inline bool in_answer(const Token& token) {
  return token.generated && (token.draft == Draft::None || token.draft == Draft::Accepted);
}

// Data address of each tensor of a template. Written when a template is first used and
// again only when an address has changed. addresses.size() == number of tensors.
struct Allocation {
  AllocationId id{};
  TemplateId graph{};
  std::vector<std::uint64_t> addresses;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

const char* to_text(Phase);
const char* to_text(Timing);
const char* to_text(Draft);
const char* to_text(FaultKind);

}  // namespace tt
