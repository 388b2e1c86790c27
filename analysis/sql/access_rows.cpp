// access: one row per access of each step, in the order of for_each_access().
//
// This is the hot path of every query over a complete session. What the steps of a template
// have in common is computed once per scan (CandidateAccesses); a step only adds the rows that its
// slots select; column values are computed on demand.
#include <algorithm>
#include <limits>
#include <map>
#include <span>

#include "analysis/columns/access_columns.h"
#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "tracer/format/access/access.h"

namespace tt::sql {

namespace {

// The accesses of one template that can match in some step.
struct CandidateAccesses {
  std::shared_ptr<const NamedGraph> graph;
  std::vector<Access> accesses;
  std::vector<std::uint32_t> places;  // indices in the template's accesses
  // The row of each access in every step that ran its op. Only a template for accesses that
  // depend on a slot.
  std::vector<StepAccess> fixed;
  struct Varying {
    std::uint32_t access = 0;
    std::uint32_t rule = 0;  // accesses with the same rule touch the same number of parts
    bool separate = false;   // each part is a row
  };
  std::vector<Varying> varying;
  std::size_t rules = 0;
};

struct Row {
  const SessionInfo& session;
  const CandidateAccesses& candidates;
  const Step& of_step;
  const Allocation* allocation;
  const StepAccess* rows;  // rows of the step
  std::size_t count;       // number of them
  std::size_t at;          // index of this row

  const StepAccess& access() const { return rows[at]; }
  const Access& rule() const { return candidates.accesses[access().access]; }
  std::uint32_t place() const { return candidates.places[access().access]; }
  std::uint32_t part() const {
    std::size_t first = at;
    while (first > 0 && rows[first - 1].access == access().access) --first;
    return static_cast<std::uint32_t>(at - first);
  }
  OpId op_id() const { return access().op; }
  TensorId tensor_id() const { return access().tensor; }
  bool is_write() const { return access().write; }
  const GraphTemplate& graph() const { return candidates.graph->graph(); }
  const Op& op() const { return graph().op(op_id()); }
  const Tensor& tensor() const { return graph().tensor(tensor_id()); }
  Category category() const { return candidates.graph->derived->categories[tensor_id().v]; }
  std::string_view operation_type() const { return candidates.graph->ops[op_id().v]; }
  std::string_view device() const { return candidates.graph->devices[op_id().v]; }
  std::string_view tensor_name() const { return candidates.graph->tensors[tensor_id().v]; }
  std::string_view tensor_type() const { return candidates.graph->types[tensor_id().v]; }
  Ns begin() const { return step().op_begin(op_id()); }
  std::optional<Ns> duration() const { return step().op_duration(op_id()); }
  std::optional<Ns> self() const {
    const auto whole = duration();
    if (!whole || candidates.graph->derived->main_accesses[op_id().v] != place())
      return whole.transform([](Ns) { return Ns{}; });
    std::size_t end = at + 1;
    while (end < count && rows[end].access == access().access) ++end;
    const std::uint32_t before = part();
    return Ns{share_of(whole->v, before + (end - at), before)};
  }
  std::uint64_t address() const {
    return allocation == nullptr ? 0 : address_of(allocation->addresses, rule(), access().expert);
  }
  std::optional<std::int32_t> head() const { return std::nullopt; }
  std::uint32_t heads() const {
    return head_geometry(tensor(), candidates.graph->derived->heads,
                         {session.n_heads, session.n_heads_kv})
        .count;
  }
  // A copy: SessionSource keeps only names for the lifetime of the connection.
  std::string session_id() const { return session.id; }
  const Step& step() const { return of_step; }
};

using enum Pushdown;

constexpr auto kColumns = sql_columns<Row, columns::access_columns>();

constexpr std::size_t kTime = column_index(kColumns, "timestamp_ns");
constexpr std::size_t kExpert = column_index(kColumns, "expert_id");
constexpr std::size_t kAddress = column_index(kColumns, "tensor_ptr");

class AccessCursor final : public Cursor {
 public:
  explicit AccessCursor(SessionSource& source)
      : walk_(source, {.step = column_index(kColumns, "step"),
                       .phase = column_index(kColumns, "phase"),
                       .graph = column_index(kColumns, "template"),
                       .token = column_index(kColumns, "token_id"),
                       .time = kTime}) {}

