// The roofline: operations of known shapes, what limits an op by hand-made figures, and the rows of
// random sessions against a walk over all steps.
#include "analysis/aggregate/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "analysis/aggregate/breakdown.h"
#include "analysis/common/op_info.h"
#include "analysis/common/operations.h"
#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/support/sessions/graph_maker.h"
#include "tests/support/sessions/plausible_session.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

TEST(Operations, AreThoseOfTheShapes) {
  GraphMaker m;
  const auto x = m.input("x", {64, 5}, kF32);
  const auto weight = m.weight("w", {64, 32}), experts = m.weight("e", {64, 32, 8}, kQ8);
  const auto ids = m.input("ids", {2, 5});
  const auto queries = m.input("q", {16, 5, 8}, kF32);
  const auto keys = m.leaf(TensorKind::Kv, "k", {16, 256, 2}, kF16);
  const auto values = m.leaf(TensorKind::Kv, "v", {16, 256, 2}, kF16);
  m.node("MUL_MAT", "dense", {32, 5}, {weight, x});
  m.node("MUL_MAT_ID", "routed", {32, 2, 5}, {experts, x, ids});
  m.node("FLASH_ATTN_EXT", "attended", {16, 8, 5}, {queries, keys, values});
  const auto norm = m.node("RMS_NORM", "norm", {64, 5}, {x});
  m.node("MUL", "scaled", {64, 5}, {norm, x}, true);
  m.node("GLU(SWIGLU)", "gated", {64, 5}, {x, x});
  m.node("CPY", "copied", {64, 5}, {x});
  m.node("SUM_ROWS", "summed", {1, 5}, {x});
  m.node("SSM_SCAN", "state", {64, 5}, {x});
  // Attention reads 10 of the 256 cells: two heads of 16 values with 2 bytes each.
  const auto read = [](TensorId) { return 10.0 * 2 * 16 * 2; };
  const std::optional<double> expected[] = {
      2.0 * 64 * 32 * 5,             // a multiplication and an addition of each weight and token
      2.0 * 64 * 32 * 2 * 5,         // two experts of each token
      2.0 * 5 * 8 * 10 * (16 + 16),  // each query of each head with the keys and the values
      64.0 * 5 * (3 + 1),            // fused
      64.0 * 5 * 2,
      0,
      64.0 * 5,
      std::nullopt};
  ASSERT_EQ(m.graph.ops.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(operations_of(m.graph, m.graph.ops[i], read), expected[i]) << m.graph.nodes[i].op;
}

// A machine that reads 1 byte and computes 10 operations per ns.
MachineBounds round_bounds() {
  return {.read_bandwidth = 1e9,
          .compute_peak = 1e10,
          .no_read_bandwidth = "",
          .no_compute_peak = "",
          .last_cache = 0};
}

TEST(OpLimits, AreDecidedByTheLargerBound) {
  struct Case {
    const char* what;
    OpCost cost;
    OpLimit limit;
    std::optional<double> bound;
    const char* text;
  };
  const Case cases[] = {
      {"all time is reading",
       {.ns = 1000, .memory_bytes = 1000, .operations = 20},
       OpLimit::MemoryBound,
       1000,
       "memory-bound: reading takes 100 % of its time"},
      {"at the threshold",
       {.ns = 1000, .memory_bytes = 700, .operations = 20},
       OpLimit::MemoryBound,
       700,
       "memory-bound: reading takes 70 % of its time"},
      {"below it",
       {.ns = 1000, .memory_bytes = 699, .operations = 20},
       OpLimit::Overhead,
       699,
       "overhead: the bound is 69.9 % of its time"},
      {"computes",
       {.ns = 1000, .memory_bytes = 100, .operations = 8000},
       OpLimit::ComputeBound,
       800,
       "compute-bound: computing takes 80 % of its time"},
      {"both, mostly reads",
       {.ns = 1000, .memory_bytes = 900, .operations = 8000},
       OpLimit::MemoryBound,
       900,
       "memory-bound: reading takes 90 % of its time"},
      {"both, mostly computes",
       {.ns = 1000, .memory_bytes = 800, .operations = 9000},
       OpLimit::ComputeBound,
       900,
       "compute-bound: computing takes 90 % of its time"},
      {"faster than memory",
       {.ns = 1000, .memory_bytes = 1200, .operations = 20},
       OpLimit::Unknown,
       2,
       "unknown: its bytes come from caches, whose rate is not measured"},
      {"faster than memory, computes",
       {.ns = 1000, .memory_bytes = 1200, .operations = 7000},
       OpLimit::ComputeBound,
       700,
       "compute-bound: computing takes 70 % of its time"},
      {"only small values",
       {.ns = 1000, .memory_bytes = 0, .operations = 20},
       OpLimit::Overhead,
       2,
       "overhead: the bound is 0.2 % of its time"},
      {"disturbed",
       {.ns = 1000, .memory_bytes = 100, .operations = 20, .disturbed = Verdict::Contended},
       OpLimit::Waiting,
       100,
       "waiting: all steps are contended"},
      {"disturbed, but near",
       {.ns = 1000, .memory_bytes = 900, .operations = 20, .disturbed = Verdict::Contended},
       OpLimit::MemoryBound,
       900,
       "memory-bound: reading takes 90 % of its time"},
      {"not counted",
       {.ns = 1000, .memory_bytes = 100},
       OpLimit::Unknown,
       100,
       "unknown: its operations are not counted"},
      {"not counted, reads",
       {.ns = 1000, .memory_bytes = 900},
       OpLimit::MemoryBound,
       900,
       "memory-bound: reading takes 90 % of its time"},
      {"on another device",
       {.ns = 1000, .memory_bytes = 900, .operations = 20, .other_device = true},
       OpLimit::Unknown,
       std::nullopt,
       "unknown: the rates of its device are not measured"},
  };
  for (const Case& of : cases) {
    SCOPED_TRACE(of.what);
    const OpVerdict found = limit_of(of.cost, round_bounds());
    EXPECT_EQ(found.limit, of.limit);
    EXPECT_EQ(found.bound_ns, of.bound);
    EXPECT_EQ(found.text, of.text);
  }
}

TEST(OpLimits, SayWhichRateIsMissing) {
  const OpCost cost{.ns = 1000, .memory_bytes = 100, .operations = 20};
  MachineBounds no_peak = round_bounds(), no_bandwidth = round_bounds(), cached = round_bounds();
  no_peak.compute_peak = 0;
  no_bandwidth.read_bandwidth = cached.read_bandwidth = 0;
  cached.no_read_bandwidth = "small_model";
  EXPECT_EQ(limit_of(cost, no_peak).text, "unknown: the compute peak is not known");
  EXPECT_EQ(limit_of(cost, no_peak).bound_ns, 100);
  EXPECT_EQ(limit_of(cost, no_bandwidth).text, "unknown: the read bandwidth is not known");
  EXPECT_EQ(limit_of(cost, no_bandwidth).bound_ns, 2);
  EXPECT_TRUE(limit_of(cost, cached).from_cache);
  // Without reading, only computing bounds an op.
  EXPECT_EQ(limit_of({.ns = 1000, .operations = 8000}, no_bandwidth).limit, OpLimit::ComputeBound);
  EXPECT_EQ(limit_of(cost, MachineBounds{}).bound_ns, std::nullopt);
}

TEST(MachineBounds, AreThoseOfTheThreadsOfTheSession) {
  SessionInfo info;
  info.facts = {{"host.read_bandwidth", "5000"},
                {"host.read_bandwidth_threads", "2"},
                {"host.no_compute_peak", "busy"},
                {"host.last_cache_bytes", "77"}};
  const MachineBounds bounds = machine_bounds(info, 2);
  EXPECT_EQ(bounds.read_bandwidth, 5000);
  EXPECT_EQ(bounds.no_read_bandwidth, "");
  EXPECT_EQ(bounds.compute_peak, 0);
  EXPECT_EQ(bounds.no_compute_peak, "busy");
  EXPECT_EQ(bounds.last_cache, 77U);
  EXPECT_EQ(machine_bounds(info, 4).read_bandwidth, 0);
  EXPECT_EQ(machine_bounds(info, 4).no_read_bandwidth, "other_threads");
  EXPECT_EQ(machine_bounds({}, 4).no_read_bandwidth, "not_recorded");
}

// --- random sessions

// Of plausible_graph(): 8 values, 40 words, 4 heads with one head of keys, which are the values.
double naive_operations(const std::string& output, double tokens, double used, double cells) {
  if (output.starts_with("embd") || output.starts_with("cache_k")) return 0;
  if (output.starts_with("attn_norm")) return 8 * tokens * (3 + 1);
  if (output.starts_with("Qcur")) return 2 * 8 * 8 * tokens;
  if (output.starts_with("kqv_out")) return 2 * tokens * 4 * cells * (8 + 8);
  if (output.starts_with("ffn_inp")) return 8 * tokens;
  if (output.starts_with("ffn_moe_up")) return 2 * 8 * 8 * used * tokens;
  if (output.starts_with("ffn_out")) return 8 * used * tokens;
  if (output == "result_output") return 2 * 8 * 40 * tokens;
  ADD_FAILURE() << output;
  return 0;
}

struct NaiveRoof {
  double operations = 0, memory = 0, all = 0, executions = 0;
};

// Sums over the steps of a phase, by op type.
std::map<std::string, NaiveRoof> naive_roof(const SessionReader& reader, Phase phase) {
  std::map<std::string, NaiveRoof> sums;
  const auto walked = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
    if (step.phase != phase || step.graph == TemplateId{}) return true;
    const auto graph = reader.graph(step.graph).value();
    std::map<std::uint32_t, double> cells;
    const auto accesses = accesses_of(*graph);
    const auto kind_of = [&](OpId op) -> NaiveRoof& {
      return sums[op_name(*graph, graph->op(op))];
    };
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      const TensorKind kind = graph->tensor(graph->root(access.tensor)).kind;
      const auto bytes = static_cast<double>(access.touched.v);
      NaiveRoof& of = kind_of(access.op);
      of.all += bytes;
      if (kind == TensorKind::Weight || kind == TensorKind::Kv) of.memory += bytes;
      if (kind == TensorKind::Kv && !access.write) cells[access.op.v] += bytes / (8 * 4);
    });
    for (std::uint32_t i = 0; i < step.ops_run(graph->ops.size()); ++i) {
      const Tensor& output = graph->tensor(graph->node(graph->ops[i].last()).output);
      const double tokens = static_cast<double>(graph->tensors[1].ne[0]);
      NaiveRoof& of = kind_of(OpId{i});
      of.operations += naive_operations(output.name, tokens, 2, cells[i]);
      ++of.executions;
    }
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  return sums;
}

