// Which tokens are of one sequence of the cache, compared with a simulation of its cells.
#include "attach/collector/cache_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace tt::attach {
namespace {

TEST(CacheSequences, StreamsAreTold) {
  const std::vector<std::int64_t> own = {3, 4, 100, 250};
  const CacheSequences cache;
  EXPECT_EQ(cache.of({.own = own, .attended = {}, .per_stream = 100, .streams = 3}),
            (std::vector<std::uint32_t>{0, 0, 1, 2}));
  EXPECT_TRUE(cache.of({.own = own, .attended = {}, .per_stream = 300, .streams = 1}).empty())
      << "one stream, and no mask";
}

// A cache of one stream, where sequences take free cells anywhere, drop their last tokens, and end.
TEST(CacheSequences, OfOneStreamAreThoseOfTheCells) {
  constexpr std::int64_t kCells = 64;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    std::vector<std::vector<std::int64_t>> cells(4);  // of each sequence, by position
    std::vector<int> lives(4);                        // how often it began anew
    std::map<std::uint32_t, std::pair<std::size_t, int>> known;
    std::map<std::pair<std::size_t, int>, std::uint32_t> numbers;
    CacheSequences cache;
    for (int step = 0; step < 60; ++step) {
      std::vector<std::int64_t> own;
      std::vector<std::array<std::int64_t, 2>> attended;
      std::vector<std::size_t> of;
      for (std::size_t s = 0; s < cells.size(); ++s) {
        if (below(4) == 0 && !cells[s].empty()) cells[s].resize(below(cells[s].size() + 1));
        if (cells[s].empty()) ++lives[s];
        for (std::size_t n = below(4); n > 0; --n) {
          std::vector<std::int64_t> free;
          for (std::int64_t cell = 0; cell < kCells; ++cell)
            if (std::ranges::none_of(cells, [&](const auto& used) {
                  return std::ranges::find(used, cell) != used.end();
                }))
              free.push_back(cell);
          if (free.size() < 8) break;
          cells[s].push_back(free[below(free.size())]);
          own.push_back(cells[s].back());
          std::vector<std::int64_t> sorted = cells[s];
          std::ranges::sort(sorted);
          attended.push_back({sorted[0], sorted.size() > 1 ? sorted[1] : -1});
          of.push_back(s);
        }
      }
      const StepCells all{.own = own, .attended = attended, .per_stream = kCells, .streams = 1};
      const auto found = cache.of(all);
      ASSERT_EQ(found.size(), of.size());
      cache.add(all, found);
      for (std::size_t i = 0; i < of.size(); ++i) {
        const std::pair sequence{of[i], lives[of[i]]};
        EXPECT_EQ(known.try_emplace(found[i], sequence).first->second, sequence);
        EXPECT_EQ(numbers.try_emplace(sequence, found[i]).first->second, found[i]);
      }
    }
  }
}

}  // namespace
}  // namespace tt::attach
