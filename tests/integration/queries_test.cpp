// Every query of analysis/ on real recordings, against its naive reference implementation:
// dense, mixture of experts, state space, and both kinds of split model files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <format>
#include <map>
#include <ostream>
#include <string>

#include "analysis/aggregate/breakdown.h"
#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "analysis/report/validation.h"
#include "api/json/gguf_weights.h"
#include "api/text/finding_text.h"
#include "tests/analysis/accesses/access_check.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/analysis/aggregate/statistics_check.h"
#include "tests/analysis/experts/expert_check.h"
#include "tests/analysis/graph/layer_check.h"
#include "tests/analysis/report/comparison_check.h"
#include "tests/analysis/report/report_check.h"
#include "tests/analysis/tables/order_check.h"
#include "tests/analysis/weights/weight_check.h"
#include "tests/api/exchange/totals_check.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

struct Shape {
  const char* name;
  int splits;
  bool dense, experts, caches;
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    return out << shape.name << " in " << shape.splits;
  }
};

class Questions : public ::testing::TestWithParam<Shape> {
 protected:
  Questions() : model_(generated_model(spec()), context()) {}
  static modelgen::ModelSpec spec() {
    return {.shape = GetParam().name, .dims = {.layers = 2}, .splits = GetParam().splits};
  }
  static ContextOptions context() {
    ContextOptions context = TracedModel::small_context();
    context.ubatch = 16;  // two steps for a prompt
    return context;
  }

  TracedModel model_;
  const TracedModel::Run run_ = model_.run(greedy_tokens(21, 7));
  const SessionReader reader_ = run_.reader();
  const SessionIndex index_ = SessionIndex::build(reader_).value();
};

TEST_P(Questions, AggregatesOverSteps) {
  Dice dice(1);
  for (int i = 0; i < 60; ++i) expect_raster(reader_, index_, random_raster_query(dice, index_));
  expect_part_shares(reader_, index_, {});
  for (int i = 0; i < 4; ++i)
    expect_part_shares(reader_, index_, random_range_filter(dice, index_));
  for (int by = static_cast<int>(Axis::Step); by <= static_cast<int>(Axis::All); ++by) {
    const auto axis = static_cast<Axis>(by);
    if (is_byte_axis(axis)) continue;
    expect_breakdown(reader_, index_, axis);
    if (axis == Axis::Tensor || axis == Axis::Layer)
      expect_breakdown(reader_, index_, axis, {.source = Source::Disk});
  }
  for (const Axis by : {Axis::Tensor, Axis::Layer, Axis::Component, Axis::Expert, Axis::Token})
    for (const Value value : {Value::Touched, Value::Accesses})
      expect_hot_cold(index_, {.by = by, .value = value});
  expect_statistics(reader_, index_);
  expect_statistics(reader_, index_, {.steps = {1, 5}, .layers = LayerSet::one(LayerId{1})});
  expect_totals_agree(run_.file);
}

TEST_P(Questions, OrderOfReads) {
  for (const std::uint64_t gap : {std::uint64_t{0}, std::uint64_t{4096}, kDefaultGap}) {
    EXPECT_GT(expect_read_order(reader_, index_, {}, gap), 50U);
    EXPECT_GT(expect_read_order(reader_, index_, {.phase = Phase::Generate}, gap), 30U);
    expect_read_order(reader_, index_, {.layers = {LayerId{1}}}, gap);
  }
  const double right = expect_pattern(reader_);
  if (GetParam().dense) {
    EXPECT_GE(right, 0.95);
  }
  EXPECT_GT(expect_reuse(reader_, 20), 50U);
}

TEST_P(Questions, WeightsHeadsCachesAndExperts) {
  expect_compression(reader_, weights_of(model_.engine().gguf()));
  EXPECT_EQ(expect_heads(reader_) > 0, GetParam().caches);
  EXPECT_EQ(expect_kv_use(reader_) > 0, GetParam().caches);
  EXPECT_EQ(expect_experts(reader_) > 0, GetParam().experts);
}

