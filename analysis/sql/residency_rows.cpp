// residency: what of each weight was in memory before a step.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/sql/session_source.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "analysis/tables/weight_residency.h"
#include "tracer/text/utf8.h"

namespace tt::sql {

namespace {

using enum Pushdown;

struct ResidencyRow {
  std::int64_t row_id = 0;
  StepId step;
  Ns at;
  const WeightTensor* weight = nullptr;
  std::optional<std::uint64_t> resident;
};
using R = const ResidencyRow&;

constexpr std::array kColumns = {
    Column<ResidencyRow>{"step", "INTEGER", [](R r, Output& o) { o.integer(r.step.v); }, Chunks},
    Column<ResidencyRow>{"timestamp_ns", "INTEGER", [](R r, Output& o) { o.integer(r.at.v); }},
    Column<ResidencyRow>{"tensor_name", "TEXT",
                         [](R r, Output& o) { o.text_copy(to_valid_utf8(r.weight->name)); }},
    Column<ResidencyRow>{"layer_id", "INTEGER",
                         [](R r, Output& o) { o.id(r.weight->layer, kNoLayer); }},
    Column<ResidencyRow>{"component", "TEXT",
                         [](R r, Output& o) { o.text(to_text(r.weight->component)); }},
    Column<ResidencyRow>{"model_file", "INTEGER",
                         [](R r, Output& o) { o.integer(r.weight->file.file); }},
    Column<ResidencyRow>{"file_offset", "INTEGER",
                         [](R r, Output& o) { o.count(r.weight->file.offset); }},
    Column<ResidencyRow>{"size_bytes", "INTEGER",
                         [](R r, Output& o) { o.count(r.weight->file.length); }},
    Column<ResidencyRow>{"resident_bytes", "INTEGER",
                         [](R r, Output& o) { r.resident ? o.count(*r.resident) : o.null(); }},
};

// A chunk is one snapshot.
class ResidencyCursor final : public ChunkCursor<ResidencyRow> {
 public:
  explicit ResidencyCursor(SessionSource& source) : ChunkCursor(kColumns), source_(source) {}

 private:
  Status begin(const Conditions& conditions) override {
    steps_ = StepRange(conditions.of(column_index(kColumns, "step")));
    return {};
  }

  Expected<bool> next_chunk(std::vector<ResidencyRow>& rows) override {
    if (steps_.empty()) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    if (!weights_) {
      auto weights = weight_tensors(**reader);
      if (!weights) return std::unexpected(weights.error());
      weights_ = *std::move(weights);
    }
    std::optional<StepId> found;
    const auto read =
        (*reader)->for_each_residency(steps_.first(), steps_.count(), [&](const StepResidency& of) {
          found = of.step;
          for (const WeightTensor& weight : *weights_)
            rows.push_back({.row_id = step_row_id(of.step, rows.size()),
                            .step = of.step,
                            .at = of.at,
                            .weight = &weight,
                            .resident = resident_bytes(weight, of.resident)});
          return false;
        });
    if (!read) return std::unexpected(read.error());
    if (!found) return false;
    steps_.at = std::int64_t{found->v} + 1;
    return true;
  }

  SessionSource& source_;
  std::optional<std::vector<WeightTensor>> weights_;
  StepRange steps_{ColumnConstraint{}};
};

}  // namespace

Table residency_table() {
  Table table = table_of<ResidencyRow>("residency", kColumns);
  table.rows = 1e4;
  table.chunks = 1e2;
  table.ordered_by = 1;
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<ResidencyCursor>(source);
  };
  return table;
}

}  // namespace tt::sql
