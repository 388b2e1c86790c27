// How many parts the lists of a step name, and which: rule by rule of its template.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/template_outline.h"
#include "tracer/format/blob_codec.h"

namespace tt {

class StepParts {
 public:
  struct Named {
    std::uint64_t count = 0;
    // Which, where they are accesses of their own: as a set, or listed, ascending
    // (OutlineRule says how). Valid until the next step or call.
    std::span<const std::uint64_t> set{};
    std::span<const std::int64_t> numbers{};
  };
  // `graph` is looked at for rules that are batched() alone.
  Named of(const OutlineRule& rule, const StepOutline& step, const GraphTemplate* graph);

 private:
  std::vector<std::int64_t> listed_;
};

}  // namespace tt
