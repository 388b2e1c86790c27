// Compares recordings of one model with different settings: flash attention, batch size, number
// of threads; and tokens, steps and layers of one recording.
#include "analysis/report/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/analysis/report/comparison_check.h"
#include "tests/analysis/sql/sql_check.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

struct Recorded {
  explicit Recorded(const std::function<void(ContextOptions&)>& change)
      : model(generated_model(spec()), context(change)),
        run(model.run(greedy_tokens(21, 7))),
        reader(run.reader()),
        index(SessionIndex::build(reader).value()) {}
  static modelgen::ModelSpec spec() { return {.shape = "small", .dims = {.layers = 2}}; }
  static ContextOptions context(const std::function<void(ContextOptions&)>& change) {
    ContextOptions context = TracedModel::small_context();
    change(context);
    return context;
  }
  ComparedSession side() const { return {.index = index, .reader = reader}; }

  TracedModel model;
  TracedModel::Run run;
  SessionReader reader;
  SessionIndex index;
};

Comparison compare_and_check(const Recorded& left, const Recorded& right) {
  expect_comparison(left.side(), right.side());
  return compare(left.side(), right.side()).value();
}

std::map<std::string, ComparedRow> rows_on_axis(const Recorded& left, const Recorded& right,
                                                Axis by, Phase phase = Phase::Generate) {
  std::map<std::string, ComparedRow> rows;
  for (const ComparedRow& row : compare_rows(left.index, right.index, by, phase).value())
    rows[row.name] = row;
  return rows;
}

TEST(RecordedComparison, ComparesFlashAttentionOnAndOff) {
  const Recorded off([](ContextOptions& c) { c.flash_attention = FlashAttention::Off; });
  const Recorded on([](ContextOptions& c) { c.flash_attention = FlashAttention::On; });
  const Comparison comparison = compare_and_check(off, on);
  const auto kinds = rows_on_axis(off, on, Axis::OpKind);
  ASSERT_TRUE(kinds.contains("SOFT_MAX"));
  ASSERT_TRUE(kinds.contains("FLASH_ATTN_EXT"));
  EXPECT_TRUE(kinds.at("SOFT_MAX").left && !kinds.at("SOFT_MAX").right);
  EXPECT_TRUE(kinds.at("FLASH_ATTN_EXT").right && !kinds.at("FLASH_ATTN_EXT").left);
  for (const ComparedTemplate& pair : comparison.templates)
    EXPECT_TRUE(pair.match == TemplateMatch::OnlyLeft || pair.match == TemplateMatch::OnlyRight);
  EXPECT_GE(comparison.tokens.common, 21U);
  const ComparedFact switched{.name = "context.flash_attention", .left = "off", .right = "on"};
  EXPECT_EQ(std::ranges::count(comparison.facts, switched), 1);
  // The weights of the layers are read equally often.
  int weights = 0;
  for (const auto& [name, row] : rows_on_axis(off, on, Axis::Tensor)) {
    if (!name.starts_with("blk.")) continue;
    ASSERT_TRUE(row.left && row.right) << name;
    EXPECT_DOUBLE_EQ(row.left->bytes_read, row.right->bytes_read) << name;
    ++weights;
  }
  EXPECT_GT(weights, 10);
}

TEST(RecordedComparison, ComparesPromptInOneAndTwoBatches) {
  const Recorded two([](ContextOptions& c) { c.ubatch = 16; });
  const Recorded one([](ContextOptions& c) { c.ubatch = 64; });
  const Comparison comparison = compare_and_check(two, one);
  // A step of the prompt has the same ops and fewer tokens.
  const ComparedRow prompt = rows_on_axis(two, one, Axis::All, Phase::Prompt).at("all");
  const ComparedRow generate = rows_on_axis(two, one, Axis::All).at("all");
  EXPECT_EQ(prompt.left->executions, prompt.right->executions);
  EXPECT_LT(prompt.left->bytes_written, prompt.right->bytes_written);
  EXPECT_DOUBLE_EQ(generate.left->executions, generate.right->executions);
  EXPECT_DOUBLE_EQ(generate.left->bytes_read, generate.right->bytes_read);
  for (const ComparedToken& token : comparison.tokens.rows.rows)
    EXPECT_EQ(token.left_ns.has_value(), token.right_ns.has_value()) << token.index;
}

