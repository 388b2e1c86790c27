// Weight sizes, heads and caches of small and random sessions. tests/tracer/ has the tests with
// real models.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/attention/byte_set.h"
#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "analysis/weights/compression.h"
#include "tests/analysis/weights/attention_session.h"
#include "tests/analysis/weights/weight_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

TEST(Compression, ComputesBitsPerWeight) {
  const CompressionReport report = compression({
      {.name = "a",
       .type = "Q4_K",
       .layer = LayerId{0},
       .component = Component::Ffn,
       .elements = 1024,
       .bytes = Bytes{576}},
      {.name = "b",
       .type = "F32",
       .component = Component::Norm,
       .elements = 64,
       .bytes = Bytes{256}},
      {.name = "c",
       .type = "Q4_K",
       .layer = LayerId{1},
       .component = Component::Ffn,
       .elements = 512,
       .bytes = Bytes{288}},
  });
  ASSERT_EQ(report.types.size(), 2U);
  EXPECT_EQ(report.types[0].key, "Q4_K");
  EXPECT_DOUBLE_EQ(report.types[0].sum.bits_per_weight(), 4.5);
  EXPECT_DOUBLE_EQ(report.types[0].sum.ratio(16), 16 / 4.5);
  EXPECT_DOUBLE_EQ(report.types[1].sum.ratio(32), 1);
  EXPECT_EQ(report.total, (Compression{.tensors = 3, .elements = 1600, .bytes = Bytes{1120}}));
  ASSERT_EQ(report.layers.size(), 3U);
  EXPECT_EQ(report.layers[0].key, kNoLayer);
  EXPECT_EQ(compression({}).total.ratio(16), 0);
}

TEST(Compression, CountsEachWeightOnce) {
  const SmallSession session({small_step(0)});
  const auto weights = session_weights(session.reader());
  ASSERT_TRUE(weights.has_value());
  ASSERT_EQ(weights->size(), 5U);
  EXPECT_EQ((*weights)[0].name, "token_embd.weight");
  EXPECT_EQ((*weights)[0].elements, 128U);
  expect_compression(session.reader(), *weights);
}

// Two heads divide the rows of Q; the session reads all of Q once per step.
TEST(Heads, DividesWeightByRows) {
  SessionInfo info = SmallSession::small_info();
  info.n_heads = 2;
  info.n_heads_kv = 1;
  const SmallSession session({small_step(0), small_step(1), small_step(2)}, info);
  const SessionReader reader = session.reader();
  EXPECT_EQ(expect_heads(reader), 1);
  const auto table = head_table(reader);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->weights.size(), 1U);
  const HeadWeight& q = table->weights[0];
  EXPECT_EQ(q.name, "blk.0.attn_q.weight");
  EXPECT_EQ(q.range(1, 0), (FileRange{.file = 0, .offset = 3128, .length = 128}));
  EXPECT_EQ(q.heads[1], (HeadUse{.reads = 3, .read = Bytes{384}}));
}

// The weights of a session's graphs as the GGUF headers list them.
std::vector<WeightSize> weights_of(const RandomSession& session) {
  std::vector<WeightSize> out;
  std::set<std::string> seen;
  for (const GraphTemplate& graph : session.templates) {
    for (const Tensor& t : graph.tensors) {
      if (t.kind != TensorKind::Weight || t.view_of != kNoTensor || !seen.insert(t.name).second)
        continue;
      out.push_back({.name = t.name,
                     .type = t.type,
                     .layer = t.layer,
                     .component = t.component,
                     .elements = static_cast<std::uint64_t>(t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]),
                     .bytes = Bytes{t.file.length}});
    }
  }
  return out;
}

TEST(Weights, HeadsCachesAndSizesMatchReference) {
  int divided = 0, joint = 0;
  std::uint64_t cached = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const auto session = attention_session(seed);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    divided += expect_heads(*reader);
    joint += std::ranges::any_of(head_table(*reader)->weights, [](const HeadWeight& weight) {
      return weight.role == Role::Qkv && weight.heads.empty() && weight.reads > 0;
    });
    cached += expect_kv_use(*reader);
    expect_compression(*reader, weights_of(session));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(divided, 150);
  EXPECT_GT(joint, 1);
  EXPECT_GT(cached, 100'000U);
}

// The template changes often, with and without experts.
TEST(Weights, KvUseMatchesReference) {
  std::uint64_t cached = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const auto session = plausible_session(seed);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    cached += expect_kv_use(*reader);
  }
  EXPECT_GT(cached, 10'000U);
}

TEST(Heads, AcceptAnyTemplate) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    TempFolder folder;
    auto session = random_session(seed);
    session.info.n_heads = 1 + session.info.n_heads % 7;
    session.info.n_heads_kv = 1 + session.info.n_heads_kv % 7;
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    const auto table = head_table(*reader);
    ASSERT_TRUE(table.has_value());
    expect_heads(*reader);
    for (const HeadWeight& weight : table->weights)
      EXPECT_LE(weight.head_bytes().v * weight.geometry.count, weight.file.length);
    EXPECT_TRUE(session_weights(*reader).has_value());
    const auto use = kv_use(*reader, {.from = 2, .limit = 5});
    ASSERT_TRUE(use.has_value());
    EXPECT_LE(use->rows.size(), 5U);
  }
}

