#include "analysis/aggregate/totals.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>

#include "analysis/fields/fields.h"

namespace tt {

namespace {

std::vector<TotalsRow> largest_first(std::vector<TotalsRow> rows) {
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const TotalsRow& row) { return row.sums.bytes(); });
  return rows;
}

std::vector<TotalsRow> rows_of(const Breakdown& found) {
  std::vector<TotalsRow> rows;
  for (const BreakdownRow& row : found.rows) rows.push_back({.name = row.name, .sums = row.all});
  return largest_first(std::move(rows));
}

// What identifies a tensor of the session, as in SessionNames.
using TensorKey = std::tuple<std::string, TensorKind, Source>;
template <class Of>
TensorKey key_of(const Of& tensor) {
  return {tensor.name, tensor.kind, tensor.source};
}

// The buffer of each tensor that owns bytes.
std::expected<std::map<TensorKey, std::string>, TraceError> buffers_of(
    const SessionReader& reader) {
  const auto templates = reader.template_ids();
  if (!templates) return std::unexpected(templates.error());
  std::map<TensorKey, std::string> buffers;
  for (const TemplateId id : *templates) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors)
      if (tensor.view_of == kNoTensor) buffers.emplace(key_of(tensor), tensor.buffer);
  }
  return buffers;
}

// Sums of tensors by their buffer.
std::vector<TotalsRow> by_buffer(const SessionIndex& index, const Breakdown& tensors,
                                 const std::map<TensorKey, std::string>& buffers) {
  std::map<std::string, TraceSums> sums;
  for (const BreakdownRow& row : tensors.rows) {
    const auto found =
        buffers.find(key_of(index.names().tensors()[static_cast<std::size_t>(row.key)]));
    sums[found == buffers.end() ? "unknown" : found->second] += row.all;
  }
  std::vector<TotalsRow> rows;
  for (const auto& [name, of] : sums) rows.push_back({.name = name, .sums = of});
  return largest_first(std::move(rows));
}

}  // namespace

std::expected<Totals, TraceError> totals(const SessionReader& reader, const SessionIndex& index,
                                         const TraceFilter& filter,
                                         const ContinueCheck& keep_going) {
  const auto sums_by = [&](Axis by) {
    return breakdown(index, {.by = by, .filter = filter}, keep_going);
  };
  const auto types = sums_by(Axis::Type);
  if (!types) return std::unexpected(types.error());
  const auto kernels = sums_by(Axis::Kernel);
  if (!kernels) return std::unexpected(kernels.error());
  const auto tensors = sums_by(Axis::Tensor);
  if (!tensors) return std::unexpected(tensors.error());
  return buffers_of(reader).transform([&](const auto& buffers) {
    return Totals{.total = types->total.all,
                  .types = rows_of(*types),
                  .kernels = rows_of(*kernels),
                  .buffers = by_buffer(index, *tensors, buffers),
                  .damaged_steps = types->damaged_steps,
                  .left_out_steps = types->left_out_steps};
  });
}

static Fields<TotalsRow> fields_of(const TotalsRow*) {
  return Fields<TotalsRow>("TotalsRow").add("name", "", &TotalsRow::name).include(&TotalsRow::sums);
}

Fields<Totals> fields_of(const Totals*) {
  return Fields<Totals>("Totals")
      .add("total", "of everything that passes the filter", &Totals::total)
      .add("types", "by the type of the tensor that owns the bytes, largest first", &Totals::types)
      .add("kernels",
           "by the kernel that ran the op; unknown: not recorded. An access counts for the "
           "kernel of its op",
           &Totals::kernels)
      .add("buffers", "by the ggml buffer of the tensor that owns the bytes", &Totals::buffers)
      .add("damaged_steps", kDamagedSteps, &Totals::damaged_steps)
      .add("left_out_steps", kLeftOutSteps, &Totals::left_out_steps);
}

}  // namespace tt
