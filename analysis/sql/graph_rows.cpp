// template, tensor and edge: the graphs evaluated by the steps.
#include <array>
#include <format>
#include <memory>
#include <optional>

#include "analysis/columns/tensor_columns.h"
#include "analysis/columns/values.h"
#include "analysis/graph/dependencies.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/tables.h"
#include "tracer/text/utf8.h"

namespace tt::sql {

namespace {

using enum Pushdown;

std::int64_t graph_row_id(TemplateId graph, std::uint64_t i) {
  return static_cast<std::int64_t>((std::uint64_t{graph.v} << 31) + i);
}

// A chunk is a template.
template <class Row>
class GraphCursor : public ChunkCursor<Row> {
 public:
  GraphCursor(std::span<const Column<Row>> columns, std::size_t template_column,
              SessionSource& source)
      : ChunkCursor<Row>(columns), template_column_(template_column), source_(source) {}

 protected:
  virtual void add(std::vector<Row>& rows, TemplateId id, const NamedGraph& graph) = 0;

 private:
  Status begin(const Conditions& conditions) override {
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    auto ids = (*reader)->template_ids();
    if (!ids) return std::unexpected(ids.error());
    ids_ = *std::move(ids);
    constraint_ = conditions.of(template_column_);
    at_ = 0;
    return {};
  }
  Expected<bool> next_chunk(std::vector<Row>& rows) override {
    while (at_ < ids_.size() && !constraint_.contains(std::int64_t{ids_[at_].v})) ++at_;
    if (at_ == ids_.size()) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const TemplateId id = ids_[at_++];
    auto graph = source_.graph(id);
    if (!graph) return std::unexpected(graph.error());
    graph_ = *std::move(graph);
    if (graph_ != nullptr) add(rows, id, *graph_);
    return true;
  }
  std::size_t template_column_;
  SessionSource& source_;
  ColumnConstraint constraint_{};
  std::vector<TemplateId> ids_;
  std::size_t at_ = 0;
  std::shared_ptr<const NamedGraph> graph_;  // owns what the rows point to
};

struct TemplateRow {
  std::int64_t row_id = 0;
  const NamedGraph* named = nullptr;
  const GraphTemplate& graph() const { return named->graph(); }
};
using G = const TemplateRow&;

constexpr auto kTemplateColumns = std::to_array<Column<TemplateRow>>({
    {"template", [](G r) { return r.row_id; }, Chunks},
    {"fingerprint", [](G r) { return std::format("{:016x}", r.graph().fingerprint); }},
    {"tensors", [](G r) { return r.graph().tensors.size(); }},
    {"nodes", [](G r) { return r.graph().nodes.size(); }},
    {"ops", [](G r) { return r.graph().ops.size(); }},
    {"slots", [](G r) { return r.graph().slots.size(); }},
    {"accesses", [](G r) { return r.named->derived->accesses.size(); }},
});

class TemplateCursor final : public GraphCursor<TemplateRow> {
 public:
  explicit TemplateCursor(SessionSource& source)
      : GraphCursor(kTemplateColumns, column_index(kTemplateColumns, "template"), source) {}

 private:
  void add(std::vector<TemplateRow>& rows, TemplateId id, const NamedGraph& graph) override {
    rows.push_back({.row_id = id.v, .named = &graph});
  }
};

struct TensorRow {
  std::int64_t row_id = 0;
  TemplateId graph{};
  const NamedGraph* named = nullptr;
  TensorId id{};

  TemplateId template_id() const { return graph; }
  TensorId tensor_id() const { return id; }
  const Tensor& tensor() const { return named->graph().tensor(id); }
  Category category() const { return named->derived->categories[id.v]; }
  std::string_view tensor_name() const { return named->tensors[id.v]; }
  std::string_view tensor_type() const { return named->types[id.v]; }
  std::string buffer() const { return to_valid_utf8(tensor().buffer); }
};

constexpr auto kTensorColumns = sql_columns<TensorRow, columns::tensor_columns>();

class TensorCursor final : public GraphCursor<TensorRow> {
 public:
  explicit TensorCursor(SessionSource& source)
      : GraphCursor(kTensorColumns, column_index(kTensorColumns, "template"), source) {}

 private:
  void add(std::vector<TensorRow>& rows, TemplateId id, const NamedGraph& graph) override {
    for (TensorId tensor{0}; tensor.v < graph.tensors.size(); ++tensor.v)
      rows.push_back(
          {.row_id = graph_row_id(id, tensor.v), .graph = id, .named = &graph, .id = tensor});
  }
};

struct EdgeRow {
  std::int64_t row_id = 0;
  TemplateId id{};
  const NamedGraph* named = nullptr;
  Dependency edge{};

  std::optional<std::int32_t> layer_of(TensorId tensor) const {
    return columns::layer_or_null(named->graph().tensor(tensor).layer);
  }
};
using D = const EdgeRow&;

constexpr auto kEdgeColumns = std::to_array<Column<EdgeRow>>({
    {"template", [](D r) { return r.id.v; }, Chunks},
    {"from_tensor", [](D r) { return r.edge.from.v; }, Rows},
    {"to_tensor", [](D r) { return r.edge.to.v; }, Rows},
    {"from_name", [](D r) { return r.named->tensors[r.edge.from.v]; }, Rows},
    {"to_name", [](D r) { return r.named->tensors[r.edge.to.v]; }, Rows},
    {"from_layer_id", [](D r) { return r.layer_of(r.edge.from); }, Rows},
    {"to_layer_id", [](D r) { return r.layer_of(r.edge.to); }, Rows},
});

class EdgeCursor final : public GraphCursor<EdgeRow> {
 public:
  explicit EdgeCursor(SessionSource& source)
      : GraphCursor(kEdgeColumns, column_index(kEdgeColumns, "template"), source) {}

 private:
  void add(std::vector<EdgeRow>& rows, TemplateId id, const NamedGraph& graph) override {
    for (const Dependency& edge : dependencies_of(graph.graph()))
      rows.push_back(
          {.row_id = graph_row_id(id, rows.size()), .id = id, .named = &graph, .edge = edge});
  }
};

}  // namespace

Table template_table() {
  return table_of<TemplateCursor>({.name = "template", .rows = 20, .chunks = 20, .ordered_by = 1},
                                  kTemplateColumns);
}

Table tensor_table() {
  return table_of<TensorCursor>({.name = "tensor", .rows = 2e4, .chunks = 20, .ordered_by = 2},
                                kTensorColumns);
}

Table edge_table() {
  return table_of<EdgeCursor>({.name = "edge", .rows = 4e4, .chunks = 20, .ordered_by = 1},
                              kEdgeColumns);
}

}  // namespace tt::sql