// The bytes of each head: of its weights, from the table of heads, and of the caches, from the
// sums per layer. Everything else counts for no head.
TEST_P(Questions, HeadsOwnTheirWeightsAndShareCaches) {
  struct Bytes {
    double read = 0, written = 0;
  };
  std::map<std::string, Bytes> expected;
  const HeadTable table = head_table(reader_).value();
  const auto name = [](LayerId layer, std::uint32_t head) {
    return std::format("blk.{} head {}", layer.v, head);
  };
  for (const HeadWeight& weight : table.weights) {
    if (weight.heads.empty()) continue;
    // Query heads that share a key-value head share its bytes.
    const auto sharing = static_cast<std::uint32_t>(table.heads / weight.heads.size());
    for (std::uint32_t head = 0; head < table.heads; ++head) {
      const auto& shared = weight.heads[head / sharing];
      expected[name(weight.layer, head)].read += static_cast<double>(shared.read.v) / sharing;
    }
  }
  const auto steps = kv_use(reader_, kAllRows).value();
  for (const KvStep& step : steps.rows) {
    for (const KvLayer& layer : step.layers) {
      for (std::uint32_t head = 0; head < table.heads; ++head) {
        Bytes& of = expected[name(layer.layer, head)];
        const std::uint64_t read = layer.fresh.v + layer.cached.v + layer.other.v;
        of.read += static_cast<double>(read) / table.heads;
        of.written += static_cast<double>(layer.written.v) / table.heads;
      }
    }
  }
  EXPECT_EQ(expected.size(), GetParam().caches ? 2 * table.heads : 0);
  const Breakdown found = breakdown(index_, {.by = Axis::Head}).value();
  EXPECT_EQ(found.rows.size(), expected.size());
  double rows = 0;
  for (const BreakdownRow& row : found.rows) {
    const Bytes& of = expected[row.name];
    EXPECT_NEAR(row.all.bytes_read, of.read, 1e-9 * of.read) << row.name;
    EXPECT_NEAR(row.all.bytes_written, of.written, 1e-9 * of.written) << row.name;
    rows += row.all.bytes();
  }
  const double total = breakdown(index_, {.by = Axis::Tensor}).value().total.all.bytes();
  EXPECT_EQ(found.total.all.bytes(), total);
  EXPECT_LT(rows, total) << "norms and other tensors belong to no head";
  // The heads of one layer.
  const Breakdown one =
      breakdown(index_, {.by = Axis::Head, .filter = {.layers = {LayerId{1}}}}).value();
  EXPECT_EQ(one.rows.size(), expected.size() / 2);
  for (const BreakdownRow& row : one.rows) EXPECT_TRUE(row.name.starts_with("blk.1 head "));
}

TEST_P(Questions, AccessesAndGraphs) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_GT(expect_accesses(reader_, seed, 6), 1000U);
  }
  for (const TemplateId id : reader_.template_ids().value())
    EXPECT_EQ(expect_layer_subgraphs(**reader_.graph(id)), 2);
}

TEST_P(Questions, WholeSessions) {
  const auto validation = validate(run_.file);
  ASSERT_TRUE(validation.has_value());
  EXPECT_TRUE(validation->passed());
  expect_report(run_.file, index_, reader_);
  const auto other = model_.run(greedy_tokens(13, 4));
  const SessionReader other_reader = other.reader();
  const SessionIndex other_index = SessionIndex::build(other_reader).value();
  const ComparedSession left{.index = index_, .reader = reader_};
  expect_comparison(left, {.index = other_index, .reader = other_reader});
  expect_comparison(left, left);
}

// The same session as if recorded on machines with less memory. The weights to pin are those
// that every token reads and, in a mixture of experts, the experts that most tokens select.
TEST_P(Questions, ReportWithLessMemoryThanWeights) {
  ModelOptions options;
  options.repack = false;  // some CPUs (AMX) repack all but a few KiB
  TracedModel model(generated_model(spec()), context(), options);
  const auto run = model.run(greedy_tokens(21, 7));
  const SessionReader mapped = run.reader();
  const std::uint64_t distinct =
      gather_report_data(run.file, SessionIndex::build(mapped).value(), mapped)
          .value()
          .mapped_distinct.v;
  ASSERT_GT(distinct, 0U);
  RandomSession session = read_session(run.file).value();
  const auto memory = std::ranges::find(session.info.facts, "host.ram_bytes",
                                        [](const auto& fact) { return fact.first; });
  ASSERT_NE(memory, session.info.facts.end());
  std::size_t experts = 0;
  for (const std::uint32_t tenths : {1U, 5U, 9U}) {
    SCOPED_TRACE(tenths);
    const TempFolder folder;
    memory->second = std::to_string(distinct * tenths / 10);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const SessionReader reader = SessionReader::open(folder / "s.ttrace").value();
    const SessionIndex index = SessionIndex::build(reader).value();
    expect_report(folder / "s.ttrace", index, reader);
    const auto figures = gather_report_data(folder / "s.ttrace", index, reader).value();
    const auto advice = advice_of(figures);
    const auto pin = std::ranges::find(advice, AdviceKind::PinWeights, &Advice::kind);
    ASSERT_NE(pin, advice.end());
    const std::string text = advice_text(*pin).advice;
    EXPECT_TRUE(text.contains(".weight")) << text;
    experts += text.contains("expert") && text.contains("_exps.weight");
  }
  EXPECT_EQ(experts > 0, GetParam().experts);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Questions,
    ::testing::Values(Shape{"small", 1, true, false, true}, Shape{"moe", 1, false, true, true},
                      Shape{"mamba", 1, true, false, false}, Shape{"small", 3, true, false, true},
                      Shape{"moe", 2, false, true, true}),
    [](const auto& param) {
      return std::string(param.param.name) + "_in_" + std::to_string(param.param.splits);
    });

}  // namespace
}  // namespace tt::test
