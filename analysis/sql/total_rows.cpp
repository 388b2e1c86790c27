// access_total and op_total: totals over all steps, one row per access (op) of a template and
// phase. There are so few rows that any GROUP BY over them takes milliseconds. The accesses
// of single steps are not read (analysis/index/session_totals.h).
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "analysis/index/session_totals.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/tables.h"

namespace tt::sql {

namespace {

using enum Pushdown;

// The steps with the same phase and template are summed together.
struct Group {
  Phase phase = Phase::Other;
  TemplateId graph{};
  friend auto operator<=>(const Group&, const Group&) = default;
};

struct Sum {
  std::uint64_t count = 0, bytes = 0;
};

// The totals of a session, as needed by the rows of both tables.
struct Totals {
  struct OfGroup {
    std::shared_ptr<const NamedGraph> graph;
    std::vector<Sum> accesses;                                      // per access of the template
    std::map<std::pair<std::uint32_t, std::int32_t>, Sum> experts;  // per access and expert
    std::vector<std::uint64_t> executions, timed, ns;               // per op
    std::vector<std::uint64_t> read, written;                       // per op
  };
  std::map<Group, OfGroup> groups;
};

void add_series(Totals::OfGroup& of, const SeriesTotals& series) {
  const TemplateOutline& outline = *series.outline;
  of.accesses.resize(outline.accesses.size());
  for (auto* list : {&of.executions, &of.timed, &of.ns, &of.read, &of.written})
    list->resize(outline.ops.size());
  for (std::uint32_t i = 0; i < series.op_ns.size(); ++i) {
    of.executions[i] += series.steps;
    of.timed[i] += series.timed;
    of.ns[i] += series.op_ns[i];
    const OutlineOp& op = outline.ops[i];
    for (std::uint32_t a = op.first_access; a < op.first_access + op.accesses; ++a) {
      const OutlineAccess& access = outline.accesses[a];
      const std::uint64_t units = access.rule == kNone ? series.steps : series.parts[access.rule];
      (access.write ? of.written : of.read)[i] += units * access.unit.v;
      if (access.rule != kNone && outline.rules[access.rule].experts()) {
        for (const auto& [expert, count] : series.experts(access.rule)) {
          Sum& sum = of.experts[{a, static_cast<std::int32_t>(expert)}];
          sum.count += count;
          sum.bytes += count * access.unit.v;
        }
        continue;
      }
      if (access.rule == kNone || outline.rules[access.rule].rule.separate) {
        of.accesses[a].count += units;
      } else if (access.unit.v != 0) {
        of.accesses[a].count += series.hits[access.rule];
      }
      of.accesses[a].bytes += units * access.unit.v;
    }
  }
}

Expected<Totals> totals_of_session(SessionSource& source, SessionTotals::Times times) {
  const auto sums = source.totals(times);
  if (!sums) return std::unexpected(sums.error());
  Totals totals;
  for (const auto& [key, series] : (*sums)->series()) {
    auto& of = totals.groups[{key.phase, key.graph}];
    if (of.graph == nullptr) {
      auto graph = source.graph(key.graph);
      if (!graph) return std::unexpected(graph.error());
      of.graph = *std::move(graph);
    }
    add_series(of, series);
  }
  return totals;
}

struct AccessTotalRow {
  std::int64_t row_id = 0;
  Group group;
  const NamedGraph* graph = nullptr;
  std::uint32_t access = 0;
  std::int32_t expert = -1;
  Sum sum;

