#include "api/json/gguf_weights.h"

#include "tracer/format/names/names.h"

namespace tt {

std::vector<WeightSize> weights_of(const GgufIndex& index) {
  std::vector<WeightSize> weights;
  for (const GgufTensor& tensor : index.tensors()) {
    weights.push_back({.name = tensor.name,
                       .type = tensor.type,
                       .layer = layer_of(tensor.name),
                       .component = component_of(tensor.name, TensorKind::Weight),
                       .elements = elements_of(tensor.ne),
                       .bytes = Bytes{tensor.file.length}});
  }
  return weights;
}

}  // namespace tt
