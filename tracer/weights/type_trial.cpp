#include "tracer/weights/type_trial.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

// Rows whose length is not a multiple of 256 cannot have the first kind.
constexpr auto kSuperBlockTypes =
    std::to_array<ggml_type>({GGML_TYPE_Q8_0, GGML_TYPE_Q6_K, GGML_TYPE_Q5_K, GGML_TYPE_Q4_K,
                              GGML_TYPE_Q3_K, GGML_TYPE_Q2_K});
constexpr auto kBlockTypes = std::to_array<ggml_type>(
    {GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_0});
constexpr std::int64_t kSuperBlock = 256;

}  // namespace

std::vector<ggml_type> smaller_types(const GgufTensor& tensor) {
  const ggml_type present = *ggml_type_named(tensor.type);
  std::vector<ggml_type> types;
  const auto add = [&](std::span<const ggml_type> from) {
    for (const ggml_type type : from)
      if (ggml_row_size(type, tensor.ne[0]) < ggml_row_size(present, tensor.ne[0]))
        types.push_back(type);
  };
  tensor.ne[0] % kSuperBlock == 0 ? add(kSuperBlockTypes) : add(kBlockTypes);
  return types;
}

std::vector<std::uint64_t> tried_rows(const GgufTensor& tensor, std::size_t count,
                                      const TensorWeighing& weighing) {
  const auto ranges = weighing.rows(tensor);
  std::uint64_t all = 0;
  for (const RowUses::Use& use : ranges) all += use.rows.count;
  const std::uint64_t step = std::max<std::uint64_t>(all / std::max<std::size_t>(count, 1), 1);
  std::vector<std::uint64_t> rows;
  std::uint64_t skip = 0;  // of the rows that count, before the next one that is tried
  for (const auto& [range, reads] : ranges) {
    for (; skip < range.count; skip += step) rows.push_back(range.first + skip);
    skip -= range.count;
  }
  return rows;
}

TypeTrial::TypeTrial(const GgufTensor& tensor, std::vector<ggml_type> types, std::size_t rows,
                     const TensorWeighing& weighing)
    : tensor_(tensor),
      types_(std::move(types)),
      weighing_(weighing),
      rows_(tried_rows(tensor, rows, weighing)),
      errors_(types_.size()),
      decoded_(static_cast<std::size_t>(tensor.ne[0])) {}

void TypeTrial::add(std::uint64_t row, std::span<const float> values) {
  while (next_ < rows_.size() && rows_[next_] < row) ++next_;
  if (next_ == rows_.size() || rows_[next_] != row) return;
  const auto importance = weighing_.columns(tensor_, row);
  const auto reads = static_cast<double>(weighing_.reads(row));
  for (std::size_t i = 0; i < types_.size(); ++i) {
    const ggml_type type = types_[i];
    bytes_.resize(ggml_row_size(type, tensor_.ne[0]));
    ggml_quantize_chunk(type, values.data(), bytes_.data(), 0, 1, tensor_.ne[0],
                        importance.empty() ? nullptr : importance.data());
    ggml_get_type_traits(type)->to_float(bytes_.data(), decoded_.data(), tensor_.ne[0]);
    ErrorSum of_row;
    of_row.add(values, decoded_, importance);
    errors_[i].add(of_row, reads);
  }
}

}  // namespace tt
