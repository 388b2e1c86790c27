// Which tensors a question is about.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Whether `part` occurs in `text`, in any case (of ASCII letters): "attn_q", or with * for
// any characters and ? for one, "blk.*.attn_q". Empty: always.
bool has_part(std::string_view text, std::string_view part);

struct TensorFilter {
  std::string name{};  // has_part()
  std::optional<TensorKind> kind{};
  std::optional<Source> source{};
  std::optional<LayerId> layer{};  // kNoLayer: those outside of any
  std::optional<Component> component{};

  // A Tensor, or what has the same facts of one.
  template <class Facts>
  bool passes(const Facts& tensor) const {
    return (!kind || tensor.kind == *kind) && (!source || tensor.source == *source) &&
           (!layer || tensor.layer == *layer) && (!component || tensor.component == *component) &&
           has_part(tensor.name, name);
  }
  friend bool operator==(const TensorFilter&, const TensorFilter&) = default;
};

}  // namespace tt
