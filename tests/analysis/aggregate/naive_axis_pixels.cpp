#include "tests/analysis/aggregate/naive_axis_pixels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/common/op_info.h"
#include "analysis/tables/tensor_table.h"

namespace tt::test {
namespace {

std::string layer_name(LayerId layer) {
  return layer == kNoLayer ? "none" : std::to_string(layer.v);
}

// The row name on a categorical axis; empty: no row.
std::string row_name(Axis axis, const Fact& fact, const KernelRules& rules) {
  const GraphTemplate& graph = *fact.graph;
  const Op& op = graph.ops[fact.op];
  switch (axis) {
    case Axis::Layer:
      return layer_name(op.layer);
    case Axis::Component:
      return to_text(op_role_of(graph, op).component);
    case Axis::OpKind:
      return op_name(graph, op);
    case Axis::Op:
      return graph.tensor(graph.node(op.last()).output).name;
    case Axis::Kernel: {
      const auto kernel = kernel_of(graph, op, rules);
      return kernel ? to_text(*kernel) : "unknown";
    }
    case Axis::Phase:
      return to_text(fact.step->phase);
    case Axis::Tensor:
      return fact.access ? graph.tensor(graph.root(fact.access->tensor)).name : "";
    case Axis::Source:
      return fact.access ? to_text(graph.tensor(fact.access->tensor).source) : "";
    case Axis::Type:
      return fact.access ? graph.tensor(graph.root(fact.access->tensor)).type : "";
    case Axis::Expert: {
      if (fact.expert < 0) return "";
      const LayerId layer = graph.tensor(graph.root(fact.access->tensor)).layer;
      return (layer == kNoLayer ? "" : "blk." + std::to_string(layer.v) + " ") + "expert " +
             std::to_string(fact.expert);
    }
    default:
      return "all";
  }
}

// Whether the row belongs to the fact, whose row has this name. Different tensors may have the same
// name.
bool is_row(const SessionIndex& index, const RasterAxis& axis, std::size_t row, const Fact& fact,
            const std::string& name) {
  if (axis.rows[row] != name) return false;
  const auto key = static_cast<std::size_t>(axis.keys[row]);
  if (axis.axis == Axis::Op) {
    const SessionOp& of = index.names().ops()[key];
    const Op& op = fact.graph->ops[fact.op];
    return of.layer == op.layer && index.names().kinds()[of.kind] == op_name(*fact.graph, op);
  }
  if (axis.axis != Axis::Tensor) return true;
  return index.names().tensors()[key].file ==
         fact.graph->tensor(fact.graph->root(fact.access->tensor)).file;
}

}  // namespace

PixelShares range_pixel_shares(const RasterAxis& axis, std::int64_t begin, std::int64_t end) {
  PixelShares shares;
  const auto n = axis.range.to - axis.range.from;
  for (std::uint32_t p = 0; p < axis.pixels; ++p) {
    const std::int64_t from = axis.range.from + n * p / axis.pixels;
    const std::int64_t to = axis.range.from + n * (p + 1) / axis.pixels;
    const std::int64_t part = std::min(end, to) - std::max(begin, from);
    if (part > 0) shares[p] = static_cast<double>(part) / static_cast<double>(end - begin);
  }
  return shares;
}

namespace {

// Equal shares of all query heads of the tensor's layer, if the whole tensor is divided by heads
// or it is a cache.
PixelShares head_shares(const SessionIndex& index, const RasterAxis& axis, const Fact& fact) {
  if (fact.access == nullptr) return {};
  const GraphTemplate& graph = *fact.graph;
  const Tensor& tensor = graph.tensor(graph.root(fact.access->tensor));
  const HeadCounts model{index.info().n_heads, index.info().n_heads_kv};
  const LayerHeads layers = heads_of_layers(graph);
  const bool of_cache = tensor.kind == TensorKind::Kv &&
                        (tensor.role == Role::K || tensor.role == Role::V) &&
                        !tensor.name.starts_with("cache_idx");
  const bool of_weight =
      tensor.kind == TensorKind::Weight && head_geometry(tensor, layers, model).count > 0 &&
      fact.access->extent == Extent::All && fact.access->unit.v == size_of(tensor).v;
  if (!of_cache && !of_weight) return {};
  const std::uint32_t heads = layers.empty()                   ? model.q
                              : !layers.contains(tensor.layer) ? 0
                                                               : layers.at(tensor.layer).q;
  PixelShares shares;
  for (std::uint32_t head = 0; head < heads; ++head) {
    const std::string name =
        "blk." + std::to_string(tensor.layer.v) + " head " + std::to_string(head);
    const auto row = std::ranges::find(axis.rows, name);
    if (row == axis.rows.end()) continue;
    const std::int64_t at = axis.range.from + (row - axis.rows.begin());
    for (const auto& [pixel, share] : range_pixel_shares(axis, at, at + 1))
      shares[pixel] += share / heads;
  }
  return shares;
}

}  // namespace

PixelShares pixel_shares(const SessionIndex& index, const RasterAxis& axis, const Fact& fact) {
  if (axis.axis == Axis::Head) return head_shares(index, axis, fact);
  if (axis.axis == Axis::File) {
    if (fact.file.empty()) return {};
    for (const AxisSection& section : axis.sections) {
      const auto at = static_cast<std::uint32_t>(&section - axis.sections.data());
      if (at == fact.file.file) {
        const auto from = section.range.from + static_cast<std::int64_t>(fact.file.offset);
        return range_pixel_shares(axis, from, from + static_cast<std::int64_t>(fact.file.length));
      }
    }
    return {};
  }
  if (axis.axis == Axis::Buffer) {
    if (fact.address == 0 || fact.graph->tensor(fact.access->tensor).source == Source::Disk)
      return {};
    for (const AxisSection& section : axis.sections) {
      const auto size = static_cast<std::uint64_t>(section.range.to - section.range.from);
      if (fact.address < section.origin || fact.address >= section.origin + size) continue;
      const auto from =
          section.range.from + static_cast<std::int64_t>(fact.address - section.origin);
      return range_pixel_shares(axis, from, from + static_cast<std::int64_t>(fact.span));
    }
    ADD_FAILURE() << "address outside of all buffers";
    return {};
  }
  const std::string name = row_name(axis.axis, fact, kernel_rules_of(index.info()));
  if (name.empty()) return {};
  for (std::size_t i = 0; i < axis.rows.size(); ++i) {
    if (is_row(index, axis, i, fact, name)) {
      const auto row = axis.range.from + static_cast<std::int64_t>(i);
      return range_pixel_shares(axis, row, row + 1);
    }
  }
  return {};
}

}  // namespace tt::test
