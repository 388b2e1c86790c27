#include "tests/analysis/sql_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <variant>

#include "analysis/dependencies.h"
#include "analysis/op_table.h"
#include "analysis/routing.h"
#include "analysis/sql/trace_tables.h"
#include "analysis/tensor_table.h"
#include "tests/format/random_session.h"
#include "tracer/format/access.h"
#include "tracer/format/session_reader.h"

namespace tt::testing {
namespace {

// Forms a row as SqlSession::rows() does.
class Line {
 public:
  Line& null() { return add("NULL"); }
  Line& text(const std::string& v) { return add(v); }
  Line& number(std::int64_t v) { return add(std::to_string(v)); }
  Line& u64(std::uint64_t v) { return number(static_cast<std::int64_t>(v)); }
  Line& real(double v) { return add(std::format("{:.17g}", v)); }
  Line& number_or_null(bool there, std::int64_t v) { return there ? number(v) : null(); }
  Line& layer(LayerId v) { return number_or_null(v != kNoLayer, v.v); }
  std::string take() { return std::move(line_); }

 private:
  Line& add(const std::string& v) {
    line_ += (first_ ? "" : "|") + v;
    first_ = false;
    return *this;
  }
  std::string line_;
  bool first_ = true;
};

using Lines = std::vector<std::string>;

// Everything that the file says, as the reader has it.
struct Everything {
  explicit Everything(const std::filesystem::path& file)
      : reader(SessionReader::open(file).value()), info(reader.info().value()) {
    for (std::uint32_t i = 0; i < reader.step_count().value(); ++i)
      steps.push_back(reader.step(StepId{i}).value());
    for (const TemplateId id : reader.template_ids().value())
      graphs[id] = *reader.graph(id).value();
  }
  const GraphTemplate* graph_of(const Step& step) const {
    return step.graph.v == 0 ? nullptr : &graphs.at(step.graph);
  }
  SessionReader reader;
  SessionInfo info;
  std::vector<Step> steps;
  std::map<TemplateId, GraphTemplate> graphs;
};

std::int64_t wrapped(Ns a, Ns b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.v) -
                                   static_cast<std::uint64_t>(b.v));
}
std::int64_t begin_of(const Step& step, OpId op) {
  if (op.v >= step.op_ends.size()) return step.begin.v;
  return op.v == 0 ? step.first_op.v : step.op_ends[op.v - 1].v;
}
std::string qkv(Role role) {
  switch (role) {
    case Role::Q:
      return "Q";
    case Role::K:
      return "K";
    case Role::V:
      return "V";
    case Role::Qkv:
      return "QKV";
    case Role::O:
      return "O";
    default:
      return "NULL";
  }
}

Lines naive_accesses(const Everything& all) {
  static constexpr const char* kExtents[] = {"all", "rows", "experts", "cells"};
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const auto rules = accesses_of(*graph);
    const auto categories = categories_of(*graph);
    const Allocation allocation =
        step.allocation.v == 0 ? Allocation{} : all.reader.allocation(step.allocation).value();
    std::uint32_t last = kNone, part = 0;
    for_each_access(*graph, rules, step, [&](const StepAccess& access) {
      part = access.access == last ? part + 1 : 0;
      last = access.access;
      const Access& rule = rules[access.access];
      const Tensor& tensor = graph->tensor(access.tensor);
      const Op& op = graph->op(access.op);
      const bool timed = access.op.v < step.op_ends.size();
      const bool expert = access.expert >= 0;
      std::uint64_t address =
          access.tensor.v < allocation.addresses.size() ? allocation.addresses[access.tensor.v] : 0;
      if (address != 0 && expert)
        address += static_cast<std::uint64_t>(access.expert) * rule.stride;
      const std::uint32_t heads =
          head_geometry(tensor, all.info.n_heads, all.info.n_heads_kv).count;
      Line line;
      line.number(step.id.v).number(access.op.v).number(access.access).number(part);
      line.number(begin_of(step, access.op));
      line.number_or_null(
          timed, timed ? wrapped(step.op_ends[access.op.v], Ns{begin_of(step, access.op)}) : 0);
      line.number(step.first_token).number(step.n_tokens);
      line.text(to_text(step.phase)).text(to_text(step.timing)).number(step.graph.v);
      line.text(op_name(*graph, op)).layer(op.layer).text(op.device).number(access.write);
      line.number(access.tensor.v).text(tensor.name).text(tensor.type).text(to_text(tensor.kind));
      line.u64(size_of(tensor).v);
      line.number_or_null(address != 0, static_cast<std::int64_t>(address));
      line.layer(tensor.layer).text(to_text(tensor.component)).text(to_text(tensor.role));
      line.text(to_text(categories[access.tensor.v])).text(to_text(tensor.source));
      line.number_or_null(!rule.range.empty(), rule.range.file);
      const bool in_file = !access.range.empty();
      line.number_or_null(in_file, static_cast<std::int64_t>(access.range.offset));
      line.number_or_null(in_file, static_cast<std::int64_t>(access.range.length));
      line.number_or_null(!rule.range.empty(), static_cast<std::int64_t>(rule.range.offset));
      line.u64(access.touched.v).text(kExtents[static_cast<int>(rule.extent)]).u64(rule.unit.v);
      line.text(qkv(tensor.role)).null().number_or_null(heads != 0, heads);
      line.number_or_null(expert, access.expert);
      line.number_or_null(expert && access.rank >= 0, access.rank);
      if (expert && !std::isnan(access.score)) {
        line.real(static_cast<double>(access.score));
      } else {
        line.null();
      }
      lines.push_back(line.take());
    });
  }
  return lines;
}

