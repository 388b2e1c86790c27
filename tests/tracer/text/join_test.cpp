#include "tracer/text/join.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tt {
namespace {

TEST(Join, SeparatesElementsByCommas) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"", "b", ""}), ", b, ");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}), "1, 2, 3");
  const std::map<std::string, int> map = {{"a", 1}, {"b", 2}};
  EXPECT_EQ(join(map | std::views::keys), "a, b");
  EXPECT_EQ(join(map, [](const auto& entry) { return entry.first + "!"; }), "a!, b!");
}

}  // namespace
}  // namespace tt