TEST(Roofline, HasTheMeanStepOfAWalkAndTheTimesOfTheBreakdown) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession random = plausible_session(seed);
    random.info.facts = {{"host.read_bandwidth", "1000000000"},
                         {"host.read_bandwidth_threads", "1"},
                         {"host.compute_peak", "20000000000"},
                         {"host.compute_peak_threads", "1"},
                         {"host.last_cache_bytes", "1000000"}};
    const auto session = open_session(random);
    for (const Phase phase : {Phase::Generate, Phase::Prompt}) {
      const auto found = roofline(*session->reader, *session->index,
                                  {.by = RooflineBy::OpKind, .filter = {.phase = phase}});
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->threads, found->times.used > 0 ? 1U : 0U);
      EXPECT_EQ(found->bounds.read_bandwidth, found->times.used > 0 ? 1e9 : 0);
      const auto naive = naive_roof(*session->reader, phase);
      const double steps = counted_share(*session->index, {}, phase);
      const auto times = breakdown(
          *session->index, {.by = Axis::OpKind, .filter = {.phase = phase}, .step_times = true});
      ASSERT_TRUE(times.has_value());
      std::map<std::string, StepTimes> expected;
      for (const BreakdownRow& row : times->rows)
        if (row.step) expected[row.name] = *row.step;
      ASSERT_EQ(found->rows.size(), expected.size());
      double above = 1e18;
      for (const RooflineRow& row : found->rows) {
        SCOPED_TRACE(row.name);
        ++compared;
        const NaiveRoof& of = naive.at(row.name);
        EXPECT_EQ(row.times.spread, expected.at(row.name).spread);
        EXPECT_EQ(row.times.steps, expected.at(row.name).steps);
        EXPECT_DOUBLE_EQ(row.times.share, expected.at(row.name).share);
        EXPECT_NEAR(row.cost.operations.value(), of.operations / steps, 1e-9 * of.operations);
        EXPECT_NEAR(row.cost.memory_bytes, of.memory / steps, 1e-9 * of.memory);
        EXPECT_NEAR(row.bytes, of.all / steps, 1e-9 * of.all);
        EXPECT_NEAR(row.executions, of.executions / steps, 1e-9 * of.executions);
        const double saved = std::max(0.0, row.cost.ns - row.verdict.bound_ns.value_or(0));
        EXPECT_LE(saved, above) << "the most time above the bound first";
        above = saved;
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, 100u);
}

