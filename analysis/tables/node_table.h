// The nodes of a graph as table rows, in execution order.
#pragma once

#include <expected>
#include <memory>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct NodeRow {
  NodeId node;
  OpId op = kNoOp;  // op that executed the node; kNoOp: not executed
  friend bool operator==(const NodeRow&, const NodeRow&) = default;
};

struct NodeTable {
  std::shared_ptr<const GraphTemplate> graph;
  Page<NodeRow> page;
};

std::expected<NodeTable, TraceError> node_table(const SessionReader& reader, TemplateId graph,
                                                PageRange range);

}  // namespace tt
