// How far the tensors of a model file are from those of another file of the same model, such as the
// F16 file that it was quantized from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/weights/quantization_error.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/type_trial.h"
#include "tracer/weights/weighing.h"

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
  // What quantization_mix() would say of the type of the tensor: the error of some rows of the
  // reference that were quantized to it. nullopt: the type is not one that it tries.
  std::optional<double> predicted{};
  std::optional<double> reads{};  // how often the session read all of it; nullopt: no session
  // Of the reference; negative: the tensor is larger.
  std::int64_t bytes_saved = 0;
  // By compare_models(): the part of the squared relative error of the model that comes from this
  // tensor, per byte saved. nullopt: llama-quantize does not change it, or it saves nothing.
  std::optional<double> error_per_byte{};
};

struct ModelComparison {
  std::vector<TensorComparison> tensors;  // in file order
  // Sums over the tensors of a layer (kNoLayer: of none) and of a component.
  std::map<LayerId, ErrorSum> layers;
  std::map<Component, ErrorSum> components;
  ModelError all;  // of the tensors that llama-quantize changes
  // The same as quantization_mix() predicts it; nullopt: not of all of them.
  std::optional<double> predicted;
};

struct ComparisonOptions {
  std::size_t worst = 0;          // how many rows and blocks are kept
  std::size_t rows = kTriedRows;  // of each tensor, that a prediction quantizes
};

// How many rows and blocks tt weights, REST and the page list of a tensor.
inline constexpr std::size_t kWorstErrors = 10;

// Why no tensor of `index` can be compared with `reference`; empty: some can.
std::string incomparable_reason(const GgufIndex& reference, const GgufIndex& index);

// All functions read both files in turn, a piece at a time, and call keep_going between pieces. The
// indexes must outlive the result. Error: a file could not be read, or "cancelled" when keep_going
// returned false.

std::expected<TensorComparison, std::string> compare_tensor(
    const OpenModel& reference, const OpenModel& model, const GgufTensor& tensor,
    const ComparisonOptions& options, const Weighing& weighing,
    const std::function<bool()>& keep_going);

std::expected<ModelComparison, std::string> compare_models(const OpenModel& reference,
                                                           const OpenModel& model,
                                                           const ComparisonOptions& options,
                                                           const Weighing& weighing,
                                                           const std::function<bool()>& keep_going);

}  // namespace tt
