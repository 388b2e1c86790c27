#include "analysis/access_table.h"

#include "analysis/derived_graphs.h"

namespace tt {

std::expected<AccessTable, TraceError> access_table(const SessionReader& reader, StepId id,
                                                    const AccessFilter& filter, PageRange range) {
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  DerivedGraphs graphs(reader);
  const auto derived = graphs.of(step->graph);
  if (!derived) return std::unexpected(derived.error());
  AccessTable table;
  if (*derived == nullptr) return table;

  Allocation allocation;
  if (step->allocation.v != 0) {
    auto read = reader.allocation(step->allocation);
    if (!read) return std::unexpected(read.error());
    allocation = std::move(*read);
  }

  const GraphTemplate& graph = *(*derived)->graph;
  table.graph = (*derived)->graph;
  for_each_access(graph, (*derived)->accesses, *step, [&](const StepAccess& access) {
    if (filter.op && access.op != *filter.op) return;
    const std::uint64_t at = table.page.total++;
    if (!range.holds(at)) return;
    AccessRow row{.access = access, .category = category_of(graph, access.tensor)};
    if (access.tensor.v < allocation.addresses.size()) {
      row.address = allocation.addresses[access.tensor.v];
      if (row.address != 0 && access.expert >= 0) {
        row.address +=
            static_cast<std::uint64_t>(access.expert) * (*derived)->accesses[access.access].stride;
      }
    }
    table.page.rows.push_back(row);
  });
  return table;
}

}  // namespace tt
