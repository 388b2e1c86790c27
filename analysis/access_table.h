// The accesses of one step as rows: which tensor's bytes an op touched, where
// they lie in memory and in the model's file.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>

#include "analysis/page.h"
#include "tracer/format/access.h"
#include "tracer/format/session_reader.h"

namespace tt {

struct AccessRow {
  StepAccess access;
  // Of the tensor's data as the op sees it, of an expert's slice with Experts; 0: not recorded.
  std::uint64_t address = 0;
  Category category = Category::Layer;
};

// The rows name tensors by their place in `graph`.
struct AccessTable {
  std::shared_ptr<const GraphTemplate> graph;  // null: no template was recorded, no rows
  Page<AccessRow> page;
};

struct AccessFilter {
  std::optional<OpId> op;
};

// Accesses `range` of one step, of those that pass the filter, ordered by op,
// reads in source order before the write.
std::expected<AccessTable, TraceError> access_table(const SessionReader& reader, StepId step,
                                                    const AccessFilter& filter, PageRange range);

}  // namespace tt
