// Layers of a graph that a session evaluated, and such a part with its nodes put
// together by layer and component. Pure functions, any thread.
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
  std::optional<StepId> step;  // that evaluated the graph, where one was asked for
  TemplateId id;
  std::shared_ptr<const GraphTemplate> graph;
  std::uint32_t layers = 0;  // of the model
  LayerSubgraph subgraph;
};

// NotFound: no such step, template or layer, or the step's graph was not
// recorded. A layer of the model that this graph leaves out is there, and empty.
std::expected<GraphPart, TraceError> part_of_step(const SessionReader& reader, StepId step,
                                                  const LayerSet& layers);
std::expected<GraphPart, TraceError> part_of_template(const SessionReader& reader, TemplateId id,
                                                      const LayerSet& layers);

// The last step of [first, end) whose graph was recorded; NotFound: none.
std::expected<StepId, TraceError> last_with_graph(const SessionReader& reader, StepId first,
                                                  StepId end, const KeepGoing& keep_going = always);

// Nodes of a part that are alike in layer, component and category, as one.
struct NodeGroup {
  LayerId layer;
  Component component = Component::Other;
  Category category = Category::Layer;
  std::uint32_t tensors = 0;  // computed and not
  std::uint32_t ops = 0;      // whose output is among them
  std::uint32_t weights = 0;
  Bytes weight_bytes{};  // in the model's files
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct GroupEdge {
  std::uint32_t from = 0, to = 0;  // indices into groups, never the same
  std::uint32_t edges = 0;         // of the part that it stands for
  bool cross_layer = false;        // one of these is
  friend bool operator==(const GroupEdge&, const GroupEdge&) = default;
};

// May have cycles: attention reads norms, and norms of the next half attention.
struct CollapsedGraph {
  std::vector<NodeGroup> groups;  // in the order of their first node
  std::vector<GroupEdge> edges;   // by from, then by to
  friend bool operator==(const CollapsedGraph&, const CollapsedGraph&) = default;
};

// The component of what is computed is its tensor's, or where its name says
// nothing, that of the first weight its node reads.
CollapsedGraph collapsed(const GraphTemplate& graph, const LayerSubgraph& subgraph);

}  // namespace tt
