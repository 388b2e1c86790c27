// A cache of graph templates with their derived accesses, for a query that reads many
// steps.
//
// KnownGraph (tracer/probe/known_graph.h) is a template of the model that is loaded. It is made on
// the inference thread, so it lacks the categories and heads of a DerivedGraph, which cost time and
// are used by queries only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct DerivedGraph {
  std::shared_ptr<const GraphTemplate> graph;
  std::vector<Access> accesses;      // accesses_of(*graph)
  std::vector<Category> categories;  // categories_of(*graph)
  LayerHeads heads;                  // heads_of_layers(*graph)
  // Per op: the access that has the time of the op in queries about tensors (docs/heat.md); kNone:
  // the op has no accesses.
  std::vector<std::uint32_t> main_accesses;
};

// `accesses`: those of the graph.
std::vector<std::uint32_t> main_accesses_of(const GraphTemplate& graph,
                                            std::span<const Access> accesses);

// Part `part` of `parts` equal ones of a number. The first one has the remainder, so that the sum
// is exact.
template <class Number>
constexpr Number share_of(Number whole, std::uint64_t parts, std::uint64_t part) {
  const auto each = static_cast<Number>(whole / static_cast<Number>(parts));
  return part > 0 ? each : static_cast<Number>(whole - each * static_cast<Number>(parts - 1));
}

using DerivedPtr = std::shared_ptr<const DerivedGraph>;

DerivedPtr derive_graph(std::shared_ptr<const GraphTemplate> graph);

// An LRU cache with the lifetime of one query; the reader must outlive it. It keeps the
// kCapacity most recently used templates, because long sessions have hundreds.
class DerivedGraphCache {
 public:
  explicit DerivedGraphCache(const SessionReader& reader) : reader_(reader) {}
  // Null, not an error, for TemplateId{0}: a step without a template.
  std::expected<DerivedPtr, TraceError> of(TemplateId id);

 private:
  static constexpr std::size_t kCapacity = 16;
  const SessionReader& reader_;
  // Most recently used last.
  std::vector<std::pair<TemplateId, DerivedPtr>> kept_;
};

}  // namespace tt