Lines naive_ops(const Everything& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const bool whole = step.op_ends.empty() && !step.aborted;
    std::map<std::uint32_t, std::uint64_t> read, written;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      (access.write ? written : read)[access.op.v] += access.touched.v;
    });
    for (std::uint32_t i = 0; i < (whole ? graph->ops.size() : step.op_ends.size()); ++i) {
      const Op& op = graph->ops[i];
      const TensorId output = graph->node(op.last()).output;
      Line line;
      line.number(step.id.v).number(i).text(to_text(step.phase)).number(step.graph.v);
      line.number(step.first_token).text(op_name(*graph, op)).layer(op.layer).text(op.device);
      line.number(output.v).text(graph->tensor(output).name);
      line.text(to_text(graph->tensor(output).component));
      line.number(begin_of(step, OpId{i}));
      line.number_or_null(!whole,
                          whole ? 0 : wrapped(step.op_ends[i], Ns{begin_of(step, OpId{i})}));
      line.u64(read[i]).u64(written[i]);
      lines.push_back(line.take());
    }
  }
  return lines;
}

Lines naive_steps(const Everything& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    std::uint64_t rows = 0, read = 0, written = 0;
    if (graph != nullptr) {
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        ++rows;
        (access.write ? written : read) += access.touched.v;
      });
    }
    Line line;
    line.number(step.id.v).text(to_text(step.phase)).text(to_text(step.timing));
    line.number_or_null(step.graph.v != 0, step.graph.v).number(step.first_token);
    line.number(step.n_tokens).number(step.begin.v).number(step.end.v);
    line.number(wrapped(step.end, step.begin)).number(step.first_op.v).number(step.threads);
    line.u64(step.op_ends.size()).u64(rows).u64(read).u64(written);
    line.number(step.dropped).number(step.aborted);
    lines.push_back(line.take());
  }
  return lines;
}

Lines naive_experts(const Everything& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for (const RoutingRow& row : routing_rows(*graph, step)) {
      Line line;
      line.number(step.id.v).layer(row.layer).number_or_null(row.token != kNone, row.token);
      line.text(to_text(step.phase)).number(row.expert).number(row.rank);
      if (std::isnan(row.score)) {
        line.null();
      } else {
        line.real(static_cast<double>(row.score));
      }
      lines.push_back(line.take());
    }
  }
  return lines;
}

Lines naive_tensors(const Everything& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& t = graph.tensors[i];
      const bool view = t.view_of != kNoTensor, in_file = !t.file.empty();
      Line line;
      line.number(id.v).number(i).text(t.name).text(t.type).text(to_text(t.kind)).layer(t.layer);
      line.text(to_text(t.component)).text(to_text(t.role));
      line.text(to_text(category_of(graph, TensorId{i})));
      line.text(t.input == InputLabel::None ? "NULL" : to_text(t.input));
      line.text(to_text(t.source)).text(t.buffer).u64(size_of(t).v);
      for (const auto ne : t.ne) line.number(ne);
      for (const auto nb : t.nb) line.u64(nb);
      line.number_or_null(view, t.view_of.v);
      line.number_or_null(view, static_cast<std::int64_t>(t.view_offset));
      line.number_or_null(in_file, t.file.file);
      line.number_or_null(in_file, static_cast<std::int64_t>(t.file.offset));
      line.number_or_null(in_file, static_cast<std::int64_t>(t.file.length));
      lines.push_back(line.take());
    }
  }
  return lines;
}