  Status start(const Conditions& conditions) override {
    rows_.clear();
    at_ = 0;
    if (conditions.impossible()) return {};
    candidates_.clear();
    filters_.clear();
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (kColumns[i].pushdown == Rows && i != kExpert && !conditions.of(i).any())
        filters_.emplace_back(i, conditions.of(i));
    }
    expert_ = conditions.of(kExpert);
    time_ = conditions.of(kTime);
    needs_addresses_ = conditions.uses(kAddress);
    const auto info = walk_.source().info();
    if (!info) return std::unexpected(info.error());
    info_ = *info;
    if (auto begun = walk_.begin(conditions); !begun) return begun;
    return refill();
  }

  Status next() override {
    ++at_;
    skip_other_experts();
    return at_end() ? refill() : Status{};
  }
  bool at_end() const override { return at_ >= rows_.size(); }
  void value(std::size_t column, Output& out) const override { kColumns[column].value(row(), out); }

  // Counts all accesses of the step, including those that were skipped.
  Expected<std::int64_t> row_id() const override {
    const DerivedGraph& derived = *step_candidates_->graph->derived;
    if (numbered_ != step_->id) {
      first_rows_.assign(derived.accesses.size(), 0);
      std::uint32_t count = 0;
      for_each_access(*derived.graph, derived.accesses, *step_, [&](const StepAccess& access) {
        if (first_rows_[access.access] == 0) first_rows_[access.access] = count + 1;
        ++count;
      });
      numbered_ = step_->id;
    }
    const std::uint32_t access = step_candidates_->places[rows_[at_].access];
    return step_row_id(step_->id, first_rows_[access] - 1 + row().part());
  }

 private:
  Row row() const {
    return {*info_, *step_candidates_, *step_, allocation_.get(), rows_.data(), rows_.size(), at_};
  }

  // Skips rows of other experts. The rows are not removed, because part() counts them.
  void skip_other_experts() {
    if (expert_.any()) return;
    while (!at_end() && !expert_.contains(std::int64_t{rows_[at_].expert})) ++at_;
  }

  Status refill() {
    while (at_end()) {
      at_ = 0;
      rows_.clear();
      auto step = walk_.next();
      if (!step) return std::unexpected(step.error());
      if (*step == nullptr) return {};
      auto candidates = candidates_of((*step)->graph);
      if (!candidates) return std::unexpected(candidates.error());
      if (*candidates == nullptr) continue;
      step_ = *std::move(step);
      step_candidates_ = *std::move(candidates);
      if (auto filled = fill(); !filled) return filled;
      skip_other_experts();
    }
    return {};
  }

  Status fill() {
    if (needs_addresses_) {
      auto read = walk_.source().allocation(step_->allocation);
      if (!read) return std::unexpected(read.error());
      allocation_ = *std::move(read);
    }
    add_rows(*step_candidates_, *step_);
    // Removes only all rows of an op together, because part() counts the rows of an access.
    if (!time_.any()) {
      std::erase_if(
          rows_, [&](const StepAccess& row) { return !time_.contains(step_->op_begin(row.op).v); });
    }
    return {};
  }

  // Adds the rows of for_each_access() in its order, but reuses rows that are the same in
  // every step and part counts of equal rules.
  void add_rows(const CandidateAccesses& candidates, const Step& step) {
    const std::size_t ran = step.ops_run(candidates.graph->graph().ops.size());
    const auto ran_end = std::ranges::partition_point(
        candidates.accesses, [&](const Access& access) { return access.op.v < ran; });
    const auto end = static_cast<std::uint32_t>(ran_end - candidates.accesses.begin());
    std::uint32_t from = 0;
    const auto add_fixed = [&](std::uint32_t to) {
      rows_.insert(rows_.end(), candidates.fixed.begin() + from, candidates.fixed.begin() + to);
    };
    parts_.assign(candidates.rules, kNotCounted);
    for (const CandidateAccesses::Varying& varying : candidates.varying) {
      if (varying.access >= end) break;
      add_fixed(varying.access);
      from = varying.access + 1;
      const Access& access = candidates.accesses[varying.access];
      if (access.slot.v >= step.slots.size()) continue;
      if (varying.separate) {
        for_each_access(candidates.graph->graph(), std::span(&access, 1), step,
                        [&](StepAccess row) {
                          row.access = varying.access;
                          rows_.push_back(row);
                        });
        continue;
      }
      std::uint64_t& parts = parts_[varying.rule];
      if (parts == kNotCounted)
        parts = parts_of(candidates.graph->graph(), access, step.slots[access.slot.v].ints);
      StepAccess row = candidates.fixed[varying.access];
      row.touched = Bytes{access.unit.v * parts};
      if (row.touched.v > 0) rows_.push_back(row);
    }
    add_fixed(end);
  }

