// What tt weights prints: text tables, CSV, JSON.
#pragma once

#include <cstdint>
#include <vector>

#include "tracer/weights/model_comparison.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/tensor_details.h"

namespace tt::cli {

enum class WeightsForm : std::uint8_t { Table, Csv, Json };

void print_weights(const std::vector<TensorSummary>& rows, WeightsForm form);
void print_details(const TensorDetails& details, WeightsForm form);

// Against another file.
void print_errors(const ModelComparison& comparison, WeightsForm form);
void print_worst(const TensorComparison& row, WeightsForm form);

void print_mix(const QuantizationMix& mix, WeightsForm form);

}  // namespace tt::cli
