// step, op and expert: the data recorded per step.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <ranges>

#include "analysis/experts/routing.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "tracer/format/access/access.h"

namespace tt::sql {

namespace {

using enum Pushdown;

template <class C>
std::unique_ptr<Cursor> open_cursor(SessionSource& source) {
  return std::make_unique<C>(source);
}

struct StepRow {
  std::int64_t row_id = 0;
  std::shared_ptr<const Step> step;
  AccessTotals totals{};
};
using S = const StepRow&;

constexpr std::array kStepColumns = {
    Column<StepRow>{"step", "INTEGER", [](S r, Output& o) { o.integer(r.step->id.v); }, Chunks},
    Column<StepRow>{"phase", "TEXT", [](S r, Output& o) { o.text_ref(to_text(r.step->phase)); },
                    Chunks},
    Column<StepRow>{"timing", "TEXT", [](S r, Output& o) { o.text_ref(to_text(r.step->timing)); }},
    Column<StepRow>{"template", "INTEGER",
                    [](S r, Output& o) { o.id(r.step->graph, TemplateId{0}); }, Chunks},
    Column<StepRow>{"token_id", "INTEGER", [](S r, Output& o) { o.integer(r.step->first_token); },
                    Chunks},
    Column<StepRow>{"token_count", "INTEGER", [](S r, Output& o) { o.integer(r.step->n_tokens); }},
    Column<StepRow>{"begin_ns", "INTEGER", [](S r, Output& o) { o.integer(r.step->begin.v); },
                    Rows},
    Column<StepRow>{"end_ns", "INTEGER", [](S r, Output& o) { o.integer(r.step->end.v); }, Rows},
    Column<StepRow>{"duration_ns", "INTEGER",
                    [](S r, Output& o) { o.integer((r.step->end - r.step->begin).v); }},
    Column<StepRow>{"first_op_ns", "INTEGER",
                    [](S r, Output& o) { o.integer(r.step->first_op.v); }},
    Column<StepRow>{"threads", "INTEGER", [](S r, Output& o) { o.integer(r.step->threads); }},
    Column<StepRow>{"ops_timed", "INTEGER", [](S r, Output& o) { o.u64(r.step->op_ends.size()); }},
    Column<StepRow>{"accesses", "INTEGER", [](S r, Output& o) { o.u64(r.totals.accesses); }},
    Column<StepRow>{"read_bytes", "INTEGER", [](S r, Output& o) { o.u64(r.totals.read.v); }},
    Column<StepRow>{"written_bytes", "INTEGER", [](S r, Output& o) { o.u64(r.totals.written.v); }},
    Column<StepRow>{"dropped", "INTEGER", [](S r, Output& o) { o.integer(r.step->dropped); }},
    Column<StepRow>{"aborted", "INTEGER", [](S r, Output& o) { o.integer(r.step->aborted); }},
};

class StepCursor final : public ChunkCursor<StepRow> {
 public:
  explicit StepCursor(SessionSource& source)
      : ChunkCursor(kStepColumns),
        walk_(source, {.step = column_index(kStepColumns, "step"),
                       .phase = column_index(kStepColumns, "phase"),
                       .graph = column_index(kStepColumns, "template"),
                       .token = column_index(kStepColumns, "token_id")}) {}

 private:
  Status begin(const Conditions& conditions) override {
    totals_ = conditions.uses(column_index(kStepColumns, "accesses")) ||
              conditions.uses(column_index(kStepColumns, "read_bytes")) ||
              conditions.uses(column_index(kStepColumns, "written_bytes"));
    return walk_.begin(conditions);
  }
  Expected<bool> next_chunk(std::vector<StepRow>& rows) override {
    auto step = walk_.next();
    if (!step) return std::unexpected(step.error());
    if (*step == nullptr) return false;
    StepRow row{.row_id = (*step)->id.v, .step = *std::move(step)};
    if (totals_) {
      const auto graph = walk_.source().graph(row.step->graph);
      if (!graph) return std::unexpected(graph.error());
      if (*graph != nullptr)
        row.totals = totals_of((*graph)->graph(), (*graph)->derived->accesses, *row.step);
    }
    rows.push_back(std::move(row));
    return true;
  }
  StepWalk walk_;
  bool totals_ = false;
};

// One executed op of one step.
struct OpRow {
  std::int64_t row_id = 0;
  const Step* step = nullptr;
  const NamedGraph* graph = nullptr;
  OpId op;
  Bytes read{}, written{};
  const ValueStats* stats = nullptr;  // null: not recorded (below level VERBOSE)

