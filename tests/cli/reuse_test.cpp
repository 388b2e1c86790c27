// tt reuse, as a table and as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

// A dense model reads all weights in every step, in the same order.
TEST(ReuseCommand, LruSavesNothingForDenseModelUnlessAllFits) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result result = run_tt(folder, "reuse a.ttrace --json --grain tensor");
  ASSERT_EQ(result.code, 0) << result.err;
  const json reuse = json::parse(result.out);
  const auto distinct = reuse["distinct_bytes"].get<std::uint64_t>();
  const auto read = reuse["bytes_read"].get<std::uint64_t>();
  // 8 steps: one for the prompt and seven more.
  EXPECT_EQ(read, 8 * distinct);
  ASSERT_EQ(reuse["curve"].size(), 10U);
  const json& half = reuse["curve"][4];
  EXPECT_EQ(half["lru"]["bytes_saved"], 0) << "LRU thrashes if the cache is too small";
  EXPECT_EQ(half["pin"]["bytes_saved"].get<std::uint64_t>(), 7 * (distinct / 2));
  EXPECT_GE(half["belady"]["bytes_saved"], half["pin"]["bytes_saved"]);
  const json& whole = reuse["curve"][9];
  for (const char* policy : {"lru", "belady", "pin"})
    EXPECT_EQ(whole[policy]["bytes_saved"].get<std::uint64_t>(), read - distinct) << policy;

  const Result table = run_tt(folder, "reuse a.ttrace --sizes 1MiB,2MB");
  EXPECT_EQ(table.code, 0);
  EXPECT_TRUE(table.out.contains("\n1.91 MiB ")) << table.out;
  EXPECT_TRUE(table.out.contains("LRU")) << table.out;
}

TEST(ReuseCommand, ErrorsHaveDistinctExitCodes) {
  const test::TempFolder folder;
  const Result missing = run_tt(folder, "reuse none.ttrace");
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.err.contains("none.ttrace")) << missing.err;
  EXPECT_EQ(run_tt(folder, "reuse none.ttrace --grain layer").code, 2);
  EXPECT_EQ(run_tt(folder, "reuse none.ttrace --sizes much").code, 2);
}

}  // namespace
}  // namespace tt
