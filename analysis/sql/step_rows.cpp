// step, op and expert: the data recorded per step.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <ranges>

#include "analysis/columns/op_columns.h"
#include "analysis/columns/step_columns.h"
#include "analysis/columns/values.h"
#include "analysis/common/file_bytes.h"
#include "analysis/common/slow_cause.h"
#include "analysis/experts/routing.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "tracer/format/access/access.h"

namespace tt::sql {

namespace {

using enum Pushdown;

struct StepRow {
  std::int64_t row_id = 0;
  std::shared_ptr<const Step> of_step;
  AccessTotals totals{};
  Bytes of_files{};

  const Step& step() const { return *of_step; }
  std::uint64_t ops_timed() const { return of_step->op_ends.size(); }
  std::uint64_t accesses() const { return totals.accesses; }
  Bytes read() const { return totals.read; }
  Bytes written() const { return totals.written; }
  Bytes mapped() const { return of_files; }
};

constexpr auto kStepColumns =
    joined(sql_columns<StepRow, columns::step_columns>(),
           std::to_array<Column<StepRow>>({
               {"slow_cause", [](const StepRow& row) { return slow_cause(row.step()); },
                Pushdown::None, true},
           }));

// The columns that need the accesses of the step or op.
template <class Columns>
constexpr bool uses_bytes(const Columns& columns, const Conditions& conditions) {
  return std::ranges::any_of(std::views::iota(std::size_t{0}, columns.size()), [&](std::size_t i) {
    const std::string_view name = columns[i].name;
    return conditions.uses(i) &&
           (name == "accesses" || name == "bytes_read" || name == "bytes_written" ||
            name == "read_bytes" || name == "written_bytes");
  });
}

constexpr bool uses_mapped(const Conditions& conditions) {
  return conditions.uses(column_index(kStepColumns, "mapped_bytes")) ||
         conditions.uses(column_index(kStepColumns, "reread_factor"));
}

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
    totals_ = uses_bytes(kStepColumns, conditions);
    mapped_ = uses_mapped(conditions);
    return walk_.begin(conditions);
  }
  Expected<bool> next_chunk(std::vector<StepRow>& rows) override {
    auto step = walk_.next();
    if (!step) return std::unexpected(step.error());
    if (*step == nullptr) return false;
    StepRow row{.row_id = (*step)->id.v, .of_step = *std::move(step)};
    if (totals_ || mapped_) {
      const auto graph = walk_.source().graph(row.step().graph);
      if (!graph) return std::unexpected(graph.error());
      if (*graph != nullptr && totals_)
        row.totals = totals_of((*graph)->graph(), (*graph)->derived->accesses, row.step());
      if (*graph != nullptr && mapped_)
        row.of_files = mapped_bytes_of((*graph)->graph(), (*graph)->derived->accesses, row.step());
    }
    rows.push_back(std::move(row));
    return true;
  }
  StepWalk walk_;
  bool totals_ = false, mapped_ = false;
};

// One executed op of one step.
struct OpRow {
  std::int64_t row_id = 0;
  const Step* of_step = nullptr;
  const NamedGraph* named = nullptr;
  OpId id;
  AccessTotals totals{};
  const ValueStats* of_output = nullptr;  // null: not recorded (below level VERBOSE)

  const Step& step() const { return *of_step; }
  OpId op_id() const { return id; }
  const Op& op() const { return named->graph().op(id); }
  TensorId tensor_id() const { return named->graph().node(op().last()).output; }
  const Tensor& tensor() const { return named->graph().tensor(tensor_id()); }
  std::string_view operation_type() const { return named->ops[id.v]; }
  std::string_view device() const { return named->devices[id.v]; }
  std::string_view tensor_name() const { return named->tensors[tensor_id().v]; }
  std::string_view tensor_type() const { return named->types[tensor_id().v]; }
  OpRole role() const { return named->roles[id.v]; }
  std::optional<Kernel> kernel() const { return named->kernels[id.v]; }
  Ns begin() const { return of_step->op_begin(id); }
  std::optional<Ns> duration() const { return of_step->op_duration(id); }
  Bytes read() const { return totals.read; }
  Bytes written() const { return totals.written; }
  const ValueStats* stats() const { return of_output; }
};

constexpr auto kOpColumns = sql_columns<OpRow, columns::op_columns>();

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
    bytes_ = uses_bytes(kOpColumns, conditions);
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
    const std::size_t first = rows.size();
    for (OpId op{0}; op.v < ran; ++op.v) {
      rows.push_back({.row_id = step_row_id(step_->id, op.v),
                      .of_step = step_.get(),
                      .named = graph_.get(),
                      .id = op});
    }
    if (bytes_) {
      for_each_access(graph_->graph(), graph_->derived->accesses, *step_,
                      [&](const StepAccess& access) {
                        AccessTotals& totals = rows[first + access.op.v].totals;
                        (access.write ? totals.written : totals.read) += access.touched;
                      });
    }
    for (const ValueStats& stats : step_->stats | std::views::reverse)  // the first one counts
      if (stats.op.v < ran) rows[first + stats.op.v].of_output = &stats;
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

  std::optional<std::uint32_t> token() const {
    return routed.token == kNone ? std::nullopt : std::optional(routed.token);
  }
  std::optional<float> score() const {
    return std::isnan(routed.score) ? std::nullopt : std::optional(routed.score);
  }
};
using E = const ExpertRow&;

constexpr auto kExpertColumns = std::to_array<Column<ExpertRow>>({
    {"step", [](E r) { return r.step->id.v; }, Chunks},
    {"layer_id", [](E r) { return columns::layer_or_null(r.routed.layer); }, Rows},
    {"token_id", [](E r) { return r.token(); }, Rows},
    {"phase", [](E r) { return to_text(r.step->phase); }, Chunks},
    {"expert_id", [](E r) { return r.routed.expert; }, Rows},
    {"expert_rank", [](E r) { return r.routed.rank; }, Rows},
    {"routing_score", [](E r) { return r.score(); }},
});

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
  return table_of<StepCursor>({.name = "step", .rows = 1e5, .chunks = 1e5, .ordered_by = 1},
                              kStepColumns);
}

Table op_table() {
  return table_of<OpCursor>({.name = "op", .rows = 5e7, .chunks = 1e5, .ordered_by = 2},
                            kOpColumns);
}

Table expert_table() {
  return table_of<ExpertCursor>({.name = "expert", .rows = 1e7, .chunks = 1e5, .ordered_by = 1},
                                kExpertColumns);
}

}  // namespace tt::sql
