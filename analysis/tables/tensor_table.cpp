#include "analysis/tables/tensor_table.h"

#include <algorithm>
#include <compare>
#include <tuple>

namespace tt {

namespace {

bool lacks_key(const Tensor& tensor, TensorSort by) {
  return (by == TensorSort::ByLayer && tensor.layer == kNoLayer) ||
         (by == TensorSort::ByOffset && tensor.file.empty());
}

std::weak_ordering by_key(const Tensor& a, const Tensor& b, TensorSort by) {
  switch (by) {
    case TensorSort::ByTensor:
      break;
    case TensorSort::ByName:
      return a.name <=> b.name;
    case TensorSort::ByLayer:
      return a.layer <=> b.layer;
    case TensorSort::BySize:
      return size_of(a).v <=> size_of(b).v;
    case TensorSort::ByOffset:
      return std::tie(a.file.file, a.file.offset) <=> std::tie(b.file.file, b.file.offset);
  }
  return std::weak_ordering::equivalent;
}

}  // namespace

std::expected<TensorTable, TraceError> tensor_table(const SessionReader& reader, TemplateId id,
                                                    const TensorFilter& filter,
                                                    Order<TensorSort> order, PageRange range) {
  auto read = reader.graph(id);
  if (!read) return std::unexpected(read.error());
  const GraphTemplate& graph = **read;
  std::vector<TensorId> passing;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (filter.passes(graph.tensors[i])) passing.push_back(TensorId{i});
  }
  std::ranges::sort(passing, [&](TensorId left, TensorId right) {
    if (order.by == TensorSort::ByTensor) return order.descending ? right < left : left < right;
    const Tensor &a = graph.tensor(left), &b = graph.tensor(right);
    const bool a_lacks = lacks_key(a, order.by), b_lacks = lacks_key(b, order.by);
    if (a_lacks != b_lacks) return b_lacks;
    const auto keys = a_lacks ? std::weak_ordering::equivalent : by_key(a, b, order.by);
    if (std::is_neq(keys)) return order.descending ? std::is_gt(keys) : std::is_lt(keys);
    return left < right;
  });

  TensorTable table{
      .id = id, .graph = *std::move(read), .page = {.total = passing.size(), .rows = {}}};
  const std::vector<Category> categories = categories_of(*table.graph);
  for (std::uint64_t i = range.from; i < passing.size() && range.contains(i); ++i)
    table.page.rows.push_back({.tensor = passing[i], .category = categories[passing[i].v]});
  return table;
}

}  // namespace tt
