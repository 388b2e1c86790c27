// split, split_copy: the parts of graphs that ran on different backends, and what was copied for
// them.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/columns/values.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "tracer/text/utf8.h"

namespace tt::sql {

namespace {

using enum Pushdown;

struct SplitRow {
  std::int64_t row_id = 0;
  const StepSplits* of = nullptr;
  const Step* step = nullptr;
  const NamedGraph* named = nullptr;  // null: the step has no template
  std::size_t split = 0;
  std::size_t copy = 0;  // of split_copy

  const BackendSplit& the_split() const { return of->splits[split]; }
  const BackendCopy& the_copy() const { return the_split().copies[copy]; }
  std::optional<std::string> name(std::uint32_t backend) const {
    if (backend == kNone) return std::nullopt;
    return to_valid_utf8(of->backends[backend]);
  }
  const Tensor* tensor() const {
    const TensorId id = the_copy().tensor;
    return id == kNoTensor || named == nullptr ? nullptr : &named->graph().tensor(id);
  }
};
using R = const SplitRow&;

template <class Value>
std::uint64_t sum(R r, Value value) {
  std::uint64_t total = 0;
  for (const BackendCopy& copy : r.the_split().copies) total += value(copy);
  return total;
}

// Wraps: the times of a damaged file may be any.
std::uint64_t ns_between(Ns begin, Ns end) {
  return static_cast<std::uint64_t>(end.v) - static_cast<std::uint64_t>(begin.v);
}

constexpr auto kSplitColumns = std::to_array<Column<SplitRow>>({
    {"step", [](R r) { return r.step->id.v; }, Chunks},
    {"phase", [](R r) { return to_text(r.step->phase); }},
    {"split", [](R r) { return r.split; }},
    {"backend", [](R r) { return r.name(r.the_split().backend); }},
    {"op",
     [](R r) {
       const BackendSplit& split = r.the_split();
       return split.ops == 0 ? std::nullopt : std::optional(split.first.v);
     }},
    {"ops", [](R r) { return r.the_split().ops; }},
    {"begin_ns", [](R r) { return r.the_split().begin.v; }},
    {"end_ns", [](R r) { return r.the_split().end.v; }},
    {"done_ns",
     [](R r) {
       const std::optional<Ns> done = r.the_split().done;
       return done ? std::optional(done->v) : std::nullopt;
     }},
    {"copies", [](R r) { return r.the_split().copies.size(); }},
    {"copied_bytes", [](R r) { return sum(r, [](const BackendCopy& of) { return of.bytes; }); }},
    {"copy_ns",
     [](R r) {
       return sum(r, [](const BackendCopy& of) { return ns_between(of.begin, of.end); });
     }},
    {"wait_ns",
     [](R r) {
       return sum(r, [](const BackendCopy& of) { return static_cast<std::uint64_t>(of.wait.v); });
     }},
});

constexpr auto kCopyColumns = std::to_array<Column<SplitRow>>({
    {"step", [](R r) { return r.step->id.v; }, Chunks},
    {"phase", [](R r) { return to_text(r.step->phase); }},
    {"split", [](R r) { return r.split; }},
    {"copy", [](R r) { return r.copy; }},
    {"tensor",
     [](R r) {
       const TensorId id = r.the_copy().tensor;
       return id == kNoTensor ? std::nullopt : std::optional(id.v);
     }},
    {"tensor_name",
     [](R r) {
       const Tensor* const tensor = r.tensor();
       return tensor == nullptr ? std::nullopt : std::optional(to_valid_utf8(tensor->name));
     }},
    {"layer_id",
     [](R r) {
       const Tensor* const tensor = r.tensor();
       return columns::layer_or_null(tensor == nullptr ? kNoLayer : tensor->layer);
     }},
    {"from_backend", [](R r) { return r.name(r.the_copy().from); }},
    {"to_backend", [](R r) { return r.name(r.the_split().backend); }},
    {"size_bytes", [](R r) { return r.the_copy().bytes; }},
    {"begin_ns", [](R r) { return r.the_copy().begin.v; }},
    {"end_ns", [](R r) { return r.the_copy().end.v; }},
    {"wait_ns", [](R r) { return r.the_copy().wait.v; }},
    {"complete", [](R r) { return r.the_copy().complete; }},
});

enum class RowOf : bool { Split, Copy };

// A chunk is a step.
template <RowOf kRows>
class SplitCursor final : public ChunkCursor<SplitRow> {
 public:
  explicit SplitCursor(SessionSource& source) : ChunkCursor(columns()), source_(source) {}
  static std::span<const Column<SplitRow>> columns() {
    if constexpr (kRows == RowOf::Copy) return kCopyColumns;
    return kSplitColumns;
  }

 private:
  Status begin(const Conditions& conditions) override {
    // "step" is the first column of both tables.
    steps_ = StepRange(conditions.of(column_index(kSplitColumns, "step")));
    return {};
  }

  Expected<bool> next_chunk(std::vector<SplitRow>& rows) override {
    if (steps_.empty()) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    of_.reset();
    const auto read =
        (*reader)->for_each_splits(steps_.first(), steps_.count(), [&](const StepSplits& of) {
          of_ = of;
          return false;
        });
    if (!read) return std::unexpected(read.error());
    if (!of_) return false;
    steps_.at = std::int64_t{of_->step.v} + 1;
    auto step = source_.step(of_->step);
    if (!step) return std::unexpected(step.error());
    step_ = *std::move(step);
    graph_ = nullptr;
    if (step_->graph.v != 0) {
      auto graph = source_.graph(step_->graph);
      if (!graph) return std::unexpected(graph.error());
      graph_ = *std::move(graph);
    }
    SplitRow row{.of = &*of_, .step = step_.get(), .named = graph_.get()};
    const auto add = [&] {
      row.row_id = step_row_id(of_->step, rows.size());
      rows.push_back(row);
    };
    for (row.split = 0; row.split < of_->splits.size(); ++row.split) {
      const std::size_t copies = kRows == RowOf::Copy ? row.the_split().copies.size() : 1;
      for (row.copy = 0; row.copy < copies; ++row.copy) add();
    }
    return true;
  }

  SessionSource& source_;
  // What the rows point to.
  std::optional<StepSplits> of_;
  std::shared_ptr<const Step> step_;
  std::shared_ptr<const NamedGraph> graph_;
  StepRange steps_{ColumnConstraint{}};
};

template <RowOf kRows>
Table table_with(const char* name) {
  return table_of<SplitCursor<kRows>>({.name = name, .rows = 1e4, .chunks = 1e3, .ordered_by = 1},
                                      SplitCursor<kRows>::columns());
}

}  // namespace

Table split_table() { return table_with<RowOf::Split>("split"); }
Table split_copy_table() { return table_with<RowOf::Copy>("split_copy"); }

}  // namespace tt::sql