  TensorId output() const { return graph->graph().node(graph->graph().op(op).last()).output; }
  const Tensor& tensor() const { return graph->graph().tensor(output()); }
};
using O = const OpRow&;

// NULL if the statistics are not finite, because no value was a number.
void number(O row, float ValueStats::* of, Output& out) {
  if (row.stats == nullptr || !std::isfinite(row.stats->*of)) return out.null();
  out.real(static_cast<double>(row.stats->*of));
}
void count(O row, std::uint64_t ValueStats::* of, Output& out) {
  if (row.stats == nullptr) return out.null();
  out.u64(row.stats->*of);
}

constexpr std::array kOpColumns = {
    Column<OpRow>{"step", "INTEGER", [](O r, Output& o) { o.integer(r.step->id.v); }, Chunks},
    Column<OpRow>{"op", "INTEGER", [](O r, Output& o) { o.integer(r.op.v); }, Rows},
    Column<OpRow>{"phase", "TEXT", [](O r, Output& o) { o.text_ref(to_text(r.step->phase)); },
                  Chunks},
    Column<OpRow>{"template", "INTEGER", [](O r, Output& o) { o.integer(r.step->graph.v); },
                  Chunks},
    Column<OpRow>{"token_id", "INTEGER", [](O r, Output& o) { o.integer(r.step->first_token); },
                  Chunks},
    Column<OpRow>{"operation_type", "TEXT",
                  [](O r, Output& o) { o.text_ref(r.graph->ops[r.op.v]); }, Rows},
    Column<OpRow>{"op_layer_id", "INTEGER",
                  [](O r, Output& o) { o.id(r.graph->graph().op(r.op).layer, kNoLayer); }, Rows},
    Column<OpRow>{"device", "TEXT", [](O r, Output& o) { o.text_ref(r.graph->devices[r.op.v]); },
                  Rows},
    Column<OpRow>{"tensor", "INTEGER", [](O r, Output& o) { o.integer(r.output().v); }, Rows},
    Column<OpRow>{"tensor_name", "TEXT",
                  [](O r, Output& o) { o.text_ref(r.graph->tensors[r.output().v]); }, Rows},
    Column<OpRow>{"component", "TEXT",
                  [](O r, Output& o) { o.text_ref(to_text(r.tensor().component)); }, Rows},
    Column<OpRow>{"timestamp_ns", "INTEGER",
                  [](O r, Output& o) { o.integer(r.step->op_begin(r.op).v); }, Chunks},
    Column<OpRow>{"duration_ns", "INTEGER",
                  [](O r, Output& o) {
                    if (r.op.v >= r.step->op_ends.size()) return o.null();
                    o.integer((r.step->op_ends[r.op.v] - r.step->op_begin(r.op)).v);
                  }},
    Column<OpRow>{"read_bytes", "INTEGER", [](O r, Output& o) { o.u64(r.read.v); }},
    Column<OpRow>{"written_bytes", "INTEGER", [](O r, Output& o) { o.u64(r.written.v); }},
    Column<OpRow>{"output_min", "REAL", [](O r, Output& o) { number(r, &ValueStats::min, o); }},
    Column<OpRow>{"output_max", "REAL", [](O r, Output& o) { number(r, &ValueStats::max, o); }},
    Column<OpRow>{"output_mean", "REAL", [](O r, Output& o) { number(r, &ValueStats::mean, o); }},
    Column<OpRow>{"output_std", "REAL", [](O r, Output& o) { number(r, &ValueStats::std, o); }},
    Column<OpRow>{"output_nan", "INTEGER", [](O r, Output& o) { count(r, &ValueStats::nan, o); }},
    Column<OpRow>{"output_inf", "INTEGER", [](O r, Output& o) { count(r, &ValueStats::inf, o); }},
};

class OpCursor final : public ChunkCursor<OpRow> {
 public:
  explicit OpCursor(SessionSource& source)
      : ChunkCursor(kOpColumns),
        walk_(source, {.step = column_index(kOpColumns, "step"),
                       .phase = column_index(kOpColumns, "phase"),
                       .graph = column_index(kOpColumns, "template"),
                       .token = column_index(kOpColumns, "token_id"),
                       .time = column_index(kOpColumns, "timestamp_ns")}) {}

