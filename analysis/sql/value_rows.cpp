// value: the captured outputs of ops.
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

  // Names of tensors are valid UTF-8 here, whatever the file has.
  void put_name(Output& o) const {
    const GraphTemplate& graph = named->graph();
    if (output->of == ValuesOf::Output)
      o.text(named->tensors[graph.node(graph.op(output->op).last()).output.v]);
    else
      o.text_copy(value_name(graph, *output));
  }
};
using R = const ValueRow&;

template <auto of>
void finite(R r, Output& o) {
  r.summary.finite > 0 ? o.real(r.summary.*of) : o.null();
}

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

constexpr std::array kColumns = {
    Column<ValueRow>{"step", "INTEGER", [](R r, Output& o) { o.integer(r.step.v); }, Chunks},
    Column<ValueRow>{"op", "INTEGER", [](R r, Output& o) { o.integer(r.output->op.v); }, Rows},
    Column<ValueRow>{"operation_type", "TEXT",
                     [](R r, Output& o) { o.text(r.named->ops[r.output->op.v]); }, Rows},
    Column<ValueRow>{
        "op_layer_id", "INTEGER",
        [](R r, Output& o) { o.id(r.named->graph().op(r.output->op).layer, kNoLayer); }, Rows},
    Column<ValueRow>{"tensor_name", "TEXT", [](R r, Output& o) { r.put_name(o); }},
    Column<ValueRow>{"ne0", "INTEGER", [](R r, Output& o) { o.count(r.output->ne[0]); }},
    Column<ValueRow>{"ne1", "INTEGER", [](R r, Output& o) { o.count(r.output->ne[1]); }},
    Column<ValueRow>{"ne2", "INTEGER", [](R r, Output& o) { o.count(r.output->ne[2]); }},
    Column<ValueRow>{"ne3", "INTEGER", [](R r, Output& o) { o.count(r.output->ne[3]); }},
    Column<ValueRow>{"output_min", "REAL", finite<&ValueSummary::min>},
    Column<ValueRow>{"output_max", "REAL", finite<&ValueSummary::max>},
    Column<ValueRow>{"output_mean", "REAL", finite<&ValueSummary::mean>},
    Column<ValueRow>{"output_std", "REAL", finite<&ValueSummary::std>},
    Column<ValueRow>{"output_norm", "REAL", finite<&ValueSummary::norm>},
    Column<ValueRow>{"output_nan", "INTEGER", [](R r, Output& o) { o.count(r.summary.nan); }},
    Column<ValueRow>{"output_inf", "INTEGER", [](R r, Output& o) { o.count(r.summary.inf); }},
    Column<ValueRow>{"elements", "TEXT",
                     [](R r, Output& o) { o.text_copy(json_array(r.output->values)); }},
};

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
  Table table = table_of<ValueRow>("value", kColumns);
  table.rows = 1e3;
  table.chunks = 1e2;
  table.ordered_by = 2;
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<ValueCursor>(source);
  };
  return table;
}

}  // namespace tt::sql
