// fault: the page faults of the steps, with their op and access.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/columns/values.h"
#include "analysis/index/fault_location.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/text/utf8.h"

namespace tt::sql {

namespace {

// What is needed to attribute the faults of one template and allocation.
struct Target {
  std::shared_ptr<const NamedGraph> graph;
  std::shared_ptr<const Allocation> allocation;  // null: not recorded
  std::shared_ptr<const TemplateOutline> outline;
  FaultLocator places;
};

struct FaultRow {
  std::int64_t row_id = 0;
  std::shared_ptr<const Step> step;
  const SessionNames* names = nullptr;
  const Target* target = nullptr;  // null: the step has no template
  FaultKind kind = FaultKind::Major;
  bool has_details = true;
  std::uint64_t count = 1;
  PageFault fault{};
  FaultLocation place{};

  bool has_op() const { return place.op != kNone; }
  bool has_access() const { return place.access != kNone; }
  const OutlineAccess& access() const { return target->outline->accesses[place.access]; }
  const SessionTensor& tensor() const { return names->tensors()[access().tensor]; }
  std::optional<std::uint32_t> expert() const {
    const bool is_expert = place.part != kNone && target->outline->rules[access().rule].experts();
    return is_expert ? std::optional(place.part) : std::nullopt;
  }
  template <class Value>
  std::optional<Value> if_detailed(Value value) const {
    return has_details ? std::optional(value) : std::nullopt;
  }
  FileRange file() const {
    return has_access() ? in_file(access(), target->allocation->addresses, fault.address)
                        : FileRange{};
  }
};
using F = const FaultRow&;
using enum Pushdown;

// A value that needs an op or access; NULL without one.
template <bool (FaultRow::*kHas)() const, class Get>
constexpr auto if_has(Get) {
  return [](F r) {
    using Value = std::invoke_result_t<Get, F>;
    using Found = std::conditional_t<columns::is_optional<Value>, Value, std::optional<Value>>;
    return (r.*kHas)() ? Found(Get{}(r)) : Found();
  };
}
constexpr auto of_op = [](auto get) { return if_has<&FaultRow::has_op>(get); };
constexpr auto of_access = [](auto get) { return if_has<&FaultRow::has_access>(get); };

constexpr auto kColumns = std::to_array<Column<FaultRow>>({
    {"step", [](F r) { return r.step->id.v; }, Chunks},
    {"phase", [](F r) { return to_text(r.step->phase); }},
    {"token_id", [](F r) { return r.step->first_token; }},
    {"timestamp_ns", [](F r) { return r.if_detailed(r.fault.at.v); }},
    {"kind", [](F r) { return to_text(r.kind); }},
    {"count", [](F r) { return r.count; }},
    {"op", of_op([](F r) { return r.place.op; })},
    {"operation_type", of_op([](F r) { return r.target->graph->ops[r.place.op]; })},
    {"op_layer_id",
     of_op([](F r) { return columns::layer_or_null(r.target->outline->ops[r.place.op].layer); })},
    {"access", of_access([](F r) { return r.place.access; })},
    {"tensor_name", of_access([](F r) { return to_valid_utf8(r.tensor().name); })},
    {"layer_id", of_access([](F r) { return columns::layer_or_null(r.tensor().layer); })},
    {"component", of_access([](F r) { return to_text(r.tensor().component); })},
    {"expert_id", of_access([](F r) { return r.expert(); })},
    {"address", [](F r) { return r.if_detailed(r.fault.address); }},
    {"model_file", [](F r) { return columns::file_of(r.file()); }},
    {"file_offset", [](F r) { return columns::offset_of(r.file()); }},
});

// A chunk is the faults of one step: first the major ones.
class FaultCursor final : public ChunkCursor<FaultRow> {
 public:
  explicit FaultCursor(SessionSource& source) : ChunkCursor(kColumns), source_(source) {}

 private:
  Status begin(const Conditions& conditions) override {
    steps_ = StepRange(conditions.of(column_index(kColumns, "step")));
    next_ = {};
    return {};
  }

  Expected<bool> next_chunk(std::vector<FaultRow>& rows) override {
    if (steps_.empty()) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    for (const FaultKind kind : kKinds) {
      std::optional<StepFaults>& next = next_[static_cast<std::size_t>(kind)];
      if (next && next->step.v >= steps_.at) continue;
      next = StepFaults{.step = StepId{kNone}, .count = 0, .faults = {}};  // none
      const auto read = (*reader)->for_each_faults(
          steps_.first(), steps_.count(),
          [&](const StepFaults& found) {
            next = found;
            return false;
          },
          kind);
      if (!read) return std::unexpected(read.error());
    }
    const StepId first = std::min(next_[0]->step, next_[1]->step);
    if (first.v == kNone) return false;
    steps_.at = std::int64_t{first.v} + 1;
    const auto step = source_.step(first);
    if (!step) return std::unexpected(step.error());
    const auto target = target_of(**step);
    if (!target) return std::unexpected(target.error());
    if (*target != nullptr) (*target)->places.begin_step((*step)->first_op, (*step)->op_ends);
    for (const FaultKind kind : kKinds) {
      const StepFaults& of = *next_[static_cast<std::size_t>(kind)];
      if (of.step == first)
        add_rows(of, {.step = *step, .names = &names_, .target = *target, .kind = kind}, rows);
    }
    return true;
  }

  static void add_rows(const StepFaults& of, FaultRow row, std::vector<FaultRow>& rows) {
    static_assert(kMaxStepFaults <= 1 << 20);
    row.row_id = (std::int64_t{of.step.v} * 2 + (row.kind == FaultKind::Minor ? 1 : 0)) << 20;
    if (of.faults.empty()) {
      row.has_details = false;
      row.count = of.count;
      rows.push_back(row);
    }
    for (const PageFault& fault : of.faults) {
      row.fault = fault;
      row.place = row.target == nullptr ? FaultLocation{} : row.target->places.of(fault);
      rows.push_back(row);
      ++row.row_id;
    }
  }

  Expected<Target*> target_of(const Step& step) {
    if (step.graph.v == 0) return nullptr;
    const auto known = targets_.find({step.graph, step.allocation});
    if (known != targets_.end()) return known->second.get();
    const auto graph = source_.graph(step.graph);
    if (!graph) return std::unexpected(graph.error());
    std::shared_ptr<const Allocation> allocation;
    if (step.allocation.v != 0) {
      auto read = source_.allocation(step.allocation);
      if (!read) return std::unexpected(read.error());
      allocation = *std::move(read);
    }
    auto outline =
        std::make_shared<const TemplateOutline>(outline_of((*graph)->graph(), names_, {}, {}));
    const std::span<const std::uint64_t> addresses =
        allocation == nullptr ? std::span<const std::uint64_t>() : allocation->addresses;
    auto target = std::make_unique<Target>(
        Target{*graph, allocation, outline, FaultLocator(outline, addresses)});
    return targets_.emplace(std::pair{step.graph, step.allocation}, std::move(target))
        .first->second.get();
  }

  SessionSource& source_;
  SessionNames names_;
  std::map<std::pair<TemplateId, AllocationId>, std::unique_ptr<Target>> targets_;
  StepRange steps_{ColumnConstraint{}};
  static constexpr std::array kKinds = {FaultKind::Major, FaultKind::Minor};
  std::array<std::optional<StepFaults>, 2> next_;  // by kind; at or after steps_. kNone: no more
};

}  // namespace

Table fault_table() {
  return table_of<FaultCursor>({.name = "fault", .rows = 1e4, .chunks = 1e2, .ordered_by = 1},
                               kColumns);
}

}  // namespace tt::sql