Lines naive_edges(const Everything& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    for (const Dependency& edge : dependencies_of(graph)) {
      const Tensor &from = graph.tensor(edge.from), &to = graph.tensor(edge.to);
      Line line;
      line.number(id.v).number(edge.from.v).number(edge.to.v).text(from.name).text(to.name);
      lines.push_back(line.layer(from.layer).layer(to.layer).take());
    }
  }
  return lines;
}

Lines naive_templates(const Everything& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    Line line;
    line.number(id.v).text(std::format("{:016x}", graph.fingerprint)).u64(graph.tensors.size());
    line.u64(graph.nodes.size()).u64(graph.ops.size()).u64(graph.slots.size());
    lines.push_back(line.u64(accesses_of(graph).size()).take());
  }
  return lines;
}

Lines naive_tokens(const Everything& all) {
  Lines lines;
  for (const Token& token : all.reader.tokens(0, UINT32_MAX).value()) {
    Line line;
    line.number(token.index).number(token.id).number(token.position).number(token.generated);
    lines.push_back(line.number(token.reused).text(token.text).take());
  }
  return lines;
}

Lines naive_session(const Everything& all) {
  const SessionInfo& info = all.info;
  const LossCounters losses = all.reader.losses().value();
  Line line;
  line.text(info.id).text(info.title).number(info.start_utc_ns).text(to_text(info.level));
  line.number(info.exact_timing).text(to_text(info.state)).text(info.error);
  line.u64(all.steps.size()).u64(all.reader.token_count().value());
  for (const auto n : {info.n_layers, info.n_heads, info.n_heads_kv, info.n_embd, info.n_vocab,
                       info.n_experts, info.n_experts_used})
    line.number(n);
  line.u64(losses.steps_without_times).u64(losses.slot_values_dropped);
  line.u64(losses.count_mismatches).u64(losses.steps_not_written);
  return {line.take()};
}

Lines naive_model(const Everything& all) {
  Lines lines;
  for (const ModelFile& file : all.info.model_files) {
    Line line;
    line.u64(lines.size()).text(file.path).u64(file.size).number(file.mtime_ns);
    lines.push_back(line.text(file.header_hash).take());
  }
  return lines;
}

// By phase, template, access and expert: counts and bytes, from the rows themselves.
Lines naive_access_totals(const Everything& all) {
  std::map<std::tuple<Phase, TemplateId, std::uint32_t, std::int32_t>,
           std::pair<std::uint64_t, std::uint64_t>>
      sums;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      auto& [count, bytes] = sums[{step.phase, step.graph, access.access, access.expert}];
      ++count;
      bytes += access.touched.v;
    });
  }
  Lines lines;
  for (const auto& [key, sum] : sums) {
    const auto& [phase, id, index, expert] = key;
    const GraphTemplate& graph = all.graphs.at(id);
    const Access access = accesses_of(graph)[index];
    const Tensor& tensor = graph.tensor(access.tensor);
    const Op& op = graph.op(access.op);
    Line line;
    line.text(to_text(phase)).number(id.v).number(index).number(access.op.v);
    line.text(op_name(graph, op)).layer(op.layer).text(op.device).number(access.write);
    line.number(access.tensor.v).text(tensor.name).text(tensor.type).text(to_text(tensor.kind));
    line.layer(tensor.layer).text(to_text(tensor.component)).text(to_text(tensor.role));
    line.text(to_text(tensor.source)).number_or_null(expert >= 0, expert);
    lines.push_back(line.u64(sum.first).u64(sum.second).take());
  }
  return lines;
}

Lines naive_op_totals(const Everything& all) {
  struct Sum {
    std::uint64_t executions = 0, ns = 0, read = 0, written = 0;
    bool timed = false;
  };
  std::map<std::tuple<Phase, TemplateId, std::uint32_t>, Sum> sums;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const bool whole = step.op_ends.empty() && !step.aborted;
    for (std::uint32_t i = 0; i < (whole ? graph->ops.size() : step.op_ends.size()); ++i) {
      Sum& sum = sums[{step.phase, step.graph, i}];
      ++sum.executions;
      if (whole) continue;
      sum.timed = true;
      const std::int64_t ns = wrapped(step.op_ends[i], Ns{begin_of(step, OpId{i})});
      sum.ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
    }
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      Sum& sum = sums[{step.phase, step.graph, access.op.v}];
      (access.write ? sum.written : sum.read) += access.touched.v;
    });
  }
  Lines lines;
  for (const auto& [key, sum] : sums) {
    const auto& [phase, id, index] = key;
    const GraphTemplate& graph = all.graphs.at(id);
    const Op& op = graph.ops[index];
    const Tensor& output = graph.tensor(graph.node(op.last()).output);
    Line line;
    line.text(to_text(phase)).number(id.v).number(index).text(op_name(graph, op)).layer(op.layer);
    line.text(op.device).text(output.name).text(to_text(output.component)).u64(sum.executions);
    line.number_or_null(sum.timed, static_cast<std::int64_t>(sum.ns));
    lines.push_back(line.u64(sum.read).u64(sum.written).take());
  }
  return lines;
}

