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
    const auto step = [&](std::string_view text, std::size_t position, bool generated) {
      const std::vector<std::int64_t> ids(text.begin(), text.end());
      const std::vector<TokenRun> runs{{.begin = 0,
                                        .end = ids.size(),
                                        .position = static_cast<std::int32_t>(position),
                                        .generated = generated}};
      history_.add(ids, runs, slot);
    };
    step(prompt.substr(reused), reused, false);
    for (std::size_t i = 0; i < answer.size(); ++i)
      step(answer.substr(i, 1), prompt.size() + i, true);
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
  EXPECT_FALSE(history.add("c", 0, "what then", 4));
  EXPECT_FALSE(history.add("d", 0, "what then", 8)) << "its begin is not known";
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

}  // namespace
}  // namespace tt::attach
