// The work of one layer for a token: what the hyper-parameters of a model let one expect, and what
// a recorded graph has. Both are computed independently: the first uses only metadata of the model
// file, the second only the graph. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"

namespace tt {

struct LayerWork {
  // Elements of the matrices that the token is multiplied with; of a mixture those of all experts.
  std::uint64_t matrix_elements = 0;
  std::uint64_t cached_elements = 0;  // written to the KV cache
  std::uint32_t attentions = 0;       // that read the KV cache
  std::uint32_t scans = 0;            // of a recurrent state (SSM)
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};
std::string to_text(const LayerWork& work);  // "2,048 elements of matrices, ..."

// Of each layer. nullopt: the layers of this architecture differ, or what they compute does not
// follow from the metadata.
std::optional<LayerWork> expected_layer_work(const SessionInfo& info);

struct GraphWork {
  LayerWork work;
  // Tokens that the matrices of the layer are multiplied with, at least and at most.
  std::uint64_t fewest_tokens = 0, most_tokens = 0;
};
// Of the layers [0, layers) of a graph.
std::vector<GraphWork> layer_work_of(const GraphTemplate& graph, std::uint32_t layers);

}  // namespace tt
