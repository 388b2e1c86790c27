// access_total and op_total: totals over all steps, one row per access (op) of a template and
// phase. There are so few rows that any GROUP BY over them takes milliseconds. The accesses
// of single steps are not read (analysis/index/session_totals.h).
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/columns/op_columns.h"
#include "analysis/common/operations.h"
#include "analysis/index/session_totals.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/tables.h"

namespace tt::sql {

namespace {

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
    std::vector<std::optional<double>> operations;                  // per op; nullopt: not known
  };
  std::map<Group, OfGroup> groups;
};

void add_series(Totals::OfGroup& of, const SeriesTotals& series) {
  const TemplateOutline& outline = *series.outline;
  of.accesses.resize(outline.accesses.size());
  for (auto* list : {&of.executions, &of.timed, &of.ns, &of.read, &of.written})
    list->resize(outline.ops.size());
  of.operations.resize(outline.ops.size(), 0);
  const GraphTemplate& graph = of.graph->graph();
  const auto units_of = [&](const OutlineAccess& access) {
    return access.rule == kNone ? series.steps : series.parts[access.rule];
  };
  for (std::uint32_t i = 0; i < series.op_ns.size(); ++i) {
    of.executions[i] += series.steps;
    of.timed[i] += series.timed;
    of.ns[i] += series.op_ns[i];
    const OutlineOp& op = outline.ops[i];
    for (std::uint32_t a = op.first_access; a < op.first_access + op.accesses; ++a) {
      const OutlineAccess& access = outline.accesses[a];
      const std::uint64_t units = units_of(access);
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
    const auto steps = static_cast<double>(series.steps);
    const auto read_in_a_step = [&](TensorId source) {
      double bytes = 0;
      for (std::uint32_t a = op.first_access; a < op.first_access + op.accesses; ++a) {
        const OutlineAccess& access = outline.accesses[a];
        if (!access.write && access.view == source)
          bytes += static_cast<double>(units_of(access) * access.unit.v) / steps;
      }
      return bytes;
    };
    const auto operations = operations_of(graph, graph.ops[i], read_in_a_step);
    if (operations && of.operations[i]) {
      *of.operations[i] += *operations * steps;
    } else {
      of.operations[i].reset();
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
  const NamedGraph* named = nullptr;
  std::uint32_t index = 0;  // of the access
  struct Routed {
    std::int32_t expert = -1;
  } routed{};
  Sum sum;

  const Group& step() const { return group; }
  const Routed& access() const { return routed; }
  std::uint32_t place() const { return index; }
  const Access& rule() const { return named->derived->accesses[place()]; }
  OpId op_id() const { return rule().op; }
  TensorId tensor_id() const { return rule().tensor; }
  bool is_write() const { return rule().write; }
  const Op& op() const { return named->graph().op(op_id()); }
  const Tensor& tensor() const { return named->graph().tensor(tensor_id()); }
  std::string_view operation_type() const { return named->ops[op_id().v]; }
  std::string_view device() const { return named->devices[op_id().v]; }
  std::string_view tensor_name() const { return named->tensors[tensor_id().v]; }
  std::string_view tensor_type() const { return named->types[tensor_id().v]; }
};

constexpr auto access_group_columns() {
  return columns::pick<columns::access_columns, "phase", "template", "access", "op",
                       "operation_type", "op_layer_id", "device", "write", "tensor", "tensor_name",
                       "tensor_type", "tensor_kind", "layer_id", "component", "role",
                       "memory_source", "expert_id">();
}
constexpr auto kAccessColumns =
    joined(sql_columns<AccessTotalRow, access_group_columns>(),
           std::to_array<Column<AccessTotalRow>>({
               {"accesses", [](const AccessTotalRow& row) { return row.sum.count; }},
               {"size_bytes", [](const AccessTotalRow& row) { return row.sum.bytes; }},
           }));

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
            {.group = group, .named = of.graph.get(), .index = i, .sum = of.accesses[i]});
      for (auto at = of.experts.lower_bound({i, 0}); at != of.experts.end() && at->first.first == i;
           ++at)
        rows.push_back({.group = group,
                        .named = of.graph.get(),
                        .index = i,
                        .routed = {at->first.second},
                        .sum = at->second});
    }
  }
};

struct OpTotalRow {
  std::int64_t row_id = 0;
  Group group;
  const NamedGraph* named = nullptr;
  OpId id;
  std::uint64_t executions = 0, timed = 0, ns = 0, read = 0, written = 0;
  std::optional<double> operations{};

  const Group& step() const { return group; }
  OpId op_id() const { return id; }
  const Op& op() const { return named->graph().op(id); }
  OpRole role() const { return named->roles[id.v]; }
  std::string_view operation_type() const { return named->ops[id.v]; }
  std::string_view device() const { return named->devices[id.v]; }
  std::string_view tensor_name() const {
    return named->tensors[named->graph().node(op().last()).output.v];
  }
};
using O = const OpTotalRow&;

constexpr auto op_group_columns() {
  return columns::pick<columns::op_columns, "phase", "template", "op", "operation_type",
                       "op_layer_id", "device", "tensor_name", "component">();
}
constexpr auto of_read = [](O row) { return row.read; };
constexpr auto of_written = [](O row) { return row.written; };
constexpr auto kOpColumns =
    joined(sql_columns<OpTotalRow, op_group_columns>(),
           std::to_array<Column<OpTotalRow>>({
               {"executions", [](O row) { return row.executions; }},
               {"duration_ns",
                [](O row) { return row.timed == 0 ? std::nullopt : std::optional(row.ns); }},
               {"bytes_read", of_read},
               {"bytes_written", of_written},
               {"operations", [](O row) { return row.operations; }, Pushdown::None, true},
               {"read_bytes", of_read, Pushdown::None, true},
               {"written_bytes", of_written, Pushdown::None, true},
           }));

class OpTotalCursor final : public TotalCursor<OpTotalRow> {
 public:
  explicit OpTotalCursor(SessionSource& source)
      : TotalCursor(kOpColumns, source, SessionTotals::Times::Sum) {}

 private:
  void add(std::vector<OpTotalRow>& rows, const Group& group, const Totals::OfGroup& of) override {
    for (std::uint32_t i = 0; i < of.executions.size(); ++i) {
      if (of.executions[i] == 0) continue;
      rows.push_back({.group = group,
                      .named = of.graph.get(),
                      .id = OpId{i},
                      .executions = of.executions[i],
                      .timed = of.timed[i],
                      .ns = of.ns[i],
                      .read = of.read[i],
                      .written = of.written[i],
                      .operations = of.operations[i]});
    }
  }
};

}  // namespace

Table access_total_table() {
  return table_of<AccessTotalCursor>({.name = "access_total", .rows = 1e4}, kAccessColumns);
}

Table op_total_table() {
  return table_of<OpTotalCursor>({.name = "op_total", .rows = 5e3}, kOpColumns);
}

}  // namespace tt::sql
