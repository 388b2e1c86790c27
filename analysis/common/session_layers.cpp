#include "analysis/common/session_layers.h"
#include "analysis/common/no_such_part.h"

#include <algorithm>
#include <cstdint>

namespace tt {

namespace {

constexpr std::uint32_t kMaxLayers = 1u << 16;  // the file is untrusted input

}  // namespace

std::expected<void, TraceError> validate_layers(const LayerSet& set, std::int64_t end) {
  if (set == LayerSet::all()) return {};
  for (const auto& [first, last] : set.ranges) {
    if (last < end) continue;
    return std::unexpected(no_such_part("model", "layer", static_cast<std::uint64_t>(last),
                                        static_cast<std::uint64_t>(end)));
  }
  return {};
}

std::int64_t layer_count(const GraphTemplate& graph) {
  std::int64_t end = 0;
  for (const Tensor& tensor : graph.tensors) end = std::max(end, std::int64_t{tensor.layer.v} + 1);
  for (const Op& op : graph.ops) end = std::max(end, std::int64_t{op.layer.v} + 1);
  return end;
}

std::expected<void, TraceError> validate_layers(const SessionReader& reader, const LayerSet& set) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  std::int64_t end = std::min(info->n_layers, kMaxLayers);
  if (validate_layers(set, end)) return {};
  // An imported session has no layer count of its model, but it has graphs.
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  for (const TemplateId id : *ids) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    end = std::clamp(layer_count(**graph), end, std::int64_t{kMaxLayers});
  }
  return validate_layers(set, end);
}

std::expected<std::vector<LayerId>, TraceError> resolve_layers(const SessionReader& reader,
                                                               const LayerSet& set) {
  std::vector<LayerId> layers;
  if (set == LayerSet::all()) return layers;
  if (auto there = validate_layers(reader, set); !there) return std::unexpected(there.error());
  for (const auto& [first, last] : set.ranges)
    for (std::int32_t layer = first; layer <= last; ++layer) layers.push_back(LayerId{layer});
  if (set.outside) layers.push_back(kNoLayer);
  std::ranges::sort(layers);
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  return layers;
}

}  // namespace tt
