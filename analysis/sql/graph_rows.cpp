// template, tensor and edge: the graphs evaluated by the steps.
#include <array>
#include <format>
#include <memory>

#include "analysis/columns/tensor_columns.h"
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

constexpr std::array kTemplateColumns = {
    Column<TemplateRow>{"template", "INTEGER", [](G r, Output& o) { o.integer(r.row_id); }, Chunks},
    Column<TemplateRow>{
        "fingerprint", "TEXT",
        [](G r, Output& o) { o.text_copy(std::format("{:016x}", r.graph().fingerprint)); }},
    Column<TemplateRow>{"tensors", "INTEGER",
                        [](G r, Output& o) { o.count(r.graph().tensors.size()); }},
    Column<TemplateRow>{"nodes", "INTEGER",
                        [](G r, Output& o) { o.count(r.graph().nodes.size()); }},
    Column<TemplateRow>{"ops", "INTEGER", [](G r, Output& o) { o.count(r.graph().ops.size()); }},
    Column<TemplateRow>{"slots", "INTEGER",
                        [](G r, Output& o) { o.count(r.graph().slots.size()); }},
    Column<TemplateRow>{"accesses", "INTEGER",
                        [](G r, Output& o) { o.count(r.named->derived->accesses.size()); }},
};

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
};
using D = const EdgeRow&;

constexpr std::array kEdgeColumns = {
    Column<EdgeRow>{"template", "INTEGER", [](D r, Output& o) { o.integer(r.id.v); }, Chunks},
    Column<EdgeRow>{"from_tensor", "INTEGER", [](D r, Output& o) { o.integer(r.edge.from.v); },
                    Rows},
    Column<EdgeRow>{"to_tensor", "INTEGER", [](D r, Output& o) { o.integer(r.edge.to.v); }, Rows},
    Column<EdgeRow>{"from_name", "TEXT",
                    [](D r, Output& o) { o.text(r.named->tensors[r.edge.from.v]); }, Rows},
    Column<EdgeRow>{"to_name", "TEXT",
                    [](D r, Output& o) { o.text(r.named->tensors[r.edge.to.v]); }, Rows},
    Column<EdgeRow>{
        "from_layer_id", "INTEGER",
        [](D r, Output& o) { o.id(r.named->graph().tensor(r.edge.from).layer, kNoLayer); }, Rows},
    Column<EdgeRow>{
        "to_layer_id", "INTEGER",
        [](D r, Output& o) { o.id(r.named->graph().tensor(r.edge.to).layer, kNoLayer); }, Rows},
};

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

template <class C>
std::unique_ptr<Cursor> open_cursor(SessionSource& source) {
  return std::make_unique<C>(source);
}

}  // namespace

Table template_table() {
  Table table = table_of<TemplateRow>("template", kTemplateColumns);
  table.rows = table.chunks = 20;
  table.ordered_by = 1;
  table.open = open_cursor<TemplateCursor>;
  return table;
}

Table tensor_table() {
  Table table = table_of<TensorRow>("tensor", kTensorColumns);
  table.rows = 2e4;
  table.chunks = 20;
  table.ordered_by = 2;
  table.open = open_cursor<TensorCursor>;
  return table;
}

Table edge_table() {
  Table table = table_of<EdgeRow>("edge", kEdgeColumns);
  table.rows = 4e4;
  table.chunks = 20;
  table.ordered_by = 1;
  table.open = open_cursor<EdgeCursor>;
  return table;
}

}  // namespace tt::sql