TEST(RecordedComparison, ThreadCountChangesOnlyTimes) {
  const Recorded one([](ContextOptions& c) { c.threads = c.threads_batch = 1; });
  const Recorded more([](ContextOptions& c) { c.threads = c.threads_batch = 2; });
  const Comparison comparison = compare_and_check(one, more);
  EXPECT_EQ(comparison.tokens.common, comparison.tokens.left);
  EXPECT_EQ(comparison.tokens.left, comparison.tokens.right);
  const ComparedFact threads{.name = "context.threads", .left = "1", .right = "2"};
  EXPECT_EQ(std::ranges::count(comparison.facts, threads), 1);
  EXPECT_EQ(std::ranges::count(comparison.facts, "context.size", &ComparedFact::name), 0);
  EXPECT_GT(comparison.templates.size(), 1U);
  for (const ComparedTemplate& pair : comparison.templates) {
    EXPECT_EQ(pair.match, TemplateMatch::Identical);
    EXPECT_EQ(pair.left_steps, pair.right_steps);
  }
  for (const Axis by : kComparedAxes) {
    for (const auto& [name, row] : rows_on_axis(one, more, by)) {
      ASSERT_TRUE(row.left && row.right) << row.name;
      EXPECT_DOUBLE_EQ(row.left->bytes(), row.right->bytes()) << row.name;
      EXPECT_DOUBLE_EQ(row.left->executions, row.right->executions) << row.name;
    }
  }
}

// One side of a comparison within a session: bytes and accesses by name.
struct SqlSums {
  double read = 0, written = 0, accesses = 0;
};

struct SqlOp {
  std::string type;
  int layer = -1;
};

// By output, the op of outputs that llama.cpp did not name.
std::map<std::string, SqlOp> sql_numbered_outputs(const SqlSession& sql) {
  std::map<std::string, SqlOp> ops;
  std::set<std::string> ambiguous;
  for (const std::string& line :
       sql.rows("SELECT DISTINCT tensor_name, operation_type, coalesce(op_layer_id, -1) FROM op "
                "WHERE tensor_name GLOB 'node_[0-9]*'")) {
    std::istringstream fields(line);
    std::string name, layer;
    SqlOp op;
    std::getline(fields, name, '|');
    std::getline(fields, op.type, '|');
    std::getline(fields, layer, '|');
    op.layer = std::stoi(layer);
    if (!ops.emplace(name, op).second) ambiguous.insert(name);
  }
  std::erase_if(ops, [&](const auto& op) { return ambiguous.contains(op.first); });
  return ops;
}

// From SQL, by the name of the tensor that owns the bytes; without a name, by the type and layer of
// its op. `where`: of the accesses; `share`: of their step. With a layer, the names are relative to
// it.
std::map<std::string, SqlSums> sql_side(const SqlSession& sql, const std::string& where,
                                        double share = 1, int layer = -1) {
  static const std::regex kLayer("^blk\\.([0-9]+)\\.|(?:-|_l)([0-9]+)$");
  const std::map<std::string, SqlOp> numbered = sql_numbered_outputs(sql);
  const auto relative = [&](int own) {
    return own == layer ? "" : std::format(" (layer {:+})", own - layer);
  };
  std::map<std::string, SqlSums> sums;
  for (const std::string& line : sql.rows(
           "SELECT coalesce(o.tensor_name, t.tensor_name), a.write, sum(a.size_bytes), count(*) "
           "FROM access a JOIN tensor t ON t.template = a.template AND t.tensor = a.tensor "
           "LEFT JOIN tensor o ON o.template = a.template AND o.tensor = t.view_of "
           "WHERE " +
           where + " GROUP BY 1, 2")) {
    std::istringstream fields(line);
    std::string name, write, bytes, accesses;
    std::getline(fields, name, '|');
    std::getline(fields, write, '|');
    std::getline(fields, bytes, '|');
    std::getline(fields, accesses, '|');
    std::smatch found;
    const std::string whole = name;
    if (const auto op = numbered.find(whole); op != numbered.end()) {
      const auto& [type, own] = op->second;
      name = own < 0      ? type
             : layer >= 0 ? type + relative(own)
                          : std::format("{}, layer {}", type, own);
    } else if (layer >= 0 && std::regex_search(whole, found, kLayer)) {
      const int own = std::stoi(found[1].matched ? found[1] : found[2]);
      name = std::regex_replace(whole, kLayer, "") + relative(own);
    }
    SqlSums& of = sums[name];
    (write == "1" ? of.written : of.read) += share * std::stod(bytes);
    of.accesses += share * std::stod(accesses);
  }
  return sums;
}

