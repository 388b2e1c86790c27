// residency: what of each weight was in memory before a step.
#include <array>
#include <optional>
#include <vector>

#include "analysis/columns/values.h"
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

constexpr auto kColumns = std::to_array<Column<ResidencyRow>>({
    {"step", [](R r) { return r.step.v; }, Chunks},
    {"timestamp_ns", [](R r) { return r.at.v; }},
    {"tensor_name", [](R r) { return to_valid_utf8(r.weight->name); }},
    {"layer_id", [](R r) { return columns::layer_or_null(r.weight->layer); }},
    {"component", [](R r) { return to_text(r.weight->component); }},
    {"model_file", [](R r) { return r.weight->file.file; }},
    {"file_offset", [](R r) { return r.weight->file.offset; }},
    {"size_bytes", [](R r) { return r.weight->file.length; }},
    {"resident_bytes", [](R r) { return r.resident; }},
});

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
  return table_of<ResidencyCursor>(
      {.name = "residency", .rows = 1e4, .chunks = 1e2, .ordered_by = 1}, kColumns);
}

}  // namespace tt::sql
