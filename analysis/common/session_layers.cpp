#include "analysis/common/session_layers.h"

#include <algorithm>
#include <cstdint>
#include <format>

namespace tt {

namespace {

constexpr std::uint32_t kMostLayers = 1u << 16;  // the file is untrusted input

}  // namespace

std::expected<void, TraceError> expect_layers(const LayerSet& set, std::int64_t end) {
  if (set == LayerSet::all()) return {};
  for (const auto& [first, last] : set.ranges) {
    if (last < end) continue;
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The model has no layer {}: it has {} layers, numbered from 0.", last, end)});
  }
  return {};
}

std::int64_t end_of_layers(const GraphTemplate& graph) {
  std::int64_t end = 0;
  for (const Tensor& tensor : graph.tensors) end = std::max(end, std::int64_t{tensor.layer.v} + 1);
  for (const Op& op : graph.ops) end = std::max(end, std::int64_t{op.layer.v} + 1);
  return end;
}

std::expected<void, TraceError> expect_layers(const SessionReader& reader, const LayerSet& set) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  std::int64_t end = std::min(info->n_layers, kMostLayers);
  if (expect_layers(set, end)) return {};
  // An imported session has no layer count of its model, but it has graphs.
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  for (const TemplateId id : *ids) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    end = std::clamp(end_of_layers(**graph), end, std::int64_t{kMostLayers});
  }
  return expect_layers(set, end);
}

std::expected<std::vector<LayerId>, TraceError> layers_in(const SessionReader& reader,
                                                          const LayerSet& set) {
  std::vector<LayerId> layers;
  if (set == LayerSet::all()) return layers;
  if (auto there = expect_layers(reader, set); !there) return std::unexpected(there.error());
  for (const auto& [first, last] : set.ranges)
    for (std::int32_t layer = first; layer <= last; ++layer) layers.push_back(LayerId{layer});
  if (set.outside) layers.push_back(kNoLayer);
  std::ranges::sort(layers);
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  return layers;
}

}  // namespace tt