  // Null: no access of this template can match.
  Expected<std::shared_ptr<const CandidateAccesses>> candidates_of(TemplateId id) {
    constexpr std::size_t kKept = 16;
    if (const auto known = candidates_.find(id); known != candidates_.end()) return known->second;
    const auto graph = walk_.source().graph(id);
    if (!graph) return std::unexpected(graph.error());
    if (candidates_.size() == kKept) candidates_.clear();
    if (*graph == nullptr) return candidates_[id] = nullptr;
    auto candidates = std::make_shared<CandidateAccesses>();
    candidates->graph = *graph;
    const std::vector<Access>& all = (*graph)->derived->accesses;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      candidates->accesses.push_back(all[i]);
      candidates->places.push_back(i);
      if (passes(*candidates)) continue;
      candidates->accesses.pop_back();
      candidates->places.pop_back();
    }
    if (candidates->accesses.empty()) return candidates_[id] = nullptr;
    find_rules(*candidates);
    return candidates_[id] = std::move(candidates);
  }

  static void find_rules(CandidateAccesses& candidates) {
    std::vector<PartRule> rules;
    for (std::uint32_t i = 0; i < candidates.accesses.size(); ++i) {
      candidates.fixed.push_back(without_step(candidates.accesses[i], i));
      if (candidates.accesses[i].slot == kNoSlot) continue;
      const PartRule rule = part_rule(candidates.graph->graph(), candidates.accesses[i]);
      const auto known = std::ranges::find(rules, rule);
      const auto number = static_cast<std::uint32_t>(known - rules.begin());
      if (known == rules.end()) rules.push_back(rule);
      candidates.varying.push_back({.access = i, .rule = number, .separate = rule.separate});
    }
    candidates.rules = rules.size();
  }

  static StepAccess without_step(const Access& access, std::uint32_t place) {
    return {.access = place,
            .op = access.op,
            .tensor = access.tensor,
            .write = access.write,
            .touched = access.unit,
            .range = access.range,
            .score = std::numeric_limits<float>::quiet_NaN()};
  }

  // Whether the last access of `picked` can match.
  bool passes(const CandidateAccesses& candidates) const {
    const Access& access = candidates.accesses.back();
    if (!expert_.any() && access.extent != Extent::Experts) return false;
    const StepAccess only =
        without_step(access, static_cast<std::uint32_t>(candidates.accesses.size() - 1));
    const Step no_step;
    const Row row{*info_, candidates, no_step, nullptr, &only, 1, 0};
    return std::ranges::all_of(filters_, [&](const auto& filter) {
      Cell cell;
      Output out(cell);
      kColumns[filter.first].value(row, out);
      return filter.second.matches(cell);
    });
  }

  StepWalk walk_;
  const SessionInfo* info_ = nullptr;
  std::vector<std::pair<std::size_t, ColumnConstraint>> filters_;  // depend only on the template
  ColumnConstraint expert_{}, time_{};                             // depend on the step
  bool needs_addresses_ = false;
  std::map<TemplateId, std::shared_ptr<const CandidateAccesses>> candidates_;
  // The state of the current step.
  std::shared_ptr<const Step> step_;
  std::shared_ptr<const CandidateAccesses> step_candidates_;
  std::shared_ptr<const Allocation> allocation_;
  std::vector<StepAccess> rows_;
  std::size_t at_ = 0;
  static constexpr std::uint64_t kNotCounted = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> parts_;  // per rule
  // Per access of the template: 1 + its first row in step `numbered_`; 0: no row.
  mutable std::vector<std::uint32_t> first_rows_;
  mutable std::optional<StepId> numbered_;
};

}  // namespace

Table access_table() {
  return table_of<AccessCursor>({.name = "access", .rows = 1e8, .chunks = 1e5, .ordered_by = 3},
                                kColumns);
}

}  // namespace tt::sql
