// access: one row per access of each step, in the order of for_each_access().
//
// This is the hot path of every query over a complete session. What the steps of a template
// have in common is computed once per scan (CandidateAccesses); a step only adds the rows that its
// slots select; column values are computed on demand.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "analysis/sql/step_walk.h"
#include "analysis/sql/tables.h"
#include "analysis/tables/tensor_table.h"
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
  const Step& step;
  const Allocation* allocation;
  const StepAccess* rows;  // rows of the step
  std::size_t at;          // index of this row

  const StepAccess& access() const { return rows[at]; }
  const Access& rule() const { return candidates.accesses[access().access]; }
  const GraphTemplate& graph() const { return candidates.graph->graph(); }
  const Tensor& tensor() const { return graph().tensor(access().tensor); }
  const Op& op() const { return graph().op(access().op); }
  bool has_time() const { return access().op.v < step.op_ends.size(); }
  std::uint32_t part() const {
    std::size_t first = at;
    while (first > 0 && rows[first - 1].access == access().access) --first;
    return static_cast<std::uint32_t>(at - first);
  }
};

void qkv_or_null(Role role, Output& out) {
  switch (role) {
    case Role::Q:
    case Role::K:
    case Role::V:
    case Role::Qkv:
    case Role::O:
      return out.text_ref(to_text(role));
    default:
      return out.null();
  }
}

const char* text_of(Extent extent) {
  static constexpr std::array kWords = {"all", "rows", "experts", "cells"};
  return kWords[static_cast<std::size_t>(extent)];
}

void address(const Row& row, Output& out) {
  const StepAccess& access = row.access();
  if (row.allocation == nullptr || access.tensor.v >= row.allocation->addresses.size())
    return out.null();
  const std::uint64_t at = row.allocation->addresses[access.tensor.v];
  if (at == 0) return out.null();
  const auto expert = static_cast<std::uint64_t>(std::max(0, access.expert));
  out.u64(at + expert * row.rule().stride);
}

using R = const Row&;
using enum Pushdown;

