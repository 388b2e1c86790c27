// Validates the layers of a query against the layers of a session's model.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/common/layer_set.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// NotFound if the set contains a layer number >= `end`.
std::expected<void, TraceError> validate_layers(const LayerSet& set, std::int64_t end);
// The highest layer number of a graph plus 1.
std::int64_t layer_count(const GraphTemplate& graph);

// NotFound if the set contains a layer that neither the model nor any of its graphs has.
std::expected<void, TraceError> validate_layers(const SessionReader& reader, const LayerSet& set);

// The layers of the set in the form that TraceFilter uses: an empty list means all layers,
// kNoLayer means everything outside of layers. NotFound as above.
std::expected<std::vector<LayerId>, TraceError> resolve_layers(const SessionReader& reader,
                                                               const LayerSet& set);

}  // namespace tt
