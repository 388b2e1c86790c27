// Patterns from clients: the tensors that they match, and bounds on their cost.
#include "tracer/probe/name_pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/fair_clock.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(NamePattern, MatchesStdRegex) {
  const char* patterns[] = {"",
                            "ffn_out",
                            "^(ffn_out|ffn_norm|l_out|norm|result_output)(-[0-9]+)?$",
                            "l_out-1$",
                            "-1{1,2}$",
                            "(a|ab)(c|bcd)?$",
                            "ffn_(moe|out)",
                            "^[^-]*$",
                            "\\bview\\b",
                            "\\(view\\)$",
                            "o+?u",
                            "(o|ou|out)*-",
                            "(x?)*y",
                            "[[:digit:]]{2}",
                            ".{17,}",
                            "\\d\\D\\w\\W"};
  const char* names[] = {"",      "ffn_out-1", "ffn_out-11", "ffn_moe_out-1 (view)", "norm",
                         "l_out", "l_out-1",   "abcd",       "result_output",        "node_24"};
  for (const char* pattern : patterns) {
    const auto ours = NamePattern::compile(pattern);
    ASSERT_TRUE(ours.has_value()) << ours.error();
    const std::regex theirs(pattern);
    for (const char* name : names) {
      EXPECT_EQ(ours->matches_name(name), std::regex_search(name, theirs))
          << pattern << " in " << name;
    }
  }
}

TEST(NamePattern, ReportsUnsupportedSyntax) {
  struct Case {
    std::string pattern;
    const char* says;
  };
  const Case cases[] = {
      {"(unclosed", "is not a valid regular expression"},
      {std::string(1001, 'a'), "has 1001 bytes; the maximum is 1000"},
      {"(a)\\1", "contains a back reference"},
      {"(?=.*(?=.*(?=.*!)))", "contains a lookahead"},
      {"(?!x)", "contains a lookahead"},
      {"a{1001}", "the maximum is 1000 bytes with all {n} expanded"},
      {"((a{10}){10}){10}", "the maximum is 1000 bytes with all {n} expanded"},
      {"a{5,}" + std::string(300, 'b'), "the maximum is 1000 bytes with all {n} expanded"},
      {"a{99999999999999999999999}", "the maximum is 1000 bytes with all {n} expanded"},
      {"a{2,99999999999}{", "the maximum is 1000 bytes with all {n} expanded"},
      {"a{", "is not a valid regular expression"},
      {"a{3", "is not a valid regular expression"},
  };
  for (const Case& c : cases) {
    const auto pattern = NamePattern::compile(c.pattern);
    ASSERT_FALSE(pattern.has_value()) << c.pattern;
    EXPECT_TRUE(pattern.error().contains(c.says)) << pattern.error();
  }
}

// Patterns with exponential run time in a backtracking implementation.
TEST(NamePattern, EveryPatternTerminatesQuickly) {
  const std::string name(63, 'a');  // the maximum length of a name
  const std::string patterns[] = {
      "(.*)*!",
      "(a|a)*!",
      "(a*)*(a*)*(a*)*(a*)*!",
      times(9, "(") + "a" + times(9, "*)*") + "!",
      times(499, "a?") + "!",
      times(330, "(a)*").substr(0, 996) + "!",
      times(300, ".*") + "!",
      times(111, "(.|a)?*") + "!",
      "((.?){8}){8}!",
      "(.*a){70}!",
      "([a-z]{1,7}){1,7}!",
  };
  for (const std::string& text : patterns) {
    const auto begin = FairClock::now();
    const auto pattern = NamePattern::compile(text);
    ASSERT_TRUE(pattern.has_value()) << text << " " << pattern.error();
    EXPECT_FALSE(pattern->matches_name(name));
    const auto took = FairClock::now() - begin;
    EXPECT_LT(took, 2s) << text;
    std::printf("%7.1f ms %s\n", std::chrono::duration<double, std::milli>(took).count(),
                text.substr(0, 60).c_str());
  }
}

// On the inference thread, for graphs that are learned and for known ones.
TEST(NamePattern, DoesNotDelayRequests) {
  TracedModel traced(generated_model({.shape = "gpt-oss-like"}));
  GenerationRequest request = greedy_tokens(20, 3);
  request.level = Level::Verbose;
  request.stats_pattern = "(.*)*!";
  ASSERT_TRUE(traced.engine().check(request).has_value());
  for (int i = 0; i < 2; ++i) {
    const auto begin = FairClock::now();
    EXPECT_EQ(traced.run(request).result.reason, StopReason::Length);
    EXPECT_LT(FairClock::now() - begin, 20s);
  }
  request.stats_pattern = "(a)\\1";
  const auto run = traced.run(request);
  EXPECT_EQ(run.result.reason, StopReason::Error);
  EXPECT_EQ(run.result.error, traced.engine().check(request).error().message);
}

}  // namespace
}  // namespace tt::test
