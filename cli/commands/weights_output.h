// What tt weights prints: text tables, CSV, JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracer/weights/model_comparison.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/tensor_details.h"

namespace tt::cli {

enum class WeightsForm : std::uint8_t { Table, Csv, Json };

void print_weights(const std::vector<TensorSummary>& rows, WeightsForm form);
void print_details(const TensorDetails& details, WeightsForm form);

// The sub-blocks of a tensor as they are read: a line each, as CSV unless `form` is Json.
class BlockPrinter {
 public:
  BlockPrinter(const GgufTensor& tensor, WeightsForm form);
  void add(const WeightBlock& block);
  void end();

 private:
  const bool is_json_;
  bool is_first_ = true;
};

// Against another file.
// `rows`: of each tensor, from which the errors were predicted.
void print_errors(const ModelComparison& comparison, std::size_t rows, WeightsForm form);
void print_worst(const TensorComparison& row, WeightsForm form);

void print_mix(const QuantizationMix& mix, WeightsForm form);

}  // namespace tt::cli
