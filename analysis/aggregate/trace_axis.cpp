#include "analysis/aggregate/trace_axis.h"

#include <utility>

namespace tt {

const char* to_text(Axis axis) {
  constexpr std::array kWords = {"time",   "step",   "token", "layer",  "component", "op_kind",
                                 "op",     "kernel", "phase", "tensor", "source",    "type",
                                 "expert", "head",   "file",  "buffer", "all"};
  return kWords[std::to_underlying(axis)];
}

const char* unit_of(Axis axis) {
  if (axis == Axis::Time) return "ns";
  return is_byte_axis(axis) ? "byte" : to_text(axis);
}

const char* to_text(Value value) {
  constexpr std::array kWords = {"bytes",  "bytes_read", "bytes_written", "accesses", "reads",
                                 "writes", "executions", "time",          "faults"};
  return kWords[std::to_underlying(value)];
}

}  // namespace tt
