// tt hot as a person and as a program use it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

TEST(HotCommand, SaysWhereTimeAndBytesGo) {
  const testing::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result table = run_tt(folder, "hot a.ttrace --by layer --value time");
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* word : {"prompt", "generate", "mapped file", "hot: 1 of", "none"})
    EXPECT_TRUE(table.out.contains(word)) << word << "\n" << table.out;

  const Result result = run_tt(folder, "hot a.ttrace --json --top 3 --hot 25");
  ASSERT_EQ(result.code, 0) << result.err;
  const json hot = json::parse(result.out);
  EXPECT_EQ(hot["by"], "tensor");
  EXPECT_EQ(hot["value"], "accesses");
  EXPECT_EQ(hot["rows"].size(), 3U);
  EXPECT_GE(hot["rows"][0]["all"]["reads"], hot["rows"][1]["all"]["reads"]);
  const auto total = hot["total"].get<std::uint64_t>();
  EXPECT_EQ(hot["classes"]["hot"]["rows"], (total + 3) / 4);
}

TEST(HotCommand, MistakesAreToldApart) {
  const testing::TempFolder folder;
  EXPECT_EQ(run_tt(folder, "hot none.ttrace").code, 1);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --by file").code, 2);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --hot 101").code, 2);
}

}  // namespace
}  // namespace tt
