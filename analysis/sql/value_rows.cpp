// value: the captured outputs of ops.
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/columns/values.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "analysis/tables/value_summary.h"

namespace tt::sql {

namespace {

using enum Pushdown;

struct ValueRow {
  std::int64_t row_id = 0;
  StepId step;
  const NamedGraph* named = nullptr;
  const OutputValues* output = nullptr;
  ValueSummary summary;

  // Valid UTF-8, whatever the file has.
  std::string tensor_name() const {
    const GraphTemplate& graph = named->graph();
    if (output->of != ValuesOf::Output) return value_name(graph, *output);
    return std::string(named->tensors[graph.node(graph.op(output->op).last()).output.v]);
  }
  // Of the summary; NULL: no value is finite.
  std::optional<double> finite(double value) const {
    return summary.finite > 0 ? std::optional(value) : std::nullopt;
  }
};
using R = const ValueRow&;

// A JSON array. Each number is the shortest text that gives the same f32.
std::string json_array(std::span<const float> values) {
  std::string text = "[";
  std::array<char, 24> digits{};
  for (const float value : values) {
    if (text.size() > 1) text += ',';
    if (!std::isfinite(value)) {
      text += "null";
      continue;
    }
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text.append(digits.data(), end);
  }
  return text + ']';
}

constexpr auto kColumns = std::to_array<Column<ValueRow>>({
    {"step", [](R r) { return r.step.v; }, Chunks},
    {"op", [](R r) { return r.output->op.v; }, Rows},
    {"operation_type", [](R r) { return r.named->ops[r.output->op.v]; }, Rows},
    {"op_layer_id",
     [](R r) { return columns::layer_or_null(r.named->graph().op(r.output->op).layer); }, Rows},
    {"tensor_name", [](R r) { return r.tensor_name(); }},
    {"ne0", [](R r) { return r.output->ne[0]; }},
    {"ne1", [](R r) { return r.output->ne[1]; }},
    {"ne2", [](R r) { return r.output->ne[2]; }},
    {"ne3", [](R r) { return r.output->ne[3]; }},
    {"output_min", [](R r) { return r.finite(r.summary.min); }},
    {"output_max", [](R r) { return r.finite(r.summary.max); }},
    {"output_mean", [](R r) { return r.finite(r.summary.mean); }},
    {"output_std", [](R r) { return r.finite(r.summary.std); }},
    {"output_norm", [](R r) { return r.finite(r.summary.norm); }},
    {"output_nan", [](R r) { return r.summary.nan; }},
    {"output_inf", [](R r) { return r.summary.inf; }},
    {"elements", [](R r) { return json_array(r.output->values); }},
});

// A chunk is a step.
class ValueCursor final : public ChunkCursor<ValueRow> {
 public:
  explicit ValueCursor(SessionSource& source) : ChunkCursor(kColumns), source_(source) {}

 private:
  Status begin(const Conditions& conditions) override {
    steps_ = StepRange(conditions.of(column_index(kColumns, "step")));
    return {};
  }

  Expected<bool> next_chunk(std::vector<ValueRow>& rows) override {
    if (steps_.empty()) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    values_.reset();
    const auto read =
        (*reader)->for_each_values(steps_.first(), steps_.count(), [&](const StepValues& of) {
          values_ = of;
          return false;
        });
    if (!read) return std::unexpected(read.error());
    if (!values_) return false;
    steps_.at = std::int64_t{values_->step.v} + 1;
    if (values_->outputs.empty()) return true;
    const auto step = source_.step(values_->step);
    if (!step) return std::unexpected(step.error());
    auto graph = source_.graph((*step)->graph);
    if (!graph) return std::unexpected(graph.error());
    graph_ = *std::move(graph);
    for (const OutputValues& output : values_->outputs)
      rows.push_back({.row_id = step_row_id(values_->step, rows.size()),
                      .step = values_->step,
                      .named = graph_.get(),
                      .output = &output,
                      .summary = summary_of(output)});
    return true;
  }

  SessionSource& source_;
  // What the rows point to.
  std::optional<StepValues> values_;
  std::shared_ptr<const NamedGraph> graph_;
  StepRange steps_{ColumnConstraint{}};
};

}  // namespace

Table value_table() {
  return table_of<ValueCursor>({.name = "value", .rows = 1e3, .chunks = 1e2, .ordered_by = 2},
                               kColumns);
}

}  // namespace tt::sql
