// The roofline: how near each op comes to what the machine can do, reading or computing, and how
// much of its time that does not explain. Decides what limits an op: the only place with these
// definitions and thresholds. Pure functions, any thread.
//
// The bound of an op is the larger one of the time in which the machine reads its bytes and the
// time in which it computes its operations. Only bytes that come from memory count: those of
// weights and caches, and of other values if one execution has more of them than fit into the last
// cache of the processor; smaller values were just written there. An op that is faster than the
// read bandwidth allows has its bytes from caches, so its bound is the other one.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/step_times.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/columns/enumerations.h"
#include "analysis/common/machine_bounds.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

// Memory bound, compute bound: this bound explains at least kNearBound of the time. Overhead:
// neither does: starting the op, waiting of threads for each other, values in caches, or a kernel
// that uses the machine badly. Waiting: neither does, and the machine disturbed all steps.
enum class OpLimit : std::uint8_t { MemoryBound, ComputeBound, Overhead, Waiting, Unknown };
const char* to_text(OpLimit);  // memory_bound, compute_bound, overhead, waiting, unknown

// What an op, or several, cost in a step.
struct OpCost {
  double ns = 0;
  double memory_bytes = 0;             // that come from memory
  std::optional<double> operations{};  // arithmetic; nullopt: not known
  bool other_device = false;           // a device computes whose rates are not measured
  // Of the steps that the time is of, if the machine disturbed all of them.
  std::optional<Verdict> disturbed{};
};
struct OpVerdict {
  OpLimit limit = OpLimit::Unknown;
  bool from_cache = false;                        // the bytes come from caches of the processor
  std::optional<double> read_ns{}, compute_ns{};  // the bounds; nullopt: not known, or none
  std::optional<double> bound_ns{};               // the larger one of those that are known
  std::string text{};                             // "memory-bound: reading takes 82 % of the time"
};
OpVerdict limit_of(const OpCost& cost, const MachineBounds& bounds);

struct RooflineRow {
  std::string name;     // of an op: its output, without the number of the layer
  std::string op_kind;  // "MUL_MAT"
  std::optional<Component> component;
  double executions = 0;  // in a step
  double bytes = 0;       // read and written in a step
  OpCost cost;            // ns: the median
  StepTimes times;
  OpVerdict verdict;
};

enum class RooflineBy : std::uint8_t { Op, OpKind };
const char* to_text(RooflineBy);  // op, op_kind
consteval columns::Enumeration words_of(RooflineBy) {
  return columns::words_to("", RooflineBy::OpKind);
}

struct RooflineQuery {
  RooflineBy by = RooflineBy::Op;
  TraceFilter filter{};  // an op passes with all of its bytes, as its time does
  PageRange page = kAllRows;
};

struct Roofline {
  RooflineBy by = RooflineBy::Op;
  TimedSteps times;
  std::uint64_t threads = 0;  // of these steps; 0: not recorded
  MachineBounds bounds;
  std::uint64_t row_count = 0;
  // Of one phase; what could be saved first: time above the bound, or all time without a bound.
  std::vector<RooflineRow> rows;
  std::string text;  // the bounds, and why one is not known
};

// `reader`: of the session of the index.
std::expected<Roofline, TraceError> roofline(const SessionReader& reader, const SessionIndex& index,
                                             const RooflineQuery& query,
                                             const ContinueCheck& keep_going = never_cancel);

Fields<RooflineRow> fields_of(const RooflineRow*);
Fields<Roofline> fields_of(const Roofline*);

}  // namespace tt