void expect_side(const std::map<std::string, SqlSums>& expected, const WithinComparison& found,
                 std::optional<TraceSums> ComparedRow::* side) {
  std::size_t rows = 0;
  for (const ComparedRow& row : found.rows.rows) {
    ASSERT_EQ((row.*side).has_value(), expected.contains(row.name)) << row.name;
    if (!(row.*side)) continue;
    ++rows;
    const SqlSums& of = expected.at(row.name);
    EXPECT_NEAR((row.*side)->bytes_read, of.read, 1e-6) << row.name;
    EXPECT_NEAR((row.*side)->bytes_written, of.written, 1e-6) << row.name;
    EXPECT_NEAR((row.*side)->accesses(), of.accesses, 1e-6) << row.name;
  }
  EXPECT_EQ(rows, expected.size());
}

void expect_sorted(const WithinComparison& found, Value value) {
  double last = INFINITY;
  for (const ComparedRow& row : found.rows.rows) {
    const double next = std::abs(row.left.value_or(TraceSums{}).of(value) -
                                 row.right.value_or(TraceSums{}).of(value));
    EXPECT_LE(next, last) << row.name;
    last = next;
  }
}

// The median over generated steps that are neither learned nor the first nor disturbed, unless all
// are disturbed.
double sql_median_time(const SqlSession& sql, const std::string& where) {
  std::vector<double> times;
  for (const std::string& time : sql.rows(
           "WITH timed AS (SELECT step, coalesce(verdict, 'clean') = 'clean' AS clean FROM step "
           "WHERE phase = 'generate' AND timing <> 'learned' AND step > 0) "
           "SELECT sum(o.duration_ns) FROM op o JOIN timed s ON s.step = o.step "
           "WHERE s.clean = (SELECT max(clean) FROM timed) AND " +
           where + " GROUP BY s.step ORDER BY 1"))
    times.push_back(std::stod(time));
  return times.at((times.size() - 1) / 2);
}

double sql_time(const SqlSession& sql, const std::string& where) {
  return std::stod(sql.rows("SELECT sum(duration_ns) FROM op WHERE " + where).at(0));
}

