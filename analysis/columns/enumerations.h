// The words of text columns that have a fixed set of values.
#pragma once

#include <array>

#include "analysis/columns/column.h"
#include "analysis/common/kernel.h"
#include "analysis/common/verdict.h"
#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt::columns {

// The words of the values 0 to `last`.
template <class Enum>
consteval Enumeration words_to(const char* schema, Enum last) {
  return {.schema = schema, .count = static_cast<int>(last) + 1, .word = [](int i) {
            return to_text(static_cast<Enum>(i));
          }};
}

inline constexpr Enumeration kPhases = words_to("Phase", Phase::Other);
inline constexpr Enumeration kTimings = words_to("Timing", Timing::None);
inline constexpr Enumeration kVerdicts = words_to("Verdict", Verdict::Disk);
inline constexpr Enumeration kKernels = words_to("Kernel", Kernel::Device);
inline constexpr Enumeration kTensorKinds = words_to("TensorKind", TensorKind::Input);
inline constexpr Enumeration kComponents = words_to("Component", Component::Input);
// Of a tensor of the whole graph. Only a layer subgraph has cross-layer tensors.
inline constexpr Enumeration kCategories = words_to("Category", Category::Output);
inline constexpr Enumeration kSources = words_to("Source", Source::Buffer);
inline constexpr Enumeration kExtents = words_to("Extent", Extent::Cells);
// The roles of weights and results of the attention.
inline constexpr Enumeration kQkvTypes{
    .schema = "QkvType",
    .count = static_cast<int>(Role::O) - static_cast<int>(Role::Q) + 1,
    .word = [](int i) { return to_text(static_cast<Role>(static_cast<int>(Role::Q) + i)); }};

}  // namespace tt::columns
