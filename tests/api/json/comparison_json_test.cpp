// The comparison of two sessions in REST.
#include "api/json/analysis/comparison_json.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/sessions/prompt_steps.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// The RAM that is enough, and what makes the difference.
TEST(ComparisonJson, SaysHowMuchMemoryBothNeed) {
  const SmallSession session(prompt_steps({{30, Timing::Fast}}));
  const auto reader = SessionReader::open(session.path).value();
  const auto index = SessionIndex::build(reader).value();
  const ComparedSession side{.index = index, .reader = reader};
  Comparison comparison = compare(side, side).value();
  EXPECT_FALSE(comparison.left_memory.is_empty());
  const auto text = [&] {
    return to_json(comparison, index.info(), index.info())["change"]["text"].get<std::string>();
  };
  comparison.left_memory = comparison.right_memory = {.file = Bytes{10 << 20},
                                                      .repacked = {},
                                                      .kv = Bytes{4 << 20},
                                                      .recurrent = {},
                                                      .touched_compute = {},
                                                      .compute = Bytes{2 << 20},
                                                      .cache_tokens = 512};
  EXPECT_TRUE(text().ends_with(" Both need 16.0 MiB of RAM.")) << text();
  comparison.right_memory.compute = Bytes{6 << 20};
  EXPECT_TRUE(
      text().ends_with(" The first session needs 16.0 MiB of RAM and the second 20.0 MiB: "
                       "compute buffers 2.00 MiB and 6.00 MiB."))
      << text();
}

// The only sentence about it: tt compare and the page show this one.
TEST(ComparisonJson, SaysWhereTheTextsDiffer) {
  const SmallSession session(prompt_steps({{30, Timing::Fast}}));
  const auto reader = SessionReader::open(session.path).value();
  const auto index = SessionIndex::build(reader).value();
  const ComparedSession side{.index = index, .reader = reader};
  Comparison comparison = compare(side, side).value();
  const auto text = [&](std::uint32_t left, std::uint32_t right, std::uint32_t common) {
    comparison.tokens.left = left;
    comparison.tokens.right = right;
    comparison.tokens.common = common;
    return to_json(comparison, index.info(), index.info())["tokens"]["text"].get<std::string>();
  };
  EXPECT_EQ(text(30, 30, 30), "The same 30 tokens.");
  EXPECT_EQ(text(30, 30, 7), "The first token that differs is token 7.");
  EXPECT_EQ(text(30, 30, 0), "The first token that differs is token 0.");
  EXPECT_EQ(text(30, 40, 30), "No token differs: one session ended after 30 tokens.");
  comparison.causes.push_back({.kind = DifferenceKind::Altered, .facts = {}});
  EXPECT_EQ(text(30, 30, 30), "The change at the breakpoint did not change the text.");
  EXPECT_EQ(text(30, 30, 7), "The first token that differs is token 7.");
}

TEST(ComparisonJson, SaysWhichGraphsOnlyOneSessionHas) {
  const SmallSession session(prompt_steps({{30, Timing::Fast}}));
  const auto reader = SessionReader::open(session.path).value();
  const auto index = SessionIndex::build(reader).value();
  const ComparedSession side{.index = index, .reader = reader};
  Comparison comparison = compare(side, side).value();
  const auto text = [&] {
    return to_json(comparison, index.info(), index.info())["templates_text"].get<std::string>();
  };
  EXPECT_EQ(text(), "Both sessions run the same ops.");
  comparison.templates.push_back({.match = TemplateMatch::OnlyRight});
  EXPECT_EQ(text(),
            "Ops that only one session runs: in 1 graph of the second. A prompt that is evaluated "
            "in other parts, or reused, has other graphs.");
  comparison.templates.push_back({.match = TemplateMatch::OnlyLeft});
  comparison.templates.push_back({.match = TemplateMatch::OnlyLeft});
  comparison.causes.push_back({.kind = DifferenceKind::Model, .facts = {}});
  EXPECT_EQ(text(),
            "Ops that only one session runs: in 2 graphs of the first and 1 graph of the second. "
            "Their models differ.");
}

// What was only measured while graphs were learned has no time, no difference and no ratio.
TEST(ComparisonJson, HasNoDifferenceOfWhatWasNotMeasured) {
  const SmallSession a(prompt_steps({{30, Timing::Learned}})),
      b(prompt_steps({{30, Timing::Learned}, {30, Timing::Fast}}));
  const auto left = SessionReader::open(a.path).value(),
             right = SessionReader::open(b.path).value();
  const auto left_index = SessionIndex::build(left).value(),
             right_index = SessionIndex::build(right).value();
  const auto comparison = compare({.index = left_index, .reader = left},
                                  {.index = right_index, .reader = right}, {.by = Axis::OpKind})
                              .value();
  const Json json = to_json(comparison, left_index.info(), right_index.info());
  const auto expect_none = [](const Json& of) {
    EXPECT_TRUE(of["left"]["time_ns"].is_null()) << of;
    EXPECT_GT(of["right"]["time_ns"].get<double>(), 0) << of;
    EXPECT_TRUE(of["difference"]["time_ns"].is_null()) << of;
    EXPECT_TRUE(of["ratio"]["time_ns"].is_null()) << of;
    EXPECT_EQ(of["difference"]["executions"], 0) << of;
  };
  expect_none(json["total"]);
  ASSERT_FALSE(json["rows"].empty());
  for (const Json& row : json["rows"]) expect_none(row);
  EXPECT_TRUE(json["step_ns"]["prompt"]["left"].is_null());
  EXPECT_EQ(
      json["step_ns"]["prompt"]["left_text"],
      "Times: no prompt step has a time of the model; left out: 1 learned. The recording slows "
      "down the step in which a graph appears first: to know the time, run another prompt "
      "while the model stays loaded.");
  EXPECT_EQ(json["step_ns"]["prompt"]["right"]["steps"], 1);
}

}  // namespace
}  // namespace tt::test
