// Lists of templates, nodes, tensors and ops, compared with a reference that takes all rows,
// filters, sorts and truncates.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/tables/node_table.h"
#include "analysis/tables/op_table.h"
#include "analysis/tables/template_list.h"
#include "analysis/tables/tensor_table.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

using test::small_step;
using test::SmallSession;

constexpr PageRange kAll{.from = 0, .limit = 10'000};

class RandomFile {
 public:
  explicit RandomFile(std::uint64_t seed) : session(test::random_session(seed)) {
    EXPECT_TRUE(test::write_session(path_, session).has_value());
  }
  SessionReader reader() const {
    auto opened = SessionReader::open(path_);
    EXPECT_TRUE(opened.has_value());
    return *std::move(opened);
  }
  test::RandomSession session;

 private:
  test::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "random.ttrace";
};

TEST(HasPart, IgnoresLetterCase) {
  EXPECT_TRUE(matches_pattern("blk.0.attn_Q.weight", "ATTN_q"));
  EXPECT_TRUE(matches_pattern("anything", ""));
  EXPECT_TRUE(matches_pattern("", ""));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("attn", "attn_q"));
  EXPECT_FALSE(matches_pattern("[", "{")) << "only letters have a case";
  EXPECT_TRUE(matches_pattern("blk.10.attn_q.weight", "blk.*.attn_q"));
  EXPECT_TRUE(matches_pattern("blk.10.attn_q.weight", "*BLK.1?.*weight*"));
  EXPECT_TRUE(matches_pattern("blk.10.attn_q.weight", "**"));
  EXPECT_FALSE(matches_pattern("blk.1.attn_q.weight", "blk.1?.attn"));
  EXPECT_FALSE(matches_pattern("blk.1.attn_q.weight", "attn_q*blk")) << "parts must be in order";
  EXPECT_FALSE(matches_pattern("ab", "ab*b")) << "parts must not overlap";
  EXPECT_FALSE(matches_pattern("", "?"));
}

TEST(TemplateList, CountsContentsOfEachGraph) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFile file(seed);
    const auto list = template_list(file.reader());
    ASSERT_TRUE(list.has_value()) << list.error().message;
    ASSERT_EQ(list->size(), file.session.templates.size());
    for (std::uint32_t i = 0; i < list->size(); ++i) {
      const GraphTemplate& graph = file.session.templates[i];
      const TemplateRow& row = (*list)[i];
      EXPECT_EQ(row.id, TemplateId{i + 1});
      EXPECT_EQ(row.fingerprint, graph.fingerprint);
      EXPECT_EQ(row.nodes, graph.nodes.size());
      EXPECT_EQ(row.ops, graph.ops.size());
      EXPECT_EQ(row.tensors, graph.tensors.size());
      EXPECT_EQ(row.steps, std::ranges::count(file.session.steps, row.id, &Step::graph));
      std::set<std::int32_t> layers;
      for (const Op& op : graph.ops) {
        if (op.layer != kNoLayer) layers.insert(op.layer.v);
      }
      EXPECT_EQ(row.layers, layers.size());
    }
  }
}

TEST(TemplateList, CanBeCancelled) {
  const SmallSession session({small_step(0), small_step(1)});
  const auto list = template_list(session.reader(), [] { return false; });
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().kind, TraceError::Kind::Cancelled);
}

TEST(NodeTable, ReportsOpOfEachNode) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFile file(seed);
    const SessionReader reader = file.reader();
    test::Dice dice(seed);
    for (std::uint32_t i = 0; i < file.session.templates.size(); ++i) {
      const GraphTemplate& graph = file.session.templates[i];
      std::map<std::uint32_t, std::uint32_t> ran;
      for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
        for (std::uint32_t n = 0; n < graph.ops[op].nodes; ++n) ran[graph.ops[op].first.v + n] = op;
      }
      const PageRange range{.from = dice.size(10), .limit = dice.size(10)};
      const auto table = node_table(reader, TemplateId{i + 1}, range);
      ASSERT_TRUE(table.has_value());
      EXPECT_EQ(table->page.total, graph.nodes.size());
      std::vector<NodeRow> expected;
      for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
        if (range.contains(n))
          expected.push_back({NodeId{n}, ran.contains(n) ? OpId{ran[n]} : kNoOp});
      }
      EXPECT_EQ(table->page.rows, expected);
    }
  }
  const SmallSession session({small_step(0)});
  const auto none = node_table(session.reader(), TemplateId{2}, kAll);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, TraceError::Kind::NotFound);
}

