// The tensors of a graph as table rows.
#pragma once

#include <expected>
#include <memory>

#include "analysis/common/page.h"
#include "analysis/common/tensor_filter.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct TensorRow {
  TensorId tensor;
  Category category = Category::Layer;
  friend bool operator==(const TensorRow&, const TensorRow&) = default;
};

struct TensorTable {
  TemplateId id;
  std::shared_ptr<const GraphTemplate> graph;
  Page<TensorRow> page;
};

// BySize: size_of(). ByOffset: file, then offset in the file. Rows may lack layer and offset.
enum class TensorSort { ByTensor, ByName, ByLayer, BySize, ByOffset };

// The rows `range` of the tensors that pass the filter.
std::expected<TensorTable, TraceError> tensor_table(const SessionReader& reader, TemplateId graph,
                                                    const TensorFilter& filter,
                                                    Order<TensorSort> order, PageRange range);

}  // namespace tt