  const Access& rule() const { return graph->derived->accesses[access]; }
  const Tensor& tensor() const { return graph->graph().tensor(rule().tensor); }
  const Op& op() const { return graph->graph().op(rule().op); }
};
using A = const AccessTotalRow&;

constexpr std::array kAccessColumns = {
    Column<AccessTotalRow>{"phase", "TEXT",
                           [](A r, Output& o) { o.text_ref(to_text(r.group.phase)); }, Rows},
    Column<AccessTotalRow>{"template", "INTEGER",
                           [](A r, Output& o) { o.integer(r.group.graph.v); }, Rows},
    Column<AccessTotalRow>{"access", "INTEGER", [](A r, Output& o) { o.integer(r.access); }, Rows},
    Column<AccessTotalRow>{"op", "INTEGER", [](A r, Output& o) { o.integer(r.rule().op.v); }, Rows},
    Column<AccessTotalRow>{"operation_type", "TEXT",
                           [](A r, Output& o) { o.text_ref(r.graph->ops[r.rule().op.v]); }, Rows},
    Column<AccessTotalRow>{"op_layer_id", "INTEGER",
                           [](A r, Output& o) { o.id(r.op().layer, kNoLayer); }, Rows},
    Column<AccessTotalRow>{"device", "TEXT",
                           [](A r, Output& o) { o.text_ref(r.graph->devices[r.rule().op.v]); }},
    Column<AccessTotalRow>{"write", "INTEGER", [](A r, Output& o) { o.integer(r.rule().write); },
                           Rows},
    Column<AccessTotalRow>{"tensor", "INTEGER",
                           [](A r, Output& o) { o.integer(r.rule().tensor.v); }, Rows},
    Column<AccessTotalRow>{"tensor_name", "TEXT",
                           [](A r, Output& o) { o.text_ref(r.graph->tensors[r.rule().tensor.v]); },
                           Rows},
    Column<AccessTotalRow>{"tensor_type", "TEXT",
                           [](A r, Output& o) { o.text_ref(r.graph->types[r.rule().tensor.v]); }},
    Column<AccessTotalRow>{"tensor_kind", "TEXT",
                           [](A r, Output& o) { o.text_ref(to_text(r.tensor().kind)); }, Rows},
    Column<AccessTotalRow>{"layer_id", "INTEGER",
                           [](A r, Output& o) { o.id(r.tensor().layer, kNoLayer); }, Rows},
    Column<AccessTotalRow>{"component", "TEXT",
                           [](A r, Output& o) { o.text_ref(to_text(r.tensor().component)); }, Rows},
    Column<AccessTotalRow>{"role", "TEXT",
                           [](A r, Output& o) { o.text_ref(to_text(r.tensor().role)); }, Rows},
    Column<AccessTotalRow>{"memory_source", "TEXT",
                           [](A r, Output& o) { o.text_ref(to_text(r.tensor().source)); }, Rows},
    Column<AccessTotalRow>{"expert_id", "INTEGER",
                           [](A r, Output& o) {
                             if (r.expert < 0) return o.null();
                             o.integer(r.expert);
                           },
                           Rows},
    Column<AccessTotalRow>{"accesses", "INTEGER", [](A r, Output& o) { o.u64(r.sum.count); }},
    Column<AccessTotalRow>{"size_bytes", "INTEGER", [](A r, Output& o) { o.u64(r.sum.bytes); }},
};

// Every scan gets the totals again, because the session may be growing.
template <class Row>
class TotalCursor : public ChunkCursor<Row> {
 public:
  TotalCursor(std::span<const Column<Row>> columns, SessionSource& source,
              SessionTotals::Times times)
      : ChunkCursor<Row>(columns), source_(source), times_(times) {}

 protected:
  virtual void add(std::vector<Row>& rows, const Group& group, const Totals::OfGroup& of) = 0;

 private:
  Status begin(const Conditions&) override {
    done_ = false;
    return {};
  }
  Expected<bool> next_chunk(std::vector<Row>& rows) override {
    if (std::exchange(done_, true)) return false;
    auto totals = totals_of_session(source_, times_);
    if (!totals) return std::unexpected(totals.error());
    totals_ = *std::move(totals);
    for (const auto& [group, of] : totals_.groups) add(rows, group, of);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].row_id = static_cast<std::int64_t>(i);
    return true;
  }
  SessionSource& source_;
  const SessionTotals::Times times_;
  bool done_ = false;
  Totals totals_;  // owns what the rows point to
};

class AccessTotalCursor final : public TotalCursor<AccessTotalRow> {
 public:
  explicit AccessTotalCursor(SessionSource& source)
      : TotalCursor(kAccessColumns, source, SessionTotals::Times::Skip) {}

