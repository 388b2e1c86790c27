// The words of axes and values, for parameters and fields.
#pragma once

#include "analysis/aggregate/trace_axis.h"
#include "analysis/columns/enumerations.h"

namespace tt {

inline constexpr columns::Enumeration kAxisWords = columns::words_to("Axis", Axis::All);
// The axes that rows can have: all except bytes and time, which are unbounded.
inline constexpr Axis kRowAxisList[] = {Axis::Step,   Axis::Token,  Axis::Layer,  Axis::Component,
                                        Axis::OpKind, Axis::Op,     Axis::Kernel, Axis::Phase,
                                        Axis::Tensor, Axis::Source, Axis::Type,   Axis::Expert,
                                        Axis::Head,   Axis::All};
inline constexpr columns::Enumeration kRowAxes{
    .schema = "RowAxis", .count = static_cast<int>(std::size(kRowAxisList)), .word = [](int i) {
      return to_text(kRowAxisList[i]);
    }};
consteval columns::Enumeration words_of(Axis) { return kAxisWords; }
consteval columns::Enumeration words_of(Value) {
  return columns::words_to("TraceValue", Value::Faults);
}

}  // namespace tt
