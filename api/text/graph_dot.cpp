#include "api/text/graph_dot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <format>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "api/json/json.h"

namespace tt {

namespace {

struct NodeStyle {
  std::string_view shape, line, fill;
};

// Colours of the light theme of the web UI (webui/src/css/base.css). Indexed by Category.
constexpr std::array<NodeStyle, 6> kNodeStyles = {{{"box", "#1f6fd0", "#e3effd"},
                                                   {"hexagon", "#1c8450", "#e0f5e8"},
                                                   {"parallelogram", "#8a6a00", "#faf2d2"},
                                                   {"octagon", "#b3316b", "#fce6f0"},
                                                   {"invhouse", "#b35a00", "#fdeedb"},
                                                   {"ellipse", "#7741c9", "#efe6fc"}}};

// Escapes text inside a quoted label, where backslash and ampersand are special.
std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : Json::parse(text_of(Json(bytes))).get<std::string>()) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += byte < 0x20 || byte == 0x7F ? '?' : c;
    }
  }
  return out;
}

std::string shape_text(const Tensor& tensor) {
  std::size_t dimensions = tensor.ne.size();
  while (dimensions > 1 && tensor.ne[dimensions - 1] == 1) --dimensions;
  std::string text;
  for (std::size_t i = 0; i < dimensions; ++i)
    text += std::format("{}{}", i == 0 ? "" : "x", tensor.ne[i]);
  return text;
}

std::string node_label(const GraphTemplate& graph, const LayerNode& node) {
  const Tensor& tensor = graph.tensor(node.tensor);
  const bool leaf = node.node == kNoNode;
  const bool labelled = leaf && tensor.input != InputLabel::None;
  const std::string what = labelled ? to_text(tensor.input)
                           : leaf   ? to_text(tensor.kind)
                                    : graph.node(node.node).op;
  return std::format("{}\\n{} {} {}", escaped(tensor.name), escaped(what), escaped(tensor.type),
                     shape_text(tensor));
}

std::string group_label(const NodeGroup& group) {
  std::string text = std::format("{}\\n{} ops", to_text(group.component), group.ops);
  if (group.weights > 0) {
    text += std::format(", {} weights, {}", group.weights,
                        format_bytes(static_cast<double>(group.weight_bytes.v)));
  }
  return text;
}

// Boxes and edges of either graph form; the caller assigns the numbers.
class DotWriter {
 public:
  explicit DotWriter(const GraphPart& part) {
    const std::string step = part.step ? std::format(", step {}", part.step->v) : "";
    text_ = std::format(
        "digraph \"template {}{}\" {{\n"
        "  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n"
        "  edge [color=\"#98a5b5\"];\n",
        part.id.v, step);
  }
  void add_box(std::uint32_t number, LayerId layer, Category category, const std::string& label) {
    const NodeStyle& style = kNodeStyles[static_cast<std::size_t>(category)];
    boxes_[layer] += std::format(
        "  n{} [label=\"{}\", class=\"{}\", shape={}, color=\"{}\", fillcolor=\"{}\"];\n", number,
        label, to_text(category), style.shape, style.line, style.fill);
  }
  void add_edge(std::uint32_t from, std::uint32_t to, bool cross_layer) {
    std::format_to(std::back_inserter(edges_), "  n{} -> n{}{};\n", from, to,
                   cross_layer ? " [style=dashed, color=\"#b35a00\"]" : "");
  }
  std::string take() {
    for (const auto& [layer, boxes] : boxes_) {
      if (layer == kNoLayer) {
        text_ += boxes;
      } else {
        text_ += std::format("  subgraph \"cluster_{0}\" {{\n  label=\"layer {0}\";\n{1}  }}\n",
                             layer.v, boxes);
      }
    }
    return std::move(text_) + edges_ + "}\n";
  }

 private:
  std::string text_, edges_;
  std::map<LayerId, std::string> boxes_;
};

}  // namespace

std::string to_dot(const GraphPart& part) {
  DotWriter writer(part);
  for (const LayerNode& node : part.subgraph.nodes)
    writer.add_box(node.tensor.v, node.layer, node.category, node_label(*part.graph, node));
  for (const LayerEdge& edge : part.subgraph.edges)
    writer.add_edge(edge.from.v, edge.to.v, edge.cross_layer);
  return writer.take();
}

std::string collapsed_dot(const GraphPart& part) {
  const CollapsedGraph graph = collapsed(*part.graph, part.subgraph);
  DotWriter writer(part);
  for (std::uint32_t i = 0; i < graph.groups.size(); ++i) {
    const NodeGroup& group = graph.groups[i];
    writer.add_box(i, group.layer, group.category, group_label(group));
  }
  for (const GroupEdge& edge : graph.edges) writer.add_edge(edge.from, edge.to, edge.cross_layer);
  return writer.take();
}

}  // namespace tt