// Values that do not fit into the last cache are read from memory, too.
TEST(Roofline, CountsOtherValuesOnlyIfTheyDoNotFitIntoTheCache) {
  RandomSession random = plausible_session(1);
  const auto memory_of = [&](const char* cache) {
    random.info.facts = {{"host.last_cache_bytes", cache}};
    const auto session = open_session(random);
    std::map<std::string, std::pair<double, double>> of;  // from memory, all
    for (const RooflineRow& row :
         roofline(*session->reader, *session->index, {.by = RooflineBy::OpKind})->rows)
      of[row.name] = {row.cost.memory_bytes, row.bytes};
    return of;
  };
  const auto large = memory_of("1000000"), small = memory_of("1");
  ASSERT_TRUE(large.contains("ADD"));
  EXPECT_EQ(large.at("ADD").first, 0);
  EXPECT_EQ(small.at("ADD").first, small.at("ADD").second);
  EXPECT_GT(small.at("ADD").first, 0);
}

// A read bandwidth that a step exceeded bounds nothing, unless the weights are in the last cache.
TEST(Roofline, DoesNotUseABandwidthThatAStepExceeded) {
  RandomSession random = plausible_session(1);
  double fastest = 0;  // bytes per second of op time
  {
    const auto session = open_session(random);
    for (const IndexedStep& step : session->index->steps())
      if (step.phase == Phase::Generate && step.timed && step.is_normal() && step.op_ns > 0)
        fastest = std::max(fastest, static_cast<double>(step.totals.read.v) * 1e9 /
                                        static_cast<double>(step.op_ns));
  }
  ASSERT_GT(fastest, 0);
  const auto found = [&](double bandwidth, const char* cache) {
    random.info.facts = {
        {"host.read_bandwidth", std::to_string(static_cast<std::uint64_t>(bandwidth))},
        {"host.read_bandwidth_threads", "1"},
        {"host.last_cache_bytes", cache}};
    const auto session = open_session(random);
    return *roofline(*session->reader, *session->index, {});
  };
  EXPECT_GT(found(fastest, "1").bounds.read_bandwidth, 0);
  EXPECT_GT(found(fastest / 2, "1000000000").bounds.read_bandwidth, 0);
  const Roofline exceeded = found(fastest / 2, "1");
  EXPECT_EQ(exceeded.bounds.read_bandwidth, 0);
  EXPECT_TRUE(exceeded.text.contains("a step of this session read faster than what was measured"))
      << exceeded.text;
  for (const RooflineRow& row : exceeded.rows) EXPECT_EQ(row.verdict.read_ns, std::nullopt);
}

// An op of all layers is one row, whose times are those of all its layers together.
TEST(Roofline, HasOneRowForAnOpOfAllLayers) {
  const auto session = open_session(plausible_session(2));
  const auto found = roofline(*session->reader, *session->index, {});
  ASSERT_TRUE(found.has_value());
  std::map<std::string, int> names;
  for (const RooflineRow& row : found->rows) {
    ++names[row.name];
    EXPECT_EQ(row.name.find('-'), std::string::npos);
  }
  EXPECT_EQ(names["Qcur"], 1);
  EXPECT_EQ(names["cache_k"], 1);
  EXPECT_FALSE(found->text.empty());
  // A page is a part of the rows.
  const auto page = roofline(*session->reader, *session->index, {.page = {.from = 1, .limit = 2}});
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->row_count, found->rows.size());
  ASSERT_EQ(page->rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(page->rows[i].name, found->rows[i + 1].name);
}

}  // namespace
}  // namespace tt::test
