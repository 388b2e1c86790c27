#include "analysis/tables/weight_residency.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/common/no_such_part.h"
#include "analysis/fields/fields.h"

namespace tt {

std::expected<std::vector<WeightTensor>, TraceError> weight_tensors(const SessionReader& reader) {
  const auto templates = reader.template_ids();
  if (!templates) return std::unexpected(templates.error());
  std::map<std::tuple<std::uint32_t, std::uint64_t>, WeightTensor> weights;
  for (const TemplateId id : *templates) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors) {
      if (tensor.file.empty() || tensor.view_of != kNoTensor) continue;
      weights.try_emplace({tensor.file.file, tensor.file.offset},
                          WeightTensor{.name = tensor.name,
                                       .layer = tensor.layer,
                                       .component = tensor.component,
                                       .file = tensor.file,
                                       .mapped = tensor.source == Source::Disk});
    }
  }
  std::vector<WeightTensor> list;
  list.reserve(weights.size());
  for (auto& [place, weight] : weights) list.push_back(std::move(weight));
  return list;
}

std::optional<std::uint64_t> resident_bytes(const WeightTensor& tensor,
                                            std::span<const FileRange> resident) {
  if (!tensor.mapped) return std::nullopt;
  const auto key = [](const FileRange& range) { return std::tuple(range.file, range.offset); };
  auto range = std::ranges::upper_bound(resident, key(tensor.file), {}, key);
  // The range before may reach into the tensor.
  if (range != resident.begin()) --range;
  const std::uint64_t end = tensor.file.offset + tensor.file.length;
  std::uint64_t bytes = 0;
  for (; range != resident.end() && range->file <= tensor.file.file; ++range) {
    if (range->file < tensor.file.file) continue;
    if (range->offset >= end) break;
    const std::uint64_t from = std::max(range->offset, tensor.file.offset);
    const std::uint64_t to = std::min(range->offset + range->length, end);
    if (from < to) bytes += to - from;
  }
  return bytes;
}

std::expected<ResidencyTable, TraceError> residency_at(const SessionReader& reader, StepId step) {
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  if (step.v >= *steps) return std::unexpected(no_such_part("session", "step", step.v, *steps));
  const auto last = reader.last_residency(step);
  if (!last) return std::unexpected(last.error());
  if (!*last)
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        "The session does not say what was in memory at this step. Send \"residency_interval_ms\" "
        "with a generation, or use tt record --residency-interval, to record it."});
  auto weights = weight_tensors(reader);
  if (!weights) return std::unexpected(weights.error());
  ResidencyTable table{.snapshot = {}, .weights = *std::move(weights)};
  const auto read = reader.for_each_residency(**last, 1, [&](const StepResidency& of) {
    table.snapshot = of;
    return false;
  });
  if (!read) return std::unexpected(read.error());
  return table;
}

namespace {

struct ResidencyRow {
  const WeightTensor* weight;
  std::optional<std::uint64_t> resident;
};

Fields<ResidencyRow> fields_of(const ResidencyRow*) {
  return Fields<ResidencyRow>()
      .add("tensor_name", "", [](const ResidencyRow& row) { return row.weight->name; })
      .include([](const ResidencyRow& row) { return row.weight->file; })
      .add("mapped", "false: the tensor was copied when the model was loaded",
           [](const ResidencyRow& row) { return row.weight->mapped; })
      .add("resident_bytes", "in memory, as exact as the units", &ResidencyRow::resident,
           {.unit = "bytes", .null = "not mapped"});
}

}  // namespace

Fields<ResidencyTable> fields_of(const ResidencyTable*) {
  return Fields<ResidencyTable>("Residency")
      .add("step", "the step before which the snapshot was taken",
           [](const ResidencyTable& of) { return of.snapshot.step; })
      .add("timestamp_ns", "since the start of the session",
           [](const ResidencyTable& of) { return of.snapshot.at; })
      .add("resident_unit_bytes",
           "the ranges in memory consist of units of about this size: those of which at least "
           "half was in memory",
           [](const ResidencyTable& of) { return of.snapshot.unit; }, {.unit = "bytes"})
      .add("resident_ranges", "parts of the mapped tensors that were in memory, by file and offset",
           [](const ResidencyTable& of) { return of.snapshot.resident; })
      .add("tensors", "the weights of the graphs of the session, by file and offset",
           [](const ResidencyTable& of) {
             std::vector<ResidencyRow> rows;
             for (const WeightTensor& weight : of.weights)
               rows.push_back(
                   {.weight = &weight, .resident = resident_bytes(weight, of.snapshot.resident)});
             return rows;
           });
}

}  // namespace tt
