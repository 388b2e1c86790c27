#include "api/text/graph_dot.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <format>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "api/json/json.h"
#include "api/text/shape_text.h"

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

std::string node_label(const GraphTemplate& graph, const LayerNode& node) {
  const Tensor& tensor = graph.tensor(node.tensor);
  const bool leaf = node.node == kNoNode;
  const bool labelled = leaf && tensor.input != InputLabel::None;
  const std::string what = labelled ? to_text(tensor.input)
                           : leaf   ? to_text(tensor.kind)
                                    : graph.node(node.node).op;
  return std::format("{}\\n{} {} {}", escaped(tensor.name), escaped(what), escaped(tensor.type),
                     shape_text(tensor.ne));
}

std::string group_label(const NodeGroup& group) {
  std::string text = std::format("{}\\n{}", to_text(group.component), counted(group.ops, "op"));
  if (group.weights > 0) {
    text += std::format(", {}, {}", counted(group.weights, "weight"),
                        format_bytes(static_cast<double>(group.weight_bytes.v)));
  }
  return text;
}

std::string graph_name(const GraphPart& part) {
  return std::format("template {}{}", part.id.v,
                     part.step ? std::format(", step {}", part.step->v) : "");
}

constexpr const char* kNodeDefaults = R"(node [style=filled, fontname="Helvetica", fontsize=10];)";
constexpr const char* kEdgeColour = R"(color="#98a5b5")";

std::string box_text(std::uint32_t number, Category category, const std::string& label) {
  const NodeStyle& style = kNodeStyles[static_cast<std::size_t>(category)];
  return std::format(
      "  n{} [label=\"{}\", class=\"{}\", shape={}, color=\"{}\", fillcolor=\"{}\"];\n", number,
      label, to_text(category), style.shape, style.line, style.fill);
}

std::string edge_text(std::uint32_t from, std::uint32_t to, bool cross_layer) {
  return std::format("  n{} -> n{}{};\n", from, to,
                     cross_layer ? " [style=dashed, color=\"#b35a00\"]" : "");
}

std::string cluster_text(LayerId layer, std::string_view attributes, const std::string& boxes) {
  return std::format("  subgraph \"cluster_{0}\" {{\n  label=\"layer {0}\";{1}\n{2}  }}\n", layer.v,
                     attributes, boxes);
}

// Where the boxes of a collapsed graph are drawn: a row for each layer, in columns of equal height,
// so that a graph of many layers fits a page. Boxes outside of layers are above and below.
class Grid {
 public:
  explicit Grid(const CollapsedGraph& graph) {
    std::vector<std::uint32_t> above, below;
    for (std::uint32_t i = 0; i < graph.groups.size(); ++i) {
      const NodeGroup& group = graph.groups[i];
      if (group.layer != kNoLayer) {
        layers_[group.layer].push_back(i);
      } else {
        (group.category == Category::Output ? below : above).push_back(i);
      }
    }
    std::size_t widest = 1;
    for (const auto& [layer, boxes] : layers_) widest = std::max(widest, boxes.size());
    // A few layers are narrower in two lines each.
    constexpr std::size_t kFewLayers = 3;
    const std::size_t lines = layers_.size() <= kFewLayers ? 2 : 1;
    const std::size_t per_line = (widest + lines - 1) / lines;
    const std::size_t in_column = (layers_.size() + columns(widest) - 1) / columns(widest);
    add_rows(above, per_line);
    const std::size_t first = rows_.size();
    rows_.resize(first + in_column * lines);
    std::size_t at = 0;
    std::uint32_t before = 0;
    for (const auto& [layer, boxes] : layers_) {
      for (std::size_t i = 0; i < boxes.size(); ++i)
        rows_[first + at % in_column * lines + i / per_line].push_back(boxes[i]);
      if (at++ % in_column != 0) aligned_.emplace_back(before, boxes.front());
      before = boxes.front();
    }
    add_rows(below, per_line);
  }

  const std::map<LayerId, std::vector<std::uint32_t>>& layers() const { return layers_; }

  // Invisible edges keep the rows, and the boxes in them, in order.
  std::string constraints() const {
    std::string text, chain;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      std::string boxes;
      for (const std::uint32_t box : rows_[row]) boxes += std::format(" -> n{}", box);
      text += std::format(
          "  r{0} [style=invis, shape=point, width=0];\n"
          "  {{ rank=same; r{0}{1} [style=invis]; }}\n",
          row, boxes);
      chain += std::format("{}r{}", row == 0 ? "" : " -> ", row);
    }
    constexpr const char* kInvisible = " [style=invis, constraint=true, weight=100];\n";
    if (rows_.size() > 1) text += "  " + chain + kInvisible;
    for (const auto& [upper, lower] : aligned_)
      text += std::format("  n{} -> n{}{}", upper, lower, kInvisible);
    return text;
  }

 private:
  // With one column of 4 rows per box of a row, the picture is about 2.5 times as high as wide.
  std::size_t columns(std::size_t widest) const {
    constexpr std::size_t kRowsPerBox = 4, kMaxInColumn = 75;
    if (layers_.size() <= kRowsPerBox * widest) return 1;
    return std::max<std::size_t>(2, (layers_.size() + kMaxInColumn - 1) / kMaxInColumn);
  }
  void add_rows(const std::vector<std::uint32_t>& boxes, std::size_t per_line) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (i % per_line == 0) rows_.emplace_back();
      rows_.back().push_back(boxes[i]);
    }
  }

  std::map<LayerId, std::vector<std::uint32_t>> layers_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> aligned_;
};

}  // namespace

std::string to_dot(const GraphPart& part) {
  std::map<LayerId, std::string> boxes;
  for (const LayerNode& node : part.subgraph.nodes)
    boxes[node.layer] += box_text(node.tensor.v, node.category, node_label(*part.graph, node));
  std::string text = std::format("digraph \"{}\" {{\n  {}\n  edge [{}];\n", graph_name(part),
                                 kNodeDefaults, kEdgeColour);
  for (const auto& [layer, of_layer] : boxes)
    text += layer == kNoLayer ? of_layer : cluster_text(layer, "", of_layer);
  for (const LayerEdge& edge : part.subgraph.edges)
    text += edge_text(edge.from.v, edge.to.v, edge.cross_layer);
  return text + "}\n";
}

std::string collapsed_dot(const GraphPart& part) {
  const CollapsedGraph graph = collapsed(*part.graph, part.subgraph);
  const Grid grid(graph);
  const auto box = [&](std::uint32_t i) {
    return box_text(i, graph.groups[i].category, group_label(graph.groups[i]));
  };
  std::string text = std::format(
      "digraph \"{}\" {{\n"
      "  newrank=true; splines=line; nodesep=0.15; ranksep=0.15;\n"
      "  {}\n"
      "  edge [{}, constraint=false, weight=0];\n",
      graph_name(part), kNodeDefaults, kEdgeColour);
  for (std::uint32_t i = 0; i < graph.groups.size(); ++i)
    if (graph.groups[i].layer == kNoLayer) text += box(i);
  for (const auto& [layer, groups] : grid.layers()) {
    std::string boxes;
    for (const std::uint32_t i : groups) boxes += box(i);
    text += cluster_text(layer, " margin=4; fontsize=10;", boxes);
  }
  text += grid.constraints();
  for (const GroupEdge& edge : graph.edges) text += edge_text(edge.from, edge.to, edge.cross_layer);
  return text + "}\n";
}

}  // namespace tt
