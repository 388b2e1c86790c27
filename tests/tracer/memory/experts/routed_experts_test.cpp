// Following the routers of a graph whose progress the test sets.
#include "tracer/memory/experts/routed_experts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace tt::test {
namespace {

constexpr std::uint32_t kExperts = 8;

// One layer of eight experts of one page each. Op 2 writes the list, op 5 reads the experts.
class RoutedExpertsTest : public ::testing::Test {
 protected:
  RoutedExpertsTest()
      : weights_(::mmap(nullptr, kExperts * page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0)) {
    ExpertUse use;
    use.range = {.file = {.file = 0, .offset = 0, .length = kExperts * page_bytes()},
                 .address = reinterpret_cast<std::uint64_t>(weights_)};
    use.op = OpId{5};
    use.slice = use.stride = page_bytes();
    use.experts = kExperts;
    use.list_address = reinterpret_cast<std::uint64_t>(list_.data());
    use.per_token = 2;
    use.tokens = 1;
    use.token_stride = sizeof list_;
    use.routed_by = OpId{2};
    layers_ = experts_.layers_of(std::vector{use});
    experts_.start(layers_, 4 * page_bytes());
  }
  ~RoutedExpertsTest() override { ::munmap(weights_, kExperts * page_bytes()); }

  bool at(std::uint64_t step, std::uint32_t ops_run) {
    step_ = step;
    ops_run_ = ops_run;
    return experts_.follow(layers_, step, /*running=*/true);
  }
  // Offsets of the ranges that are read.
  std::vector<std::uint64_t> reads() {
    std::vector<std::uint64_t> pages;
    while (const auto range = experts_.next_read()) pages.push_back(range->offset / page_bytes());
    return pages;
  }

  void* weights_;
  std::array<std::int32_t, 2> list_{};
  ModelPages pages_{{}};
  std::atomic<std::uint32_t> ops_run_{0};
  std::atomic<std::uint64_t> step_{1};
  RoutedExperts experts_{pages_, ops_run_, step_};
  std::vector<RoutedExperts::Layer> layers_;
};

TEST_F(RoutedExpertsTest, ReadsWhatTheRouterChoseAndKeepsIt) {
  list_ = {6, 1};
  EXPECT_FALSE(at(1, 3)) << "the list is not complete";
  EXPECT_TRUE(reads().empty());
  EXPECT_TRUE(at(1, 4));
  EXPECT_EQ(reads(), (std::vector<std::uint64_t>{1, 6}));
  EXPECT_FALSE(at(1, 5)) << "once";
  EXPECT_TRUE(at(1, 7));
  list_ = {1, 2};
  at(2, 4);
  EXPECT_EQ(reads(), std::vector<std::uint64_t>{2}) << "expert 1 is in memory";
  EXPECT_EQ(experts_.hits(), 1U);
  EXPECT_EQ(experts_.misses(), 3U);
  EXPECT_EQ(experts_.bytes_submitted(), 3 * page_bytes());
  EXPECT_EQ(experts_.resident_bytes(), 3 * page_bytes());
  EXPECT_EQ(experts_.uniform_share(), 0.5);
}

// A layer that waits for the disk is slow enough to be seen.
TEST_F(RoutedExpertsTest, LayersThatPassedUnseenCountAsHits) {
  list_ = {0, 1};
  at(1, 4);
  at(1, 7);
  EXPECT_TRUE(at(2, 9));
  EXPECT_EQ(experts_.hits(), 2U);
  EXPECT_EQ(experts_.misses(), 2U);
  EXPECT_EQ(reads(), std::vector<std::uint64_t>{}) << "those of the former step have passed";
}

TEST_F(RoutedExpertsTest, NumbersThatAreNoExpertsAreIgnored) {
  list_ = {-1, 99};
  at(1, 4);
  EXPECT_TRUE(reads().empty());
  experts_.stop();
  EXPECT_EQ(experts_.hits() + experts_.misses() + experts_.resident_bytes(), 0U);
}

// Two layers of eight experts of one page each; the second one follows the first one.
class PredictedExpertsTest : public ::testing::Test {
 protected:
  PredictedExpertsTest()
      : weights_(::mmap(nullptr, 2 * kExperts * page_bytes(), PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::vector<ExpertUse> uses(2);
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      const std::uint64_t begin = layer * kExperts * page_bytes();
      uses[layer].range = {.file = {.file = 0, .offset = begin, .length = kExperts * page_bytes()},
                           .address = reinterpret_cast<std::uint64_t>(weights_) + begin};
      uses[layer].routed_by = OpId{10 * layer + 2};
      uses[layer].op = OpId{10 * layer + 5};
      uses[layer].slice = uses[layer].stride = page_bytes();
      uses[layer].experts = kExperts;
      uses[layer].list_address = reinterpret_cast<std::uint64_t>(&lists_[layer]);
      uses[layer].per_token = 1;
      uses[layer].tokens = 1;
      uses[layer].token_stride = sizeof lists_[layer];
    }
    layers_ = experts_.layers_of(uses);
    // One slot in each layer, and one page to read ahead.
    experts_.start(layers_, 4 * page_bytes());
  }
  ~PredictedExpertsTest() override { ::munmap(weights_, 2 * kExperts * page_bytes()); }

