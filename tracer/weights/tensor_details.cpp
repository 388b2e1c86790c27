#include "tracer/weights/tensor_details.h"

#include <algorithm>
#include <format>
#include <utility>

namespace tt {

namespace {

// Sums of one tensor, with `each` for its rows.
std::expected<WeightStatistics, std::string> statistics_of(
    WeightReader& reader, const GgufTensor& tensor, const std::function<bool()>& keep_going,
    const std::function<void(const WeightRows&)>& each = {}) {
  WeightSum sum;
  bool whole = true;
  auto read = reader.read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
    for (std::uint64_t i = 0; i < rows.count; ++i) sum.add(rows.row(i));
    if (each) each(rows);
    return whole = keep_going();
  });
  if (!read) return std::unexpected(std::move(read.error()));
  if (!whole) return std::unexpected("cancelled");
  return sum.result();
}

}  // namespace

std::vector<const TensorDetails::Row*> TensorDetails::largest_rows(std::size_t count) const {
  std::vector<const Row*> largest;
  for (const Row& row : rows) largest.push_back(&row);
  std::ranges::stable_sort(largest, std::ranges::greater(),
                           [](const Row* row) { return row->statistics.rms; });
  largest.resize(std::min(count, largest.size()));
  return largest;
}

std::expected<std::vector<TensorSummary>, std::string> tensor_summaries(
    WeightReader& reader, const GgufIndex& index, const std::function<bool()>& keep_going) {
  std::vector<TensorSummary> summaries;
  for (const GgufTensor& tensor : index.tensors()) {
    TensorSummary& summary = summaries.emplace_back();
    summary.tensor = &tensor;
    summary.why = undecodable_reason(tensor);
    if (!summary.why.empty()) continue;
    auto sum = statistics_of(reader, tensor, keep_going);
    if (!sum) return std::unexpected(std::move(sum.error()));
    summary.statistics = *sum;
  }
  return summaries;
}

std::expected<TensorDetails, std::string> tensor_details(WeightReader& reader,
                                                         const GgufTensor& tensor,
                                                         const std::function<bool()>& keep_going) {
  TensorDetails details;
  details.tensor = &tensor;
  const BlockLayout* const layout = block_layout(tensor.type);
  BlockParameters parameters;
  auto sum = statistics_of(reader, tensor, keep_going, [&](const WeightRows& rows) {
    details.histogram.add(rows.values);
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      WeightSum of_row;
      of_row.add(rows.row(i));
      details.rows.push_back({.row = rows.first + i, .statistics = of_row.result()});
    }
    for (std::size_t at = 0; layout != nullptr && at < rows.bytes.size(); at += layout->bytes) {
      layout->decode(rows.bytes.subspan(at, layout->bytes), parameters);
      details.scales.add(parameters.scales);
      details.minima.add(parameters.minima);
    }
  });
  if (!sum) return std::unexpected(std::move(sum.error()));
  details.statistics = *sum;
  return details;
}

std::expected<void, std::string> for_each_block(WeightReader& reader, const GgufTensor& tensor,
                                                const std::function<void(const WeightBlock&)>& take,
                                                const std::function<bool()>& keep_going) {
  const BlockLayout* const layout = block_layout(tensor.type);
  if (layout == nullptr)
    return std::unexpected(
        std::format("{} has no blocks: its type is {}", tensor.name, tensor.type));
  BlockParameters parameters;
  bool whole = true;
  auto read = reader.read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const auto bytes = rows.row_of_bytes(i);
      const auto values = rows.row(i);
      WeightSum of_row;
      of_row.add(values);
      const double limit = of_row.result().outlier_limit();
      for (std::size_t block = 0; block < bytes.size() / layout->bytes; ++block) {
        layout->decode(bytes.subspan(block * layout->bytes, layout->bytes), parameters);
        for (std::size_t sub = 0; sub < parameters.scales.size(); ++sub) {
          WeightBlock out{.row = rows.first + i,
                          .first = block * layout->values + sub * layout->sub_values,
                          .values = layout->sub_values,
                          .scale = parameters.scales[sub],
                          .super_block = layout->super_block(parameters, sub)};
          if (layout->has_minima) out.minimum = parameters.minima[sub];
          WeightSum sum;
          sum.add_part(values.subspan(out.first, out.values), limit);
          out.statistics = sum.result();
          take(out);
        }
      }
    }
    return whole = keep_going();
  });
  if (!read) return std::unexpected(std::move(read.error()));
  if (!whole) return std::unexpected("cancelled");
  return {};
}

}  // namespace tt
