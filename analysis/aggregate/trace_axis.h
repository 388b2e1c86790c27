// The axes that a trace can be laid out along, and what a question leaves out.
//
// Time, step and token say when; everything else says where. Layer, component, op
// kind, op and phase are facts of ops: an op counts there with all of its accesses
// and its time. Tensor, source, expert, file and buffer are facts of accesses.
//
// An op's time is not the time of its accesses. Where a question is about facts of
// accesses, it counts for one of them, the op's main access: the largest weight
// that it reads, else the largest cache that it reads or writes, else what it
// reads most of, else what it writes. So every op's time counts once, in every
// question. Of a main access that consists of parts (experts, rows of an
// embedding) each part gets the share of it that it has of the parts touched.
//
// A page fault counts for the op that ran, and for the access that it touched a byte of;
// on an axis of bytes it is that byte.
//
// A prompt step stands for all of its tokens: each gets an equal share of it. An op
// that only partly lies in a stretch of time counts there with that part of its
// time, its bytes and its accesses. So totals are the same at every resolution.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

enum class Axis : std::uint8_t {
  Time,  // ns since the session's start
  Step,
  Token,  // index in the session
  Layer,
  Component,
  OpKind,
  Op,  // by the name of its output, as they are executed
  Phase,
  Tensor,  // that owns the bytes
  Source,
  Expert,
  File,    // byte of the model's files, one behind the other
  Buffer,  // byte of the buffers that are not mapped from a file, one behind the other
  All      // one row: no axis
};
const char* to_text(Axis);
const char* unit_of(Axis);  // "ns", "byte", or of what one row is
constexpr bool says_when(Axis axis) { return axis <= Axis::Token; }
constexpr bool is_of_ops(Axis axis) {
  return (axis >= Axis::Layer && axis <= Axis::Phase) || axis == Axis::All || says_when(axis);
}
constexpr bool is_bytes(Axis axis) { return axis == Axis::File || axis == Axis::Buffer; }

// Touched: bytes, read or written. Executions: ops that ran. Time: ns. Faults: major
// page faults, where they happened (fault_places.h).
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
struct Stretch {  // [from, to)
  T from{}, to{};
  constexpr bool holds(T at) const { return at >= from && at < to; }
  friend constexpr bool operator==(const Stretch&, const Stretch&) = default;
};

// What passes: steps, then ops, then accesses. Where one on accesses is set, an op's
// time counts if its main access passes. A page fault of which it is not known passes none.
struct TraceFilter {
  std::optional<Phase> phase{};
  std::optional<Stretch<std::uint64_t>> tokens{}, steps{};
  std::optional<Stretch<std::int64_t>> time{};
  std::vector<LayerId> layers{};  // kNoLayer: ops outside of any. Empty: all
  std::optional<Component> component{};
  std::string op{};      // has_part() of its kind or its output's name
  std::string tensor{};  // has_part() of the tensor's name
  std::optional<TensorKind> kind{};
  std::optional<Source> source{};

  bool about_ops() const { return !layers.empty() || component || !op.empty(); }
  bool about_accesses() const { return !tensor.empty() || kind || source; }
  friend bool operator==(const TraceFilter&, const TraceFilter&) = default;
};

}  // namespace tt
