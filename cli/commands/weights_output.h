// What tt weights prints: text tables, CSV, JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracer/gguf/gguf_index.h"
#include "tracer/weights/quantization_error.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/tensor_details.h"

namespace tt::cli {

enum class WeightsForm : std::uint8_t { Table, Csv, Json };

void print_weights(const std::vector<TensorSummary>& rows, WeightsForm form);
void print_details(const TensorDetails& details, WeightsForm form);

// Against another file.
struct ErrorRow {
  const GgufTensor* tensor = nullptr;
  const GgufTensor* reference = nullptr;  // null: the other file does not have it
  TensorError error;
  std::string why;  // it cannot be compared
};
void print_errors(const std::vector<ErrorRow>& rows, WeightsForm form);
void print_worst(const ErrorRow& row, WeightsForm form);

void print_mix(const QuantizationMix& mix, WeightsForm form);

}  // namespace tt::cli