// Names, meanings and nulls match the exported columns (docs/exports.md).
constexpr std::array kColumns = {
    Column<Row>{"step", "INTEGER", [](R r, Output& o) { o.integer(r.step.id.v); }, Chunks},
    Column<Row>{"op", "INTEGER", [](R r, Output& o) { o.integer(r.access().op.v); }, Rows},
    Column<Row>{"access", "INTEGER",
                [](R r, Output& o) { o.integer(r.candidates.places[r.access().access]); }, Rows},
    Column<Row>{"part", "INTEGER", [](R r, Output& o) { o.integer(r.part()); }},
    Column<Row>{"timestamp_ns", "INTEGER",
                [](R r, Output& o) { o.integer(r.step.op_begin(r.access().op).v); }, Chunks},
    Column<Row>{"duration_ns", "INTEGER",
                [](R r, Output& o) {
                  const OpId op = r.access().op;
                  if (!r.has_time()) return o.null();
                  o.integer((r.step.op_ends[op.v] - r.step.op_begin(op)).v);
                }},
    Column<Row>{"token_id", "INTEGER", [](R r, Output& o) { o.integer(r.step.first_token); }, Chunks},
    Column<Row>{"token_count", "INTEGER", [](R r, Output& o) { o.integer(r.step.n_tokens); }},
    Column<Row>{"phase", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.step.phase)); }, Chunks},
    Column<Row>{"timing", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.step.timing)); }},
    Column<Row>{"template", "INTEGER", [](R r, Output& o) { o.integer(r.step.graph.v); }, Chunks},
    Column<Row>{"operation_type", "TEXT",
                [](R r, Output& o) { o.text_ref(r.candidates.graph->ops[r.access().op.v]); }, Rows},
    Column<Row>{"op_layer_id", "INTEGER", [](R r, Output& o) { o.id(r.op().layer, kNoLayer); }, Rows},
    Column<Row>{"device", "TEXT",
                [](R r, Output& o) { o.text_ref(r.candidates.graph->devices[r.access().op.v]); }, Rows},
    Column<Row>{"write", "INTEGER", [](R r, Output& o) { o.integer(r.access().write); }, Rows},
    Column<Row>{"tensor", "INTEGER", [](R r, Output& o) { o.integer(r.access().tensor.v); }, Rows},
    Column<Row>{"tensor_name", "TEXT",
                [](R r, Output& o) { o.text_ref(r.candidates.graph->tensors[r.access().tensor.v]); }, Rows},
    Column<Row>{"tensor_type", "TEXT",
                [](R r, Output& o) { o.text_ref(r.candidates.graph->types[r.access().tensor.v]); }, Rows},
    Column<Row>{"tensor_kind", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.tensor().kind)); }, Rows},
    Column<Row>{"tensor_bytes", "INTEGER", [](R r, Output& o) { o.u64(size_of(r.tensor()).v); }},
    Column<Row>{"tensor_ptr", "INTEGER", address},
    Column<Row>{"layer_id", "INTEGER", [](R r, Output& o) { o.id(r.tensor().layer, kNoLayer); }, Rows},
    Column<Row>{"component", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.tensor().component)); },
                Rows},
    Column<Row>{"role", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.tensor().role)); }, Rows},
    Column<Row>{"category", "TEXT",
                [](R r, Output& o) {
                  o.text_ref(to_text(r.candidates.graph->derived->categories[r.access().tensor.v]));
                },
                Rows},
    Column<Row>{"memory_source", "TEXT", [](R r, Output& o) { o.text_ref(to_text(r.tensor().source)); },
                Rows},
    Column<Row>{"model_file", "INTEGER",
                [](R r, Output& o) {
                  if (r.rule().range.empty()) return o.null();
                  o.integer(r.rule().range.file);
                }},
    Column<Row>{"file_offset", "INTEGER",
                [](R r, Output& o) {
                  if (r.access().range.empty()) return o.null();
                  o.u64(r.access().range.offset);
                }},
    Column<Row>{"file_bytes", "INTEGER",
                [](R r, Output& o) {
                  if (r.access().range.empty()) return o.null();
                  o.u64(r.access().range.length);
                }},
    Column<Row>{"tensor_file_offset", "INTEGER",
                [](R r, Output& o) {
                  if (r.rule().range.empty()) return o.null();
                  o.u64(r.rule().range.offset);
                }},
    Column<Row>{"size_bytes", "INTEGER", [](R r, Output& o) { o.u64(r.access().touched.v); }},
    Column<Row>{"extent", "TEXT", [](R r, Output& o) { o.text_ref(text_of(r.rule().extent)); }, Rows},
    Column<Row>{"unit_bytes", "INTEGER", [](R r, Output& o) { o.u64(r.rule().unit.v); }},
    Column<Row>{"qkv_type", "TEXT", [](R r, Output& o) { qkv_or_null(r.tensor().role, o); }, Rows},
    Column<Row>{"attention_head", "INTEGER", [](R, Output& o) { o.null(); }},
    Column<Row>{"attention_heads", "INTEGER",
                [](R r, Output& o) {
                  const std::uint32_t heads =
                      head_geometry(r.tensor(), r.candidates.graph->derived->heads,
                                    {r.session.n_heads, r.session.n_heads_kv})
                          .count;
                  if (heads == 0) return o.null();
                  o.integer(heads);
                }},
    Column<Row>{"expert_id", "INTEGER",
                [](R r, Output& o) {
                  if (r.access().expert < 0) return o.null();
                  o.integer(r.access().expert);
                },
                Rows},
    Column<Row>{"expert_rank", "INTEGER",
                [](R r, Output& o) {
                  if (r.access().expert < 0 || r.access().rank < 0) return o.null();
                  o.integer(r.access().rank);
                }},
    Column<Row>{"routing_score", "REAL",
                [](R r, Output& o) {
                  if (r.access().expert < 0 || std::isnan(r.access().score)) return o.null();
                  o.real(static_cast<double>(r.access().score));
                }},
    Column<Row>{"bytes", "INTEGER HIDDEN", [](R r, Output& o) { o.u64(r.access().touched.v); }},
    Column<Row>{"session", "TEXT HIDDEN", [](R r, Output& o) { o.text_copy(r.session.id); }},
};

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
    return {*info_, *step_candidates_, *step_, allocation_.get(), rows_.data(), at_};
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
    const Row row{*info_, candidates, no_step, nullptr, &only, 0};
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
  Table table = table_of<Row>("access", kColumns);
  table.rows = 1e8;
  table.chunks = 1e5;
  table.ordered_by = 3;
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<AccessCursor>(source);
  };
  return table;
}

}  // namespace tt::sql