TEST(ComparisonWithin, OfTokensAndStepsMatchesSql) {
  const Recorded one([](ContextOptions&) {});
  const SqlSession sql(one.run.file);
  // Token 3 is one of 21 in the prompt, step 0; token 24 is read by step 4.
  const std::string prompt = "step = 0", generated = "step = 4";
  const WithinComparison tokens =
      compare_within(one.index, {.axis = Axis::Token, .left = 3, .right = 24}).value();
  const auto left = sql_side(sql, "a." + prompt, 1.0 / 21), right = sql_side(sql, "a." + generated);
  expect_side(left, tokens, &ComparedRow::left);
  expect_side(right, tokens, &ComparedRow::right);
  EXPECT_NEAR(tokens.left_sums.time_ns, sql_time(sql, prompt) / 21, 1);
  EXPECT_NEAR(tokens.right_sums.time_ns, sql_time(sql, generated), 1);
  expect_sorted(tokens, Value::Time);
  for (const ComparedRow& row : tokens.rows.rows) EXPECT_FALSE(row.name.starts_with("node_"));
  const WithinComparison steps =
      compare_within(one.index,
                     {.axis = Axis::Step, .left = 0, .right = 4, .value = Value::Touched})
          .value();
  expect_side(sql_side(sql, "a." + prompt), steps, &ComparedRow::left);
  expect_side(right, steps, &ComparedRow::right);
  expect_sorted(steps, Value::Touched);
  // Pages, filters, and what does not exist.
  const WithinComparison page =
      compare_within(one.index,
                     {.axis = Axis::Token, .left = 3, .right = 24, .page = {.from = 2, .limit = 3}})
          .value();
  EXPECT_EQ(page.rows.total, tokens.rows.rows.size());
  ASSERT_EQ(page.rows.rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(page.rows.rows[i].name, tokens.rows.rows[i + 2].name);
  const WithinComparison weights =
      compare_within(one.index, {.left = 3, .right = 24, .filter = {.source = Source::Disk}})
          .value();
  EXPECT_EQ(weights.right_sums.bytes(),
            std::stod(sql.rows("SELECT sum(size_bytes) FROM access WHERE memory_source = 'disk' "
                               "AND " +
                               generated)[0]));
  for (const Axis axis : {Axis::Token, Axis::Step, Axis::Layer}) {
    const auto missing = compare_within(one.index, {.axis = axis, .left = 0, .right = 99});
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().kind, TraceError::Kind::NotFound);
    EXPECT_TRUE(missing.error().message.contains(std::format("no {} 99", to_text(axis))));
  }
}

TEST(ComparisonWithin, OfLayersMatchesSqlByNameWithoutLayer) {
  const Recorded one([](ContextOptions&) {});
  const SqlSession sql(one.run.file);
  const WithinComparison layers =
      compare_within(one.index, {.axis = Axis::Layer, .left = 0, .right = 1}).value();
  const std::string generated = "phase = 'generate'",
                    all = "a.step IN (SELECT step FROM step WHERE " + generated + ")";
  const double steps = std::stod(sql.rows("SELECT count(*) FROM step WHERE " + generated)[0]);
  expect_side(sql_side(sql, all + " AND a.op_layer_id = 0", 1 / steps, 0), layers,
              &ComparedRow::left);
  expect_side(sql_side(sql, all + " AND a.op_layer_id = 1", 1 / steps, 1), layers,
              &ComparedRow::right);
  EXPECT_EQ(layers.phase, Phase::Generate);
  EXPECT_NEAR(layers.left_sums.time_ns, sql_median_time(sql, "o.op_layer_id = 0"), 1);
  EXPECT_NEAR(layers.right_sums.time_ns, sql_median_time(sql, "o.op_layer_id = 1"), 1);
  std::map<std::string, ComparedRow> rows;
  for (const ComparedRow& row : layers.rows.rows) rows[row.name] = row;
  ASSERT_TRUE(rows.contains("attn_q.weight"));
  EXPECT_EQ(rows.at("attn_q.weight").left->bytes_read, rows.at("attn_q.weight").right->bytes_read);
  // Layer 0 reads the embedding, layer 1 the output of layer 0.
  EXPECT_TRUE(rows.contains("l_out (layer -1)") && !rows.at("l_out (layer -1)").left);
  // llama.cpp does not name the output of flash attention.
  ASSERT_TRUE(rows.contains("FLASH_ATTN_EXT"));
  EXPECT_EQ(rows.at("FLASH_ATTN_EXT").left->bytes_written,
            rows.at("FLASH_ATTN_EXT").right->bytes_written);
  const WithinComparison same =
      compare_within(one.index, {.axis = Axis::Layer, .left = 1, .right = 1}).value();
  for (const ComparedRow& row : same.rows.rows) EXPECT_EQ(row.left, row.right) << row.name;
}

}  // namespace
}  // namespace tt::test