  // Evaluates a token. Returns the pages that were submitted between the routers of the layers.
  std::uint64_t token(std::int32_t first, std::int32_t second) {
    ++step_;
    const auto at = [&](std::uint32_t ops_run) {
      ops_run_ = ops_run;
      experts_.follow(layers_, step_, /*running=*/true);
    };
    lists_ = {first, second};
    const std::uint64_t wasted = experts_.bytes_wasted(), ahead = experts_.bytes_ahead();
    at(4);
    const std::uint64_t read = experts_.bytes_ahead() - ahead;
    at(7);
    at(14);
    wasted_ = experts_.bytes_wasted() - wasted;
    at(17);
    EXPECT_LE(experts_.resident_bytes(), 3 * page_bytes());
    return read;
  }

  void* weights_;
  std::array<std::int32_t, 2> lists_{};
  ModelPages pages_{{}};
  std::atomic<std::uint32_t> ops_run_{0};
  std::atomic<std::uint64_t> step_{0};
  RoutedExperts experts_{pages_, ops_run_, step_};
  std::vector<RoutedExperts::Layer> layers_;
  std::uint64_t wasted_ = 0;
};

TEST_F(PredictedExpertsTest, AreReadBeforeTheRouterChoosesIfMostAreRight) {
  for (std::int32_t i = 0; i < 200; ++i) token(i % 8, (i % 8 + 3) % 8);
  ASSERT_GT(experts_.predictor()->recent_share(), 0.9);
  EXPECT_EQ(experts_.predictor()->by(), ExpertPredictor::By::PreviousLayer);
  const std::uint64_t submitted = experts_.bytes_submitted();
  EXPECT_EQ(token(5, 0), page_bytes());
  EXPECT_EQ(wasted_, 0U);
  // An expert that was read ahead is not read again.
  EXPECT_LE(experts_.bytes_submitted() - submitted, 2 * page_bytes());
  // Now the router chooses another one.
  EXPECT_EQ(token(1, 7), page_bytes());
  EXPECT_EQ(wasted_, page_bytes());
  EXPECT_EQ(experts_.bytes_wasted(), page_bytes());
  // An op of the next layer was not seen: what was read for it is released.
  ++step_;
  ops_run_ = 4;
  lists_ = {2, 5};
  experts_.follow(layers_, step_, true);
  const std::uint64_t before = experts_.bytes_wasted();
  ops_run_ = 19;
  experts_.follow(layers_, step_, true);
  EXPECT_EQ(experts_.bytes_wasted() - before, page_bytes());
}

TEST_F(PredictedExpertsTest, NothingIsReadAheadIfMostAreWrong) {
  std::uint32_t state = 1;  // a generator whose numbers do not follow each other
  const auto next = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::int32_t>((state >> 24U) & 7U);
  };
  for (int i = 0; i < 400; ++i) {
    const std::int32_t first = next();
    EXPECT_EQ(token(first, next()), 0U);
  }
  EXPECT_GT(experts_.predictor()->predicted(), 100U);
  EXPECT_LT(experts_.predictor()->right(), experts_.predictor()->predicted() / 2);
  EXPECT_EQ(experts_.bytes_wasted(), 0U);
}

}  // namespace
}  // namespace tt::test