TEST(TensorTable, FiltersSortsAndPagesLikeReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFile file(seed);
    const SessionReader reader = file.reader();
    test::Dice dice(seed + 1);
    const GraphTemplate& graph = file.session.templates[0];
    const Tensor& model = graph.tensors[dice.below(graph.tensors.size())];
    TensorFilter filter;
    if (dice.one_in(3)) filter.kind = model.kind;
    if (dice.one_in(3)) filter.source = model.source;
    if (dice.one_in(3)) filter.layers = LayerSet::one(model.layer);
    if (dice.one_in(3)) filter.component = model.component;
    if (dice.one_in(3)) filter.name = model.name.substr(0, 2);
    using Rows = std::vector<std::uint32_t>;
    Rows passing;
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& t = graph.tensors[i];
      if (filter.kind && t.kind != *filter.kind) continue;
      if (filter.source && t.source != *filter.source) continue;
      if (!filter.layers.has(t.layer)) continue;
      if (filter.component && t.component != *filter.component) continue;
      if (!matches_pattern(t.name, filter.name)) continue;
      passing.push_back(i);
    }
    for (const auto by : {TensorSort::ByTensor, TensorSort::ByName, TensorSort::ByLayer,
                          TensorSort::BySize, TensorSort::ByOffset}) {
      for (const bool descending : {false, true}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(by) << descending);
        Rows expected = passing;
        const auto sort = [&](auto key, auto lacks) {
          std::ranges::stable_sort(expected, [&](std::uint32_t a, std::uint32_t b) {
            const Tensor &left = graph.tensors[a], &right = graph.tensors[b];
            if (lacks(left) || lacks(right)) return !lacks(left) && lacks(right);
            return descending ? key(right) < key(left) : key(left) < key(right);
          });
        };
        const auto never = [](const Tensor&) { return false; };
        if (by == TensorSort::ByTensor && descending) std::ranges::reverse(expected);
        if (by == TensorSort::ByName) sort([](const Tensor& t) { return t.name; }, never);
        if (by == TensorSort::BySize) sort([](const Tensor& t) { return size_of(t); }, never);
        if (by == TensorSort::ByLayer)
          sort([](const Tensor& t) { return t.layer; },
               [](const Tensor& t) { return t.layer == kNoLayer; });
        if (by == TensorSort::ByOffset)
          sort([](const Tensor& t) { return std::pair(t.file.file, t.file.offset); },
               [](const Tensor& t) { return t.file.empty(); });
        const PageRange range{.from = dice.size(6), .limit = dice.size(20)};
        const auto table = tensor_table(reader, TemplateId{1}, filter, {by, descending}, range);
        ASSERT_TRUE(table.has_value());
        EXPECT_EQ(table->page.total, passing.size());
        Rows rows, expected_rows;
        for (const TensorRow& row : table->page.rows) rows.push_back(row.tensor.v);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (range.contains(i)) expected_rows.push_back(expected[i]);
        }
        EXPECT_EQ(rows, expected_rows);
      }
    }
  }
}

std::string ops_of(const SessionReader& reader, const OpFilter& filter, Order<OpSort> order) {
  const auto table = op_table(reader, StepId{0}, filter, order, kAll);
  if (!table) return table.error().message;
  std::string text;
  for (const OpRow& row : table->page.rows) text += std::to_string(row.op.v);
  EXPECT_EQ(table->page.total, table->page.rows.size());
  return text;
}

TEST(OpTable, FiltersAndSorts) {
  const SmallSession session({small_step(0)});
  const SessionReader reader = session.reader();
  EXPECT_EQ(ops_of(reader, {.name = "mul_mat"}, {}), "234") << "matches the op, ignoring case";
  EXPECT_EQ(ops_of(reader, {.name = "QCUR"}, {}), "2") << "matches the output";
  EXPECT_EQ(ops_of(reader, {.layer = LayerId{0}}, {}), "12");
  EXPECT_EQ(ops_of(reader, {.layer = kNoLayer}, {}), "04");
  EXPECT_EQ(ops_of(reader, {.component = Component::Ffn}, {}), "3");
  EXPECT_EQ(ops_of(reader, {.name = "mul", .layer = LayerId{0}}, {}), "12") << "RMS_NORM+MUL";
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByOp, true}), "43210");
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByName}), "02341");
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByName, true}), "12340");
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByDuration, true}), "43210");
  // Bytes as in OpTable.ReportsOpsAndTheirSources: 136, 160, 384, 384, 704.
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByBytes}), "01234");
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByBytes, true}), "42310");
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByLayer}), "12304") << "ops without a layer last";
  EXPECT_EQ(ops_of(reader, {}, {OpSort::ByLayer, true}), "31204") << "last in both directions";
}

}  // namespace
}  // namespace tt