 private:
  Status begin(const Conditions& conditions) override {
    bytes_ = conditions.uses(column_index(kOpColumns, "read_bytes")) ||
             conditions.uses(column_index(kOpColumns, "written_bytes"));
    return walk_.begin(conditions);
  }
  Expected<bool> next_chunk(std::vector<OpRow>& rows) override {
    auto step = walk_.next();
    if (!step) return std::unexpected(step.error());
    if (*step == nullptr) return false;
    step_ = *std::move(step);
    auto graph = walk_.source().graph(step_->graph);
    if (!graph) return std::unexpected(graph.error());
    graph_ = *std::move(graph);
    if (graph_ == nullptr) return true;
    const auto all = static_cast<std::uint32_t>(graph_->graph().ops.size());
    const std::size_t ran = step_->ops_run(all);
    std::vector<Bytes> read(bytes_ ? all : 0), written(read);
    if (bytes_) {
      for_each_access(graph_->graph(), graph_->derived->accesses, *step_,
                      [&](const StepAccess& access) {
                        (access.write ? written : read)[access.op.v] += access.touched;
                      });
    }
    const std::size_t first = rows.size();
    for (OpId op{0}; op.v < ran; ++op.v) {
      OpRow row{.row_id = step_row_id(step_->id, op.v),
                .step = step_.get(),
                .graph = graph_.get(),
                .op = op};
      if (bytes_) {
        row.read = read[op.v];
        row.written = written[op.v];
      }
      rows.push_back(row);
    }
    for (const ValueStats& stats : step_->stats | std::views::reverse)  // the first one counts
      if (stats.op.v < ran) rows[first + stats.op.v].stats = &stats;
    return true;
  }
  StepWalk walk_;
  bool bytes_ = false;
  // Own what the rows point to.
  std::shared_ptr<const Step> step_;
  std::shared_ptr<const NamedGraph> graph_;
};

// One choice of a router for one token.
struct ExpertRow {
  std::int64_t row_id = 0;
  const Step* step = nullptr;
  RoutingRow routed;
};
using E = const ExpertRow&;

constexpr std::array kExpertColumns = {
    Column<ExpertRow>{"step", "INTEGER", [](E r, Output& o) { o.integer(r.step->id.v); }, Chunks},
    Column<ExpertRow>{"layer_id", "INTEGER", [](E r, Output& o) { o.id(r.routed.layer, kNoLayer); },
                      Rows},
    Column<ExpertRow>{"token_id", "INTEGER",
                      [](E r, Output& o) {
                        if (r.routed.token == kNone) return o.null();
                        o.integer(r.routed.token);
                      },
                      Rows},
    Column<ExpertRow>{"phase", "TEXT", [](E r, Output& o) { o.text_ref(to_text(r.step->phase)); },
                      Chunks},
    Column<ExpertRow>{"expert_id", "INTEGER", [](E r, Output& o) { o.integer(r.routed.expert); },
                      Rows},
    Column<ExpertRow>{"expert_rank", "INTEGER", [](E r, Output& o) { o.integer(r.routed.rank); },
                      Rows},
    Column<ExpertRow>{"routing_score", "REAL",
                      [](E r, Output& o) {
                        if (std::isnan(r.routed.score)) return o.null();
                        o.real(static_cast<double>(r.routed.score));
                      }},
};

class ExpertCursor final : public ChunkCursor<ExpertRow> {
 public:
  explicit ExpertCursor(SessionSource& source)
      : ChunkCursor(kExpertColumns),
        walk_(source, {.step = column_index(kExpertColumns, "step"),
                       .phase = column_index(kExpertColumns, "phase")}) {}

 private:
  Status begin(const Conditions& conditions) override { return walk_.begin(conditions); }
  Expected<bool> next_chunk(std::vector<ExpertRow>& rows) override {
    auto step = walk_.next();
    if (!step) return std::unexpected(step.error());
    if (*step == nullptr) return false;
    step_ = *std::move(step);
    const auto graph = walk_.source().graph(step_->graph);
    if (!graph) return std::unexpected(graph.error());
    if (*graph == nullptr) return true;
    for (const RoutingRow& routed : routing_rows((*graph)->graph(), *step_))
      rows.push_back(
          {.row_id = step_row_id(step_->id, rows.size()), .step = step_.get(), .routed = routed});
    return true;
  }
  StepWalk walk_;
  std::shared_ptr<const Step> step_;  // owns what the rows point to
};

}  // namespace

Table step_table() {
  Table table = table_of<StepRow>("step", kStepColumns);
  table.rows = table.chunks = 1e5;
  table.ordered_by = 1;
  table.open = open_cursor<StepCursor>;
  return table;
}

Table op_table() {
  Table table = table_of<OpRow>("op", kOpColumns);
  table.rows = 5e7;
  table.chunks = 1e5;
  table.ordered_by = 2;
  table.open = open_cursor<OpCursor>;
  return table;
}

Table expert_table() {
  Table table = table_of<ExpertRow>("expert", kExpertColumns);
  table.rows = 1e7;
  table.chunks = 1e5;
  table.ordered_by = 1;
  table.open = open_cursor<ExpertCursor>;
  return table;
}

}  // namespace tt::sql
