// A filter on tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/layer_set.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

// Whether `text` contains a match of the pattern `part`. ASCII letters match
// case-insensitively; * matches any characters and ? matches one: "attn_q",
// "blk.*.attn_q". An empty pattern always matches.
bool matches_pattern(std::string_view text, std::string_view part);

struct TensorFilter {
  std::string name{};  // matches_pattern()
  std::optional<TensorKind> kind{};
  std::optional<Source> source{};
  LayerSet layers = LayerSet::all();
  std::optional<Component> component{};

  // `Facts`: Tensor, or a type with the same members.
  template <class Facts>
  bool passes(const Facts& tensor) const {
    return (!kind || tensor.kind == *kind) && (!source || tensor.source == *source) &&
           layers.has(tensor.layer) && (!component || tensor.component == *component) &&
           matches_pattern(tensor.name, name);
  }
  friend bool operator==(const TensorFilter&, const TensorFilter&) = default;
};

}  // namespace tt