 private:
  void add(std::vector<AccessTotalRow>& rows, const Group& group,
           const Totals::OfGroup& of) override {
    for (std::uint32_t i = 0; i < of.accesses.size(); ++i) {
      if (of.accesses[i].count != 0)
        rows.push_back(
            {.group = group, .graph = of.graph.get(), .access = i, .sum = of.accesses[i]});
      for (auto at = of.experts.lower_bound({i, 0}); at != of.experts.end() && at->first.first == i;
           ++at)
        rows.push_back({.group = group,
                        .graph = of.graph.get(),
                        .access = i,
                        .expert = at->first.second,
                        .sum = at->second});
    }
  }
};

struct OpTotalRow {
  std::int64_t row_id = 0;
  Group group;
  const NamedGraph* graph = nullptr;
  std::uint32_t op = 0;
  std::uint64_t executions = 0, timed = 0, ns = 0, read = 0, written = 0;

  TensorId output() const { return graph->graph().node(graph->graph().ops[op].last()).output; }
};
using O = const OpTotalRow&;

constexpr std::array kOpColumns = {
    Column<OpTotalRow>{"phase", "TEXT", [](O r, Output& o) { o.text_ref(to_text(r.group.phase)); },
                       Rows},
    Column<OpTotalRow>{"template", "INTEGER", [](O r, Output& o) { o.integer(r.group.graph.v); },
                       Rows},
    Column<OpTotalRow>{"op", "INTEGER", [](O r, Output& o) { o.integer(r.op); }, Rows},
    Column<OpTotalRow>{"operation_type", "TEXT",
                       [](O r, Output& o) { o.text_ref(r.graph->ops[r.op]); }, Rows},
    Column<OpTotalRow>{"op_layer_id", "INTEGER",
                       [](O r, Output& o) { o.id(r.graph->graph().ops[r.op].layer, kNoLayer); },
                       Rows},
    Column<OpTotalRow>{"device", "TEXT",
                       [](O r, Output& o) { o.text_ref(r.graph->devices[r.op]); }},
    Column<OpTotalRow>{"tensor_name", "TEXT",
                       [](O r, Output& o) { o.text_ref(r.graph->tensors[r.output().v]); }, Rows},
    Column<OpTotalRow>{
        "component", "TEXT",
        [](O r, Output& o) { o.text_ref(to_text(r.graph->graph().tensor(r.output()).component)); },
        Rows},
    Column<OpTotalRow>{"executions", "INTEGER", [](O r, Output& o) { o.u64(r.executions); }},
    Column<OpTotalRow>{"duration_ns", "INTEGER",
                       [](O r, Output& o) {
                         if (r.timed == 0) return o.null();
                         o.u64(r.ns);
                       }},
    Column<OpTotalRow>{"read_bytes", "INTEGER", [](O r, Output& o) { o.u64(r.read); }},
    Column<OpTotalRow>{"written_bytes", "INTEGER", [](O r, Output& o) { o.u64(r.written); }},
};

class OpTotalCursor final : public TotalCursor<OpTotalRow> {
 public:
  explicit OpTotalCursor(SessionSource& source)
      : TotalCursor(kOpColumns, source, SessionTotals::Times::Sum) {}

 private:
  void add(std::vector<OpTotalRow>& rows, const Group& group, const Totals::OfGroup& of) override {
    for (std::uint32_t i = 0; i < of.executions.size(); ++i) {
      if (of.executions[i] == 0) continue;
      rows.push_back({.group = group,
                      .graph = of.graph.get(),
                      .op = i,
                      .executions = of.executions[i],
                      .timed = of.timed[i],
                      .ns = of.ns[i],
                      .read = of.read[i],
                      .written = of.written[i]});
    }
  }
};

template <class C>
std::unique_ptr<Cursor> open_cursor(SessionSource& source) {
  return std::make_unique<C>(source);
}

}  // namespace

Table access_total_table() {
  Table table = table_of<AccessTotalRow>("access_total", kAccessColumns);
  table.rows = 1e4;
  table.open = open_cursor<AccessTotalCursor>;
  return table;
}

Table op_total_table() {
  Table table = table_of<OpTotalRow>("op_total", kOpColumns);
  table.rows = 5e3;
  table.open = open_cursor<OpTotalCursor>;
  return table;
}

}  // namespace tt::sql
