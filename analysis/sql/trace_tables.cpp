#include "analysis/sql/trace_tables.h"

#include <array>
#include <format>

#include "analysis/sql/tables.h"

namespace tt::sql {

namespace {

constexpr std::array kTables = {
    access_table,   access_total_table, edge_table,       expert_table,   fault_table,
    metadata_table, model_table,        op_table,         op_total_table, residency_table,
    session_table,  split_table,        split_copy_table, step_table,     template_table,
    tensor_table,   token_table,        value_table,
};
constexpr std::array<std::string_view, kTables.size()> kTableNames = {
    "access",     "access_total", "edge",     "expert",    "fault",   "metadata",
    "model",      "op",           "op_total", "residency", "session", "split",
    "split_copy", "step",         "template", "tensor",    "token",   "value",
};

// In a set of sessions, {0} is "session, " and {1} is "PARTITION BY session "; for a single
// session they are empty. So no row of a view is of two sessions.
struct View {
  std::string_view name;
  const char* select;
};

constexpr std::array kViews = {
    View{"access_by_tensor",
         "SELECT {0}tensor_name, tensor_kind, memory_source, layer_id, component, role, "
         "sum(accesses) AS accesses, sum(size_bytes) AS size_bytes, "
         "sum(size_bytes) FILTER (WHERE phase = 'prompt') AS prompt_bytes, "
         "sum(size_bytes) FILTER (WHERE phase = 'generate') AS generate_bytes "
         "FROM access_total GROUP BY {0}tensor_name, tensor_kind, memory_source, layer_id, "
         "component, "
         "role"},
    View{"access_by_layer",
         "SELECT {0}layer_id, sum(accesses) AS accesses, sum(size_bytes) AS size_bytes, "
         "sum(size_bytes) FILTER (WHERE NOT write) AS bytes_read, "
         "sum(size_bytes) FILTER (WHERE write) AS bytes_written, "
         "sum(size_bytes) FILTER (WHERE memory_source = 'disk') AS disk_bytes "
         "FROM access_total GROUP BY {0}layer_id"},
    View{"access_by_op",
         "SELECT {0}operation_type, sum(accesses) AS accesses, sum(size_bytes) AS size_bytes, "
         "sum(size_bytes) FILTER (WHERE NOT write) AS bytes_read, "
         "sum(size_bytes) FILTER (WHERE write) AS bytes_written "
         "FROM access_total GROUP BY {0}operation_type"},
    View{"access_by_expert",
         "SELECT {0}layer_id, expert_id, sum(accesses) AS accesses, sum(size_bytes) AS size_bytes "
         "FROM access_total WHERE expert_id IS NOT NULL GROUP BY {0}layer_id, expert_id"},
    View{"access_by_source",
         "SELECT {0}phase, CASE memory_source WHEN 'disk' THEN 'DISK' ELSE 'BUFFER' END AS memory, "
         "memory_source, sum(accesses) AS accesses, sum(size_bytes) AS size_bytes "
         "FROM access_total GROUP BY {0}phase, memory_source"},
    View{"hottest_tensors", "SELECT * FROM access_by_tensor ORDER BY size_bytes DESC, tensor_name"},
    View{
        "op_time",
        "SELECT {0}operation_type, sum(executions) AS executions, sum(duration_ns) AS duration_ns, "
        "sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written, "
        "1e9 * (sum(bytes_read) + sum(bytes_written)) / nullif(sum(duration_ns), 0) "
        "AS bytes_per_s FROM op_total GROUP BY {0}operation_type"},
    View{
        "expert_use",
        "SELECT {0}layer_id, expert_id, count(*) AS tokens, sum(expert_rank = 0) AS first_choices, "
        "avg(routing_score) AS mean_score FROM expert GROUP BY {0}layer_id, expert_id"},
    View{
        "token_latency",
        "SELECT {0}step, token_id, token_count, phase, duration_ns, "
        "end_ns - lag(end_ns) OVER ({1}ORDER BY step) AS since_last_ns, "
        "1e9 * token_count / nullif(end_ns - lag(end_ns, 1, begin_ns) OVER ({1}ORDER BY step), 0) "
        "AS tokens_per_s, 1e9 * token_count / nullif(duration_ns, 0) AS evaluated_per_s FROM step"},
    View{"phase_totals",
         "SELECT {0}phase, count(*) AS steps, sum(token_count) AS tokens, "
         "sum(duration_ns) AS duration_ns, sum(accesses) AS accesses, "
         "sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written "
         "FROM step GROUP BY {0}phase"},
};
constexpr auto kViewNames = [] {
  std::array<std::string_view, kViews.size()> names{};
  for (std::size_t i = 0; i < kViews.size(); ++i) names[i] = kViews[i].name;
  return names;
}();

template <class Sessions>
int add_all(sqlite3* db, const std::shared_ptr<Sessions>& sessions, std::string_view column,
            std::string_view partition) {
  for (const auto table : kTables) {
    if (const int code = add_table(db, table(), sessions); code != SQLITE_OK) return code;
  }
  for (const View& view : kViews) {
    const std::string select = std::vformat(view.select, std::make_format_args(column, partition));
    const std::string sql =
        std::format("CREATE TEMP VIEW IF NOT EXISTS \"{}\" AS {}", view.name, select);
    if (const int code = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
        code != SQLITE_OK)
      return code;
  }
  return SQLITE_OK;
}

}  // namespace

int add_trace_tables(sqlite3* db, const std::shared_ptr<SessionSources>& sources) {
  return add_all(db, sources, "", "");
}

int add_trace_tables(sqlite3* db, const std::shared_ptr<SessionSet>& set) {
  return add_all(db, set, "session, ", "PARTITION BY session ");
}

std::span<const std::string_view> trace_table_names() { return kTableNames; }
std::span<const std::string_view> trace_view_names() { return kViewNames; }

}  // namespace tt::sql