Lines naive_metadata(const Everything& all) {
  Lines lines;
  for (const auto& [name, value] : all.info.facts)
    lines.push_back(Line().text(name).text(value).take());
  return lines;
}

std::string text_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return "NULL";
    case SQLITE_FLOAT:
      return std::format("{:.17g}", sqlite3_column_double(statement, column));
    default: {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return text == nullptr
                 ? std::string()
                 : std::string(text,
                               static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

Value value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return std::monostate{};
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    default:
      return text_at(statement, column);
  }
}

void bind(sqlite3_stmt* statement, int at, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    sqlite3_bind_int64(statement, at, *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    sqlite3_bind_double(statement, at, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Lines run(sqlite3* db, const std::string& sql, const std::vector<Value>& values) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return {sqlite3_errmsg(db)};
  const Statement statement(made);
  for (std::size_t i = 0; i < values.size(); ++i) bind(made, static_cast<int>(i) + 1, values[i]);
  Lines lines;
  int code = 0;
  while ((code = sqlite3_step(made)) == SQLITE_ROW) {
    std::string line;
    for (int i = 0; i < sqlite3_column_count(made); ++i)
      line += (i == 0 ? "" : "|") + text_at(made, i);
    lines.push_back(std::move(line));
  }
  if (code != SQLITE_DONE) return {sqlite3_errmsg(db)};
  return lines;
}

// A table's columns, and some rows to take values from.
struct Sample {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

Sample sample_of(sqlite3* db, const std::string& table, Dice& dice) {
  sqlite3_stmt* made = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, ("SELECT * FROM " + table).c_str(), -1, &made, nullptr),
            SQLITE_OK);
  const Statement statement(made);
  Sample sample;
  for (int i = 0; i < sqlite3_column_count(made); ++i)
    sample.columns.emplace_back(sqlite3_column_name(made, i));
  std::uint64_t seen = 0;
  while (sqlite3_step(made) == SQLITE_ROW) {
    ++seen;
    if (sample.rows.size() >= 40 && !dice.one_in(seen / 20 + 1)) continue;
    std::vector<Value> row;
    for (int i = 0; i < sqlite3_column_count(made); ++i) row.push_back(value_at(made, i));
    if (sample.rows.size() < 40) {
      sample.rows.push_back(std::move(row));
    } else {
      sample.rows[dice.below(40)] = std::move(row);
    }
  }
  return sample;
}

// Like one of the column's values: the value itself, near it, or of another type.
Value like(const Value& value, Dice& dice) {
  if (dice.one_in(25)) return std::monostate{};
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    switch (dice.below(12)) {
      case 0:
        return static_cast<double>(*number) + 0.5;
      case 1:
        return static_cast<double>(*number);
      case 2:
        return std::to_string(*number);
      case 3:
        return dice.any_i64();
      case 4:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(*number) + dice.below(5) - 2);
      case 5:
        return dice.one_in(2) ? 1e300 : -1e300;
      default:
        return *number;
    }
  }
  if (std::holds_alternative<std::string>(value) && dice.one_in(10)) return dice.any_i64();
  return value;
}

struct Condition {
  std::string text;
  std::vector<Value> values;
};

