// The text that a client received during generation can be reconstructed from the file.
#include "tracer/text/recorded_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

void expect_reconstructed(const TracedModel::Run& run) {
  const SessionReader reader = run.reader();
  RecordedAnswer answer(*reader.info());
  const auto tokens = *reader.tokens(0, 100'000);
  ASSERT_EQ(tokens.size(), run.captured.pieces.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    EXPECT_EQ(answer.push(tokens[i]), run.captured.pieces[i])
        << "token " << i << ", " << tokens[i].id;
  EXPECT_EQ(answer.rest(), run.captured.rest);
}

TEST(RecordedAnswer, MatchesStreamedTextPerToken) {
  TracedModel traced(kTestPaths.bundled_model);
  GenerationRequest request = greedy_tokens(3, 80);
  request.sampling.temperature = 100;  // all tokens are about equally likely
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.min_p = 0;
  int control_tokens = 0, stops = 0, rests = 0;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    request.sampling.seed = seed;
    request.ignore_eos = seed % 3 == 0;
    request.stop.clear();
    const auto free = traced.run(request);
    expect_reconstructed(free);
    for (std::size_t i = 0; i < free.captured.tokens.size(); ++i) {
      const Token& token = free.captured.tokens[i];
      control_tokens += token.generated && free.captured.pieces[i].empty() && token.text.size() > 3;
    }
    // One stop string that occurs, and one that only begins.
    const std::string& text = free.result.text;
    if (text.size() < 8) continue;
    request.stop = {text.substr(text.size() / 2, 3), "never said"};
    const auto stopped = traced.run(request);
    stops += stopped.result.reason == StopReason::Stop ? 1 : 0;  // not where it cuts a character
    expect_reconstructed(stopped);
    request.stop = {text.substr(text.size() - 3) + "..."};
    const auto held = traced.run(request);
    expect_reconstructed(held);
    rests += held.captured.rest.empty() ? 0 : 1;
  }
  EXPECT_GT(control_tokens, 0);
  EXPECT_GT(stops, 0);
  EXPECT_GT(rests, 0);
  // A generation that ends by itself: the grammar is complete after one word.
  request.sampling.grammar = "root ::= \"yes\"";
  const auto ended = traced.run(request);
  EXPECT_EQ(ended.result.reason, StopReason::Eos);
  EXPECT_EQ(ended.captured.text, "yes");
  expect_reconstructed(ended);
}

TEST(RecordedAnswer, MatchesStreamedTextOfCancelledRequest) {
  TracedModel traced(kTestPaths.bundled_model);
  const auto cancelled = traced.run(greedy_tokens(3, 100), [&](std::uint32_t generated) {
    if (generated == 7) traced.engine().cancel();
  });
  EXPECT_EQ(cancelled.result.reason, StopReason::Cancelled);
  expect_reconstructed(cancelled);
}

TEST(RecordedAnswer, ReadsFilesWithoutStopsAndControlTokens) {
  RecordedAnswer answer(SessionInfo{});
  const auto token = [](const char* text, bool generated) {
    return Token{.index = 0, .id = 2, .position = 0, .generated = generated, .text = text};
  };
  EXPECT_EQ(answer.push(token("asked", false)), "");
  EXPECT_EQ(answer.push(token("said \xE2\x82", true)), "said ");
  EXPECT_EQ(answer.push(token("</s>", true)), "\uFFFD</s>");
  EXPECT_EQ(answer.push(token("\xE2\x82", true)), "");
  EXPECT_EQ(answer.rest(), "\uFFFD");
}

TEST(RecordedAnswer, OfEachRequestIsWithoutRejectedDrafts) {
  std::vector<Token> tokens;
  const auto add = [&](std::uint32_t sequence, const char* text, bool generated,
                       Draft draft = Draft::None) {
    tokens.push_back({.index = static_cast<std::uint32_t>(tokens.size()),
                      .generated = generated,
                      .text = text,
                      .sequence = sequence,
                      .draft = draft});
  };
  add(2, "asked", false);
  tokens.back().position = 7;  // after tokens that the session lacks
  add(1, "asked", false);
  tokens.back().reused = true;
  tokens.back().position = 0;
  add(1, "asked", false);
  tokens.back().position = 1;
  add(2, "One \xE2", true);
  add(1, "Two", true);
  add(2, "\x82", true, Draft::Accepted);
  add(1, " wrong", true, Draft::Rejected);
  add(2, "\xAC", true);
  add(1, " right", true);
  add(1, " open", true, Draft::Unknown);
  add(3, "asked", false);
  SessionInfo info;
  info.facts.emplace_back("request.stop.0", "Two");  // cuts no answer of another program
  const auto answers = recorded_answers(info, tokens);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].sequence, 1U);
  EXPECT_EQ(answers[0].text, "Two right");
  EXPECT_EQ(answers[0].reused, 1U);
  EXPECT_EQ(answers[1].sequence, 2U);
  EXPECT_EQ(answers[1].text, "One \u20AC");
  EXPECT_EQ(answers[1].reused, 7U);
}

// A page of tokens has the texts that the whole answer gives them, wherever it begins.
TEST(RecordedAnswer, TextsOfAPartAreThoseOfTheWhole) {
  SessionInfo info;
  info.facts.emplace_back("request.stop.0", "the end of all things");
  std::vector<Token> tokens;
  for (const std::string piece : {"caf\xC3", "\xA9 ", "the", " end of", " all", " cats ",
                                  "\xF0\x9F", "\x98", "\x80", "!", " the end", "\xE2"})
    for (const std::uint32_t sequence : {0U, 1U})
      tokens.push_back({.index = static_cast<std::uint32_t>(tokens.size()),
                        .generated = true,
                        .text = piece,
                        .sequence = sequence == 0 ? std::nullopt : std::optional(sequence)});
  const std::span all(tokens);
  const std::vector<std::string> whole = answer_texts(info, {}, all, true);
  std::string answer;
  for (std::size_t i = 0; i < all.size(); i += 2) answer += whole[i];
  EXPECT_EQ(answer, "caf\u00E9 the end of all cats \U0001F600! the end\uFFFD");
  EXPECT_EQ(whole[0], "caf");
  EXPECT_EQ(whole[2], "\u00E9 ");
  EXPECT_EQ(whole[4], "");  // may begin the stop string
  for (std::size_t from = 0; from < all.size(); ++from) {
    const auto part = answer_texts(info, all.first(from), all.subspan(from), true);
    EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(from))) << from;
  }
}

TEST(Ranges, RoundTrip) {
  EXPECT_EQ(format_ranges({}), "");
  EXPECT_EQ(format_ranges({0, 1, 2, 7, 9, 10}), "0-2 7 9-10");
  using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;
  EXPECT_EQ(parse_ranges("0-2 7 9-10"), (Pairs{{0, 2}, {7, 7}, {9, 10}}));
  // A file may contain anything.
  EXPECT_EQ(parse_ranges("x, -3 5- 9-7 99999999999 4"), (Pairs{{5, 5}, {4, 4}}));
}

}  // namespace
}  // namespace tt::test