// A cache of 16 cells with 8 values each and 2 heads. `transposed`: V as stored without flash
// attention.
GraphTemplate cache_graph(std::int64_t tokens, std::int64_t window, bool transposed) {
  GraphMaker m;
  const TensorId x = m.input("inp", {8, tokens}, kF32);
  const TensorId cells = m.input("k_idxs", {transposed ? 8 * tokens : tokens}, kI64);
  const TensorId cache = m.leaf(TensorKind::Kv, "cache_v_l0", {8, 16});
  m.graph.tensors[cache.v].role = Role::V;
  TensorId target;
  if (transposed) {
    target = m.view(cache, "cache_v_l0 (view)", {1, 8 * 16}, 0);
    m.graph.tensors[target.v].nb = {4, 4, 512, 512};
  } else {
    target = m.view(cache, "cache_v_l0 (view)", {8, 16}, 0);
  }
  const TensorId v = m.node("MUL", "Vcur-0", {8, tokens}, {x, x});
  m.node("SET_ROWS", target, {v, cells, cache});
  m.slot(SlotKind::CachePositions, cells, LayerId{0});
  const TensorId read = m.view(cache, "v-0", {4, window, 2}, 0);
  if (transposed) {
    m.graph.tensors[read.v].ne = {window, 4, 2, 1};
    m.graph.tensors[read.v].nb = {4, 64, 256, 512};
  } else {
    m.graph.tensors[read.v].nb = {4, 32, 16, 512};
  }
  m.node("MUL_MAT", "kqv-0", {4, tokens, 2}, {read, v});
  for (Op& op : m.graph.ops) op.layer = LayerId{0};
  return std::move(m.graph);
}

class KvUse : public ::testing::TestWithParam<bool> {};

TEST_P(KvUse, SeparatesFreshFromCachedReads) {
  const bool transposed = GetParam();
  TempFolder folder;
  RandomSession s;
  s.info.id = "kv";
  s.info.state = SessionState::Done;
  s.templates = {cache_graph(3, 8, transposed), cache_graph(1, 8, transposed)};
  const auto step_of = [&](std::uint32_t id, const std::vector<std::int64_t>& cells) {
    Step step;
    step.id = StepId{id};
    step.phase = id == 0 ? Phase::Prompt : Phase::Generate;
    step.graph = TemplateId{id == 0 ? 1U : 2U};
    step.n_tokens = static_cast<std::uint32_t>(cells.size());
    step.first_token = id == 0 ? 0 : 2 + id;
    step.op_ends.resize(3);
    std::vector<std::int64_t> ints = cells;
    if (transposed) {
      ints.clear();
      for (const std::int64_t cell : cells)
        for (std::int64_t value = 0; value < 8; ++value) ints.push_back(value * 16 + cell);
    }
    step.slots = {{.ints = ints, .floats = {}}};
    s.steps.push_back(step);
  };
  step_of(0, {0, 1, 2});
  step_of(1, {3});
  step_of(2, {1});
  ASSERT_TRUE(write_session(folder / "s.ttrace", s).has_value());
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  EXPECT_GT(expect_kv_use(*reader), 0U);
  const auto use = kv_use(*reader, {.from = 1, .limit = 9});
  ASSERT_TRUE(use.has_value());
  ASSERT_EQ(use->rows.size(), 2U);
  const auto cells = [](std::uint64_t n) { return Bytes{n * 32}; };
  EXPECT_EQ(use->rows[0].layers.at(0),
            (KvLayer{LayerId{0}, cells(1), cells(3), cells(4), cells(1)}));
  EXPECT_EQ(use->rows[1].layers.at(0),
            (KvLayer{LayerId{0}, cells(1), cells(3), cells(4), cells(1)}))
      << "cell 1 is written again";
}

INSTANTIATE_TEST_SUITE_P(Caches, KvUse, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "transposed" : "rows"; });

TEST(ByteSet, MatchesStdSet) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const auto numbers = [&] {
      std::vector<std::uint64_t> out;
      for (std::size_t n = dice.size(12); n > 0; --n) out.push_back(dice.below(24));
      return out;
    };
    const std::uint64_t length = 1 + dice.below(4);
    const auto a = numbers(), b = numbers();
    std::set<std::uint64_t> x, y, common;
    for (std::uint64_t i = 0; i < length; ++i) {
      for (const std::uint64_t n : a) x.insert(n + i);
      for (const std::uint64_t n : b) y.insert(n + i);
    }
    std::set<std::uint64_t> both = x;
    both.insert(y.begin(), y.end());
    for (const std::uint64_t n : x)
      if (y.contains(n)) common.insert(n);
    ByteSet set = ByteSet::of(a, length);
    EXPECT_EQ(set.size(), x.size());
    EXPECT_EQ(set.common(ByteSet::of(b, length)).size(), common.size());
    set.add(ByteSet::of(b, length));
    EXPECT_EQ(set.size(), both.size());
    for (std::uint64_t n = 0; n < 30; ++n)
      EXPECT_EQ(set.common(ByteSet::range(n, n + 1)).empty(), !both.contains(n));
  }
}

}  // namespace
}  // namespace tt::test