Condition random_condition(const Sample& sample, Dice& dice) {
  Condition made;
  const auto parameter = [&](std::size_t column) {
    made.values.push_back(sample.rows.empty()
                              ? Value(dice.any_i64())
                              : like(sample.rows[dice.below(sample.rows.size())][column], dice));
    return "?" + std::to_string(made.values.size());
  };
  for (std::uint64_t terms = 1 + dice.below(3); terms > 0; --terms) {
    // The first columns are those that tell most.
    const std::size_t column = dice.below(
        dice.one_in(2) ? std::min<std::size_t>(5, sample.columns.size()) : sample.columns.size());
    const std::string& name = sample.columns[column];
    made.text += made.text.empty() ? "" : dice.one_in(8) ? " OR " : " AND ";
    static constexpr const char* kSigns[] = {"=", "=", "<", "<=", ">", ">=", "<>", "IS"};
    switch (dice.below(8)) {
      case 0: {
        const std::string low = parameter(column), high = parameter(column);
        made.text += std::format("\"{}\" BETWEEN {} AND {}", name, low, high);
        break;
      }
      case 1: {
        const std::string a = parameter(column), b = parameter(column), c = parameter(column);
        made.text += std::format("\"{}\" IN ({}, {}, {})", name, a, b, c);
        break;
      }
      case 2:
        made.text += std::format("\"{}\" IS {}NULL", name, dice.one_in(2) ? "NOT " : "");
        break;
      default: {
        const char* sign = kSigns[dice.below(std::size(kSigns))];
        made.text += std::format("\"{}\" {} {}", name, sign, parameter(column));
      }
    }
  }
  return made;
}

}  // namespace

SqlSession::SqlSession(const std::filesystem::path& file) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  db_.reset(db);
  const auto source = std::make_shared<sql::SessionSource>(file);
  EXPECT_EQ(sql::add_trace_tables(db, std::make_shared<sql::OneSession>(source)), SQLITE_OK)
      << sqlite3_errmsg(db);
}

std::vector<std::string> SqlSession::rows(const std::string& sql) const {
  return run(db_.get(), sql, {});
}

std::uint64_t expect_tables(const std::filesystem::path& file) {
  const Everything all(file);
  const SqlSession session(file);
  std::uint64_t compared = 0;
  const auto expect = [&](const std::string& table, const Lines& naive) {
    SCOPED_TRACE(table);
    const Lines found = session.rows("SELECT * FROM " + table);
    EXPECT_EQ(found.size(), naive.size()) << (found.empty() ? "" : found[0]);
    for (std::size_t i = 0; i < std::min(found.size(), naive.size()); ++i) {
      if (found[i] == naive[i]) continue;
      ADD_FAILURE() << "row " << i << "\n  found " << found[i] << "\n  naive " << naive[i];
      return;
    }
    // Ids go up, and an order that is promised is kept.
    EXPECT_EQ(session.rows("SELECT count(*) FROM (SELECT rowid AS r, lag(rowid) OVER () AS before "
                           "FROM " +
                           table + ") WHERE r <= before"),
              Lines{"0"});
    compared += found.size();
  };
  expect("access", naive_accesses(all));
  expect("op", naive_ops(all));
  expect("access_total", naive_access_totals(all));
  expect("op_total", naive_op_totals(all));
  expect("step", naive_steps(all));
  expect("expert", naive_experts(all));
  expect("tensor", naive_tensors(all));
  expect("edge", naive_edges(all));
  expect("template", naive_templates(all));
  expect("token", naive_tokens(all));
  expect("session", naive_session(all));
  expect("model", naive_model(all));
  expect("metadata", naive_metadata(all));
  expect("fault", {});
  return compared;
}

std::uint64_t expect_pushed_down(const std::filesystem::path& file, std::uint64_t seed,
                                 int questions) {
  Dice dice(seed);
  const SqlSession session(file);
  std::uint64_t found_rows = 0;
  for (const std::string_view table : sql::trace_table_names()) {
    SCOPED_TRACE(table);
    const Sample sample = sample_of(session.get(), std::string(table), dice);
    for (int i = 0; i < questions; ++i) {
      const Condition where = random_condition(sample, dice);
      SCOPED_TRACE(where.text);
      const Lines found =
          run(session.get(), std::format("SELECT rowid, * FROM {} WHERE {}", table, where.text),
              where.values);
      // Materialized: nothing is handed down into it.
      const Lines naive =
          run(session.get(),
              std::format("WITH whole AS MATERIALIZED (SELECT rowid AS number_, * FROM "
                          "{}) SELECT * FROM whole WHERE {} ORDER BY number_",
                          table, where.text),
              where.values);
      Lines sorted = found;
      if (where.text.contains(" OR ")) {
        sorted =
            run(session.get(),
                std::format("SELECT rowid, * FROM {} WHERE {} ORDER BY rowid", table, where.text),
                where.values);
      }
      EXPECT_EQ(sorted, naive);
      found_rows += found.size();
      if (::testing::Test::HasFailure()) return found_rows;
    }
  }
  return found_rows;
}

}  // namespace tt::testing
