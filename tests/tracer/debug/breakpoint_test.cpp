// What a line of text stops at, and which lines are rejected.
#include "tracer/debug/breakpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "tracer/debug/selection.h"
#include "tracer/request/debug_options.h"
#include "tracer/request/request_bounds.h"

namespace tt::test {
namespace {

const OpPlace kPlace{.step = StepId{2},
                     .first_token = 7,
                     .n_tokens = 3,
                     .op = OpId{40},
                     .layer = LayerId{3},
                     .operation = "MUL_MAT",
                     .name = "Qcur-3"};

TEST(Breakpoint, StopsWhereAllPartsHold) {
  const std::pair<const char*, bool> cases[] = {
      {"Qcur", true},
      {"^Qcur-3$", true},
      {"cur", true},
      {"^Q$", false},
      {"op MUL_MAT", true},
      {"op mul_mat", true},
      {"op MUL_MAT_ID", false},
      {"layer 3", true},
      {"layer 0-3", true},
      {"layer 4-", false},
      {"token 6", false},
      {"token 7", true},
      {"token 9", true},
      {"token 10", false},
      {"token 0-7", true},
      {"step 2", true},
      {"step 0-1", false},
      {"  op MUL_MAT\tlayer 3 token 8 step 2 Qcur ", true},
      {"op MUL_MAT layer 3 Kcur", false},
      {"layer 3 op ADD", false},
      {"before layer 3", true},
      {"watch layer 3", true},
      {"if nan", true},
  };
  for (const auto& [text, stops] : cases) {
    const auto parsed = Breakpoint::parse(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error();
    EXPECT_EQ(parsed->is_at(kPlace), stops) << text;
    EXPECT_EQ(parsed->text(), text);
  }
  OpPlace unnamed = kPlace;
  unnamed.layer = kNoLayer;
  EXPECT_FALSE(Breakpoint::parse("layer 0-")->is_at(unnamed)) << "it belongs to no layer";
  EXPECT_TRUE(Breakpoint::parse("before layer 3")->is_before());
  EXPECT_TRUE(Breakpoint::parse("watch layer 3 if norm < 1")->is_watch());
}

TEST(Breakpoint, ConditionsAreAboutTheOutput) {
  const OutputStatistics of{
      .min = -2, .max = 5, .mean = 1, .std = 2, .norm = 30, .elements = 12, .nan = 1, .inf = 0};
  const std::pair<const char*, bool> cases[] = {{"if nan", true},        {"if inf", false},
                                                {"if nan > 1", false},   {"if norm > 29", true},
                                                {"if norm > 30", false}, {"if norm < 1e2", true},
                                                {"if max > 4.5", true},  {"if min < -1", true},
                                                {"if mean > 1", false},  {"if std < 3", true}};
  for (const auto& [text, holds] : cases) {
    const auto parsed = Breakpoint::parse(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error();
    ASSERT_TRUE(parsed->needs_statistics());
    EXPECT_EQ(parsed->holds(of), holds) << text;
  }
  const std::vector<std::int32_t> experts = {4, 0, 2};
  EXPECT_TRUE(Breakpoint::parse("expert 2")->has_expert(experts));
  EXPECT_FALSE(Breakpoint::parse("expert 1")->has_expert(experts));
}

TEST(Breakpoint, RejectsOtherTexts) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "needs a place"},
      {" \t", "needs a place"},
      {"op", "\"op\" needs a name"},
      {"layer", "\"layer\" needs a number"},
      {"op MULMAT", "Did you mean MUL_MAT"},
      {"op VIEW", "not an op"},
      {"layer x", "not a range"},
      {"layer -1", "not a range"},
      {"layer 3-1", "not a range"},
      {"token 4294967296", "not a range"},
      {"expert -1", "not a number from 0"},
      {"expert 0-3", "not a number from 0"},
      {"layer 1 layer 2", "has one layer"},
      {"a b", "has one pattern of names"},
      {"before before", "has one before"},
      {"(", "not a valid regular expression"},
      {"(a)\\1", "back reference"},
      {"((a{500}){500}){500}", "too long"},
      {std::string(100'000, '('), "the maximum is 1000"},
      {"a if", "Unknown statistic"},
      {"a if size > 3", "Unknown statistic"},
      {"a if norm", "A condition is"},
      {"a if norm = 3", "A condition is"},
      {"a if norm > x", "A condition is"},
      {"a if norm > 3 layer 2", "A condition is"},
      {"before a if nan", "remove \"before\""},
      {"before watch a", "remove \"before\""},
      {std::string("layer 1\0", 8), "not a range"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = Breakpoint::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text.substr(0, 40);
    EXPECT_TRUE(parsed.error().contains(expected))
        << text.substr(0, 40) << ": " << parsed.error().substr(0, 300);
  }
  EXPECT_FALSE(parse_breakpoints(std::vector<std::string>(kMaxBreakpoints + 1, "a")).has_value());
}

TEST(Selection, IndexesAsNumpyDoes) {
  constexpr std::array<std::uint64_t, 4> kShape = {64, 6, 5, 1};  // numpy: (5, 6, 64)
  const auto in = [&](std::string_view text) {
    const auto parsed = Selection::parse(text);
    if (!parsed) return parsed.error();
    const auto indices = parsed->in(kShape);
    if (!indices) return indices.error();
    std::string out;
    for (const IndexRange& of : *indices) out += std::format("{}-{} ", of.first, of.last);
    return out;
  };
  EXPECT_EQ(in("2"), "0-63 0-5 2-2 0-0 ");
  EXPECT_EQ(in("2, 1-3"), "0-63 1-3 2-2 0-0 ");
  EXPECT_EQ(in("*,5,10-"), "10-63 5-5 0-4 0-0 ");
  EXPECT_EQ(in("0,0,0-99"), "0-63 0-0 0-0 0-0 ");
  EXPECT_TRUE(in("5").contains("Index 5 is not in a dimension of 5"));
  EXPECT_EQ(in("0,2,1-3"), "1-3 2-2 0-0 0-0 ");
  EXPECT_EQ(in("0,0,0,0"), "0-0 0-0 0-0 0-0 ") << "of the outer dimension there is one";
  EXPECT_EQ(in("*,2,1,3"), "3-3 1-1 2-2 0-0 ");
  EXPECT_TRUE(in("1,0,0,0").contains("Index 1 is not in a dimension of 1"));
  EXPECT_TRUE(in("0,0,0,0,0").contains("has 4 dimensions"));
  for (const char* text : {"", "a", "1,", ",1", "-1", "1:2", "3-1", "1 2"})
    EXPECT_TRUE(in(text).contains("not a list of indices")) << text << in(text);
}

}  // namespace
}  // namespace tt::test
