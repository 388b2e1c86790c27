// Reads tensors of a step that is stopped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "tracer/debug/selection.h"
#include "tracer/request/debug_state.h"

struct ggml_tensor;

namespace tt {

// Elements that are read at once.
inline constexpr std::size_t kMaxReadElements = 4U << 20;

std::array<std::uint64_t, 4> shape_of(const ggml_tensor& tensor);

// Why the values of a tensor cannot be read; empty: they can.
std::string unreadable_reason(const ggml_tensor& tensor);

// The error text is a sentence.
std::expected<TensorValues, std::string> read_values(const ggml_tensor& tensor,
                                                     const Selection& selection);

// Of all elements. nullopt: not numbers that can be read.
std::optional<OutputStatistics> statistics_of(const ggml_tensor& tensor,
                                              std::vector<std::byte>& scratch);

// The experts to which a MUL_MAT_ID routes: of each token those of each rank. Empty: another op, or
// they cannot be read.
std::vector<std::int32_t> routed_experts(const ggml_tensor& node);

}  // namespace tt
