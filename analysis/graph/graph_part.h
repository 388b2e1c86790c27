// Selected layers of a session's graph as a subgraph, and a collapsed form of it with the
// nodes grouped by layer, component and category. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/graph/layer_subgraph.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct GraphPart {
  std::optional<StepId> step;  // the requested step, for part_of_step()
  TemplateId id;
  std::shared_ptr<const GraphTemplate> graph;
  std::uint32_t layers = 0;  // of the model
  LayerSubgraph subgraph;
};

// NotFound: no such step, template or layer, or the step's graph was not recorded. A layer
// of the model that does not occur in this graph gives an empty subgraph.
std::expected<GraphPart, TraceError> part_of_step(const SessionReader& reader, StepId step,
                                                  const LayerSet& layers);
std::expected<GraphPart, TraceError> part_of_template(const SessionReader& reader, TemplateId id,
                                                      const LayerSet& layers);

// The last step of [first, end) whose graph was recorded. NotFound if there is none.
std::expected<StepId, TraceError> last_with_graph(const SessionReader& reader, StepId first,
                                                  StepId end,
                                                  const ContinueCheck& keep_going = never_cancel);

// The nodes of a part with the same layer, component and category.
struct NodeGroup {
  LayerId layer;
  Component component = Component::Other;
  Category category = Category::Layer;
  std::uint32_t tensors = 0;  // computed tensors and leaves
  std::uint32_t ops = 0;      // ops whose output is in the group
  std::uint32_t weights = 0;
  Bytes weight_bytes{};  // size in the model files
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct GroupEdge {
  std::uint32_t from = 0, to = 0;  // indices into groups, always different
  std::uint32_t edges = 0;         // number of subgraph edges that it represents
  bool cross_layer = false;        // whether one of them is cross-layer
  friend bool operator==(const GroupEdge&, const GroupEdge&) = default;
};

// May contain cycles: attention reads norms, and the norm of the feed-forward half reads
// attention.
struct CollapsedGraph {
  std::vector<NodeGroup> groups;  // in the order of their first node
  std::vector<GroupEdge> edges;   // sorted by from, then to
  friend bool operator==(const CollapsedGraph&, const CollapsedGraph&) = default;
};

// The component of a computed tensor is its own; if its name does not determine one, that
// of the first weight its node reads.
CollapsedGraph collapsed(const GraphTemplate& graph, const LayerSubgraph& subgraph);

}  // namespace tt
