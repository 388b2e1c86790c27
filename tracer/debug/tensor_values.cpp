#include "tracer/debug/tensor_values.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <span>

#include "tracer/probe/tensor_rows.h"
#include "tracer/probe/value_stats.h"

namespace tt {

namespace {

OutputStatistics completed(const ValueStats& stats, std::uint64_t elements) {
  const auto finite = static_cast<double>(elements - stats.nan - stats.inf);
  const double mean = stats.mean, std = stats.std;
  return {.min = stats.min,
          .max = stats.max,
          .mean = mean,
          .std = std,
          .norm = std::sqrt(finite * (mean * mean + std * std)),
          .elements = elements,
          .nan = stats.nan,
          .inf = stats.inf};
}

// `tensor` reduced to the selected rows.
ggml_tensor rows_of(const ggml_tensor& tensor, const std::array<IndexRange, 4>& indices) {
  ggml_tensor rows = tensor;
  auto* data = static_cast<std::byte*>(rows.data);
  for (std::size_t d = 1; d < indices.size(); ++d) {
    rows.ne[d] = static_cast<std::int64_t>(indices[d].last - indices[d].first + 1);
    data += indices[d].first * rows.nb[d];
  }
  rows.data = data;
  return rows;
}

}  // namespace

std::array<std::uint64_t, 4> shape_of(const ggml_tensor& tensor) {
  std::array<std::uint64_t, 4> ne{};
  std::ranges::transform(tensor.ne, ne.begin(),
                         [](std::int64_t n) { return static_cast<std::uint64_t>(n); });
  return ne;
}

std::string unreadable_reason(const ggml_tensor& tensor) {
  if (ggml_nelements(&tensor) == 0) return "it has no elements";
  if (!has_readable_rows(tensor)) return "its rows are not stored one element after the other";
  if (!has_memory(tensor)) return "it has no memory";
  return is_repacked(tensor) ? "it is repacked for the processor (use --no-repack)" : "";
}

std::expected<TensorValues, std::string> read_values(const ggml_tensor& tensor,
                                                     const Selection& selection) {
  if (const std::string reason = unreadable_reason(tensor); !reason.empty())
    return std::unexpected(std::format("{} cannot be read: {}.", tensor.name, reason));
  const auto indices = selection.in(shape_of(tensor));
  if (!indices) return std::unexpected(indices.error());
  TensorValues read;
  std::size_t elements = 1;
  for (std::size_t d = 0; d < indices->size(); ++d) {
    read.ne[d] = (*indices)[d].last - (*indices)[d].first + 1;
    elements *= read.ne[d];
  }
  if (elements > kMaxReadElements) {
    return std::unexpected(
        std::format("{} has {} elements; at most {} are read at once. Select "
                    "some of its rows, such as {}[0-9].",
                    tensor.name, elements, kMaxReadElements, tensor.name));
  }
  read.values.reserve(elements);
  std::vector<std::byte> scratch;
  for_each_row(rows_of(tensor, *indices), scratch, [&](std::span<const float> row) {
    const auto part = row.subspan((*indices)[0].first, read.ne[0]);
    read.values.insert(read.values.end(), part.begin(), part.end());
  });
  ValueSums sums;
  for (const float value : read.values) sums.add(value);
  read.statistics = completed(sums.stats(), elements);
  return read;
}

std::optional<OutputStatistics> statistics_of(const ggml_tensor& tensor,
                                              std::vector<std::byte>& scratch) {
  if (!unreadable_reason(tensor).empty()) return std::nullopt;
  const auto stats = value_stats(tensor, scratch);
  if (!stats) return std::nullopt;
  return completed(*stats, static_cast<std::uint64_t>(ggml_nelements(&tensor)));
}

std::vector<std::int32_t> routed_experts(const ggml_tensor& node) {
  std::vector<std::int32_t> experts;
  if (node.op != GGML_OP_MUL_MAT_ID || node.src[2]->type != GGML_TYPE_I32) return experts;
  std::vector<std::byte> scratch;
  for_each_row(*node.src[2], scratch, [&](std::span<const float> row) {
    for (const float expert : row) experts.push_back(static_cast<std::int32_t>(expert));
  });
  return experts;
}

}  // namespace tt
