// The tensors of a graph as rows.
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
  std::shared_ptr<const GraphTemplate> graph;
  Page<TensorRow> page;
};

// BySize: of the bytes that it spans. ByOffset: in the model's files. Layer and
// offset are what rows may lack.
enum class TensorSort { ByTensor, ByName, ByLayer, BySize, ByOffset };

// Tensors `range` of those that pass the filter.
std::expected<TensorTable, TraceError> tensor_table(const SessionReader& reader, TemplateId graph,
                                                    const TensorFilter& filter,
                                                    Order<TensorSort> order, PageRange range);

// The bytes that a tensor spans, from its first to its last: ggml_nbytes().
Bytes size_of(const Tensor& tensor);

}  // namespace tt
