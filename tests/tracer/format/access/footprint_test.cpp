// Footprints of views, and rows selected by lists. The bytes that each op touches are verified
// against the real kernels in tests/tracer/format/access/kernel_bytes_test.cpp.
#include "tracer/format/access/byte_rules.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

#include "tests/support/sessions/graph_maker.h"
#include "tracer/format/access/footprint.h"

namespace tt {
namespace {

using test::dense;
using test::GraphMaker;

Tensor strided(std::array<std::int64_t, 4> ne, std::array<std::uint64_t, 4> nb) {
  Tensor t = dense("view", {1});
  t.ne = ne;
  t.nb = nb;
  return t;
}

std::uint64_t footprint_by_listing(const Tensor& t) {
  std::set<std::uint64_t> bytes;
  for (std::int64_t i3 = 0; i3 < t.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < t.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < t.ne[1]; ++i1) {
        for (std::int64_t i0 = 0; i0 < t.ne[0]; i0 += t.block_elements) {
          const std::uint64_t at = static_cast<std::uint64_t>(i0 / t.block_elements) * t.nb[0] +
                                   static_cast<std::uint64_t>(i1) * t.nb[1] +
                                   static_cast<std::uint64_t>(i2) * t.nb[2] +
                                   static_cast<std::uint64_t>(i3) * t.nb[3];
          for (std::uint64_t b = 0; b < t.block_bytes; ++b) bytes.insert(at + b);
        }
      }
    }
  }
  return bytes.size();
}

TEST(Footprint, CountsEachByteOfAViewOnce) {
  const std::tuple<const char*, Tensor, std::uint64_t> cases[] = {
      {"dense", dense("t", {6, 4, 2}), 192},
      {"one element", dense("t", {1}), 4},
      {"no rows", strided({6, 0, 1, 1}, {4, 24, 0, 0}), 0},
      {"quantized rows are whole blocks", dense("t", {64, 3}, test::kQ8), 204},
      {"gaps between rows", strided({3, 4, 1, 1}, {4, 32, 128, 128}), 48},
      {"permuted", strided({4, 6, 2, 1}, {24, 4, 96, 192}), 192},
      {"every second element", strided({4, 1, 1, 1}, {8, 32, 32, 32}), 16},
      {"a row repeated (stride 0)", strided({6, 5, 1, 1}, {4, 0, 24, 24}), 24},
      {"overlapping windows", strided({4, 5, 1, 1}, {4, 8, 40, 40}), 48},
      {"windows that overlap and have gaps", strided({3, 3, 1, 1}, {8, 16, 48, 48}), 28},
  };
  for (const auto& [name, view, bytes] : cases) {
    EXPECT_EQ(footprint(view), bytes) << name;
    if (bytes > 0) {
      EXPECT_EQ(footprint_by_listing(view), bytes) << name;
    }
  }
}

TEST(Footprint, MatchesListingEveryByteOfRandomViews) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto up_to = [&](unsigned n) { return static_cast<std::int64_t>(random() % (n + 1)); };
    Tensor t = seed % 3 == 0 ? dense("t", {64}, test::kQ8) : dense("t", {1});
    const std::int64_t blocks = 1 + up_to(4);
    t.ne = {blocks * t.block_elements, 1 + up_to(4), 1 + up_to(3), 1 + up_to(2)};
    for (std::uint64_t& stride : t.nb) stride = static_cast<std::uint64_t>(up_to(40)) * 2;
    EXPECT_EQ(footprint(t), footprint_by_listing(t));
    EXPECT_GE(span_of(t), footprint(t));
  }
}

TEST(Footprint, TerminatesOnInvalidShapeFromDamagedFile) {
  const Tensor huge = strided({1'000'000, 1'000'000, 1'000'000, 1}, {8, 12, 20, 0});
  EXPECT_GT(footprint(huge), 0u);
}

TEST(DistinctParts, CountsSelectedRowsPerBatch) {
  struct Case {
    const char* name;
    test::Shape view, index;
    std::vector<std::int64_t> values;
    std::uint64_t parts;
  };
  const Case cases[] = {
      {"a row named twice", {4, 8}, {3}, {5, 2, 5}, 2},
      {"numbers outside are no rows", {4, 8}, {4}, {-1, 8, 7, 0}, 2},
      {"the same row of two batches", {4, 8, 2}, {2, 2}, {5, 5, 5, 2}, 3},
      {"one list for three batches", {4, 8, 3}, {2}, {5, 2}, 6},
      {"two lists take turns over three batches", {4, 8, 3}, {2, 2}, {5, 2, 1, 1}, 5},
      {"lists over both outer dimensions", {4, 8, 2, 2}, {1, 2, 2}, {0, 1, 2, 3}, 4},
      {"a list cut short", {4, 8, 2}, {2, 2}, {5, 2, 1}, 2},
      {"nothing", {4, 8}, {0}, {}, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(distinct_parts(dense("v", c.view), PartAxis::Row, dense("i", c.index), c.values),
              c.parts)
        << c.name;
  }
}

TEST(TouchesOf, ViewsAndNodesThatAreNotComputedTouchNothing) {
  GraphMaker m;
  const TensorId x = m.input("x", {6, 4}, test::kF32);
  m.node("SILU", "y", {6, 4}, {x});
  m.graph.nodes[0].computed = false;
  EXPECT_TRUE(touches_of(m.graph, m.graph.nodes[0]).empty());
}

TEST(TouchesOf, AbsentSourcesAndEmptyTensorsTouchNothing) {
  GraphMaker m;
  const TensorId x = m.input("x", {6, 4}, test::kF32);
  const TensorId none = m.input("none", {6, 0}, test::kF32);
  m.node("SOME_NEW_OP", "y", {6, 4}, {x, kNoTensor, none});
  const std::vector<Touch> touches = touches_of(m.graph, m.graph.nodes[0]);
  ASSERT_EQ(touches.size(), 2u);
  EXPECT_EQ(touches[0], (Touch{.tensor = x, .unit = 96}));
  EXPECT_EQ(touches[1], (Touch{.tensor = m.graph.nodes[0].output, .write = true, .unit = 96}));
}

}  // namespace
}  // namespace tt
