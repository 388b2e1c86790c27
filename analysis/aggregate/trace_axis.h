// The axes and values of a trace query, and its filter.
//
// Time, step and token are temporal axes. Layer, component, op kind, op, kernel and phase are
// attributes of ops: an op counts there with all of its accesses and its time. Tensor,
// source, type, expert, head, file and buffer are attributes of accesses.
//
// Accesses have no time of their own. In a query on attributes of accesses, the time of an
// op is attributed to its main access: the largest weight that it reads, else the largest
// cache that it reads or writes, else its largest read, else its largest write. So the time
// of every op counts exactly once in every query. If the main access consists of parts
// (experts, embedding rows), its time is divided among the touched parts.
//
// An access to a weight of Q, K, V or O or to a cache of K or V counts for the query heads of
// its layer in equal parts: each owns that much of it, or shares it with the other heads of
// its key-value head. Other accesses count for no head.
//
// A page fault is attributed to the op that ran and to the access that contains the faulting
// address; on a byte axis, to that byte.
//
// A prompt step is divided equally among its tokens. An op that overlaps a time range only
// partly counts there with the same fraction of its time, bytes and accesses. So totals are
// the same at every resolution.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/kernel.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

enum class Axis : std::uint8_t {
  Time,  // ns since the session's start
  Step,
  Token,  // token index in the session
  Layer,
  Component,
  OpKind,
  Op,      // by the name of its output, in execution order
  Kernel,  // implementation that ran the op (kernel_of())
  Phase,
  Tensor,  // the owner of the bytes, not the view
  Source,
  Type,  // of the tensor that owns the bytes: Q4_K
  Expert,
  Head,    // attention head of a layer
  File,    // byte offset in the concatenated model files
  Buffer,  // byte offset in the concatenated buffers that are not mapped from a file
  All      // a single row
};
const char* to_text(Axis);
const char* unit_of(Axis);  // "ns", "byte", or what one row is: "layer"
constexpr bool is_temporal(Axis axis) { return axis <= Axis::Token; }
constexpr bool is_op_axis(Axis axis) {
  return (axis >= Axis::Layer && axis <= Axis::Phase) || axis == Axis::All || is_temporal(axis);
}
constexpr bool is_byte_axis(Axis axis) { return axis == Axis::File || axis == Axis::Buffer; }

// Touched: bytes read or written. Executions: executed ops. Time: ns. Faults: major page
// faults at their location (fault_places.h).
enum class Value : std::uint8_t {
  Touched,
  BytesRead,
  BytesWritten,
  Accesses,
  Reads,
  Writes,
  Executions,
  Time,
  Faults
};
const char* to_text(Value);

template <class T>
struct Range {  // [from, to)
  T from{}, to{};
  constexpr bool contains(T at) const { return at >= from && at < to; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

// Filters steps, then ops, then accesses. If a condition on accesses is set, the time of an
// op counts if its main access passes. A page fault without a known op or access passes no
// condition on ops or accesses.
struct TraceFilter {
  std::optional<Phase> phase{};
  std::optional<Range<std::uint64_t>> tokens{}, steps{};
  std::optional<Range<std::int64_t>> time{};
  std::vector<LayerId> layers{};  // kNoLayer: ops outside of layers. Empty: all
  std::optional<Component> component{};
  std::optional<tt::Kernel> kernel{};
  std::string op{};      // pattern (matches_pattern()) on the op kind or the output's name
  std::string tensor{};  // pattern on the tensor's name
  std::optional<TensorKind> kind{};
  std::optional<Source> source{};

  bool about_ops() const { return !layers.empty() || component || kernel || !op.empty(); }
  bool about_accesses() const { return !tensor.empty() || kind || source; }
  friend bool operator==(const TraceFilter&, const TraceFilter&) = default;
};

}  // namespace tt
