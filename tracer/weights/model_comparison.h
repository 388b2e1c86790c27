// How far the tensors of a model file are from those of another file of the same model, such as the
// F16 file that it was quantized from.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/weights/quantization_error.h"
#include "tracer/weights/quantization_mix.h"

namespace tt {

// A model file and a reader of it.
struct OpenModel {
  const GgufIndex& index;
  WeightReader& reader;
};

struct TensorComparison {
  const GgufTensor* tensor = nullptr;
  const GgufTensor* reference = nullptr;  // null: the reference does not have it
  TensorError error{};
  std::string why{};  // there is no error; empty: there is
};

struct ModelComparison {
  std::vector<TensorComparison> tensors;  // in file order
  // Sums over the tensors of a layer (kNoLayer: of none) and of a component.
  std::map<LayerId, ErrorSum> layers;
  std::map<Component, ErrorSum> components;
  ModelError all;  // of the tensors that llama-quantize changes
};

// By the name of the tensor.
using Importances = std::map<std::string, ColumnImportance>;

// How many rows and blocks tt weights, REST and the page list of a tensor.
inline constexpr std::size_t kWorstErrors = 10;

// Why no tensor of `index` can be compared with `reference`; empty: some can.
std::string incomparable_reason(const GgufIndex& reference, const GgufIndex& index);

// All functions read both files in turn, a piece at a time, and call keep_going between pieces. The
// indexes must outlive the result. Error: a file could not be read, or "cancelled" when keep_going
// returned false.

// `worst`: how many rows and blocks are kept. `importances` may be null.
std::expected<TensorComparison, std::string> compare_tensor(
    const OpenModel& reference, const OpenModel& model, const GgufTensor& tensor, std::size_t worst,
    const Importances* importances, const std::function<bool()>& keep_going);

// Without the worst rows and blocks.
std::expected<ModelComparison, std::string> compare_models(const OpenModel& reference,
                                                           const OpenModel& model,
                                                           const Importances* importances,
                                                           const std::function<bool()>& keep_going);

}  // namespace tt
