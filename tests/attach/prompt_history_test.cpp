// What of a prompt an earlier request had evaluated, where several slots have other texts.
#include "attach/collector/prompt_history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt::attach {
namespace {

// Each character is a token.
class History {
 public:
  // A request whose first `reused` tokens are not evaluated.
  std::optional<PromptHistory::Comparison> add(const std::string& session,
                                               std::optional<std::uint32_t> slot,
                                               std::string_view prompt, std::size_t reused,
                                               std::string_view answer = "xy") {
    begin(1, slot, prompt, reused, answer);
    return end(session);
  }
  // The number of the request in its session. Returns its text as far as it was reused; "": none,
  // or not known.
  std::string begin(std::uint32_t number, std::optional<std::uint32_t> slot,
                    std::string_view prompt, std::size_t reused, std::string_view answer) {
    const auto step = [&](std::string_view text, std::size_t position, bool generated) {
      const std::vector<std::int64_t> ids(text.begin(), text.end());
      std::vector<BatchToken> batch(ids.size());
      for (BatchToken& token : batch) token.in_cache = slot;
      const std::vector<TokenRun> runs{{.begin = 0,
                                        .end = ids.size(),
                                        .position = static_cast<std::int32_t>(position),
                                        .request = number,
                                        .generated = generated}};
      history_.add(ids, batch, runs);
    };
    step(prompt.substr(reused), reused, false);
    const auto known = history_.reused(number);
    const std::string text(known.begin(), known.end());
    for (std::size_t i = 0; i < answer.size(); ++i)
      step(answer.substr(i, 1), prompt.size() + i, true);
    return text;
  }
  void forget() { history_.forget(); }
  std::optional<PromptHistory::Comparison> end(const std::string& session) {
    return history_.end(session, {.text_of =
                                      [](std::span<const std::int32_t> ids) {
                                        return std::string(ids.begin(), ids.end());
                                      },
                                  .is_control = [](std::int32_t) { return false; }});
  }

 private:
  PromptHistory history_;
};

TEST(PromptHistory, ReusedTokensAreThoseOfTheSlot) {
  History history;
  history.add("a", 0, "what is it", 0);
  history.add("b", 1, "tell me more", 0);
  const auto third = history.add("c", 0, "what is it then", 10);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->cached.session, "a");
  EXPECT_EQ(third->reused, 10U);
  EXPECT_EQ(third->cached.common, 10U);
  EXPECT_EQ(third->cached.end, ReuseEnd::OtherToken);
}

// Less than half of what the slot held: it may be what another slot held.
TEST(PromptHistory, ReuseIsUnknownWhereSlotsDiffer) {
  History history;
  history.add("a", 0, "what is it", 0);
  history.add("b", 1, "tell me more", 0);
  for (const std::size_t reused : {4U, 8U}) {  // the begin of the second one is not known either
    const auto next = history.add("c", 0, "what then", reused);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->reused, reused);
    EXPECT_EQ(next->prompt_tokens, 9U);
    EXPECT_EQ(next->cached.session, "") << "what it reused is not known";
  }
  EXPECT_TRUE(history.add("e", 0, "what then", 0)) << "all of it was evaluated";
}

TEST(PromptHistory, ReuseIsKnownWhereAllSlotsBeginAlike) {
  History history;
  history.add("a", 0, "<user>what is it", 0);
  history.add("b", 1, "<user>tell me more", 0);
  const auto third = history.add("c", 0, "<user>tell him", 6);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->cached.session, "b") << "most in common";
  EXPECT_EQ(third->cached.common, 11U);
  EXPECT_EQ(third->cached.end, ReuseEnd::NotKept);
}

// Of a session with several requests, each begins with what its slot held.
TEST(PromptHistory, RequestsOfOneSessionHaveWhatTheirSlotHeld) {
  History history;
  EXPECT_EQ(history.begin(1, 0, "what is it", 0, "xy"), "");
  EXPECT_EQ(history.begin(2, 1, "tell me", 0, "z"), "");
  EXPECT_EQ(history.begin(3, 0, "what is itxy and", 12, "u"), "what is itxy");
  EXPECT_EQ(history.begin(4, 1, "tell him", 5, ""), "tell ");
  EXPECT_EQ(history.begin(5, 1, "teach", 2, ""), "") << "may be of another slot";
  EXPECT_FALSE(history.end("a")) << "several requests";
}

TEST(PromptHistory, RequestThatGoesOnAfterAPauseReusesNothing) {
  History history;
  history.add("a", 0, "what is it", 0);
  history.forget();
  EXPECT_FALSE(history.add("b", 0, "what is it", 9));
  const auto next = history.add("c", 0, "what then", 4);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->reused, 4U);
  EXPECT_EQ(next->cached.session, "");
}

}  // namespace
}  // namespace tt::attach
