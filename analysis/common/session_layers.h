// The layers of a session's model, as a question names them.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/common/layer_set.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// NotFound where the set names a layer that a model with layers 0 to `end` - 1 has not.
std::expected<void, TraceError> expect_layers(const LayerSet& set, std::int64_t end);
// The number behind the last layer of a graph.
std::int64_t end_of_layers(const GraphTemplate& graph);

// NotFound where the set names a layer that neither the model nor a graph of it has.
std::expected<void, TraceError> expect_layers(const SessionReader& reader, const LayerSet& set);

// The layers that the set names, as TraceFilter has them: none where it is all of them,
// kNoLayer for what belongs to none. NotFound as above.
std::expected<std::vector<LayerId>, TraceError> layers_in(const SessionReader& reader,
                                                          const LayerSet& set);

}  // namespace tt
