#include "api/live_events.h"

#include <gtest/gtest.h>

#include <string>

namespace tt {
namespace {

TEST(LiveCommand, SubscribesAndUnsubscribes) {
  const auto subscribe =
      parse_live_command(R"({"type":"subscribe","session":"a-1","kinds":["token","op","token"]})");
  ASSERT_TRUE(subscribe.has_value());
  EXPECT_EQ(*subscribe, (LiveCommand{.type = LiveCommand::Type::Subscribe,
                                     .session = "a-1",
                                     .kinds = {.token = true, .op = true}}));
  const auto unsubscribe = parse_live_command(R"({"type":"unsubscribe","session":"*"})");
  ASSERT_TRUE(unsubscribe.has_value());
  EXPECT_EQ(unsubscribe->session, "*");
}

TEST(LiveCommand, RefusesWhatItIsNot) {
  for (const char* text :
       {"", "{", "7", "[]", "{}", R"({"type":7})", R"({"type":"shout"})", R"({"type":"subscribe"})",
        R"({"type":"subscribe","session":"a"})", R"({"type":"subscribe","session":1,"kinds":[]})",
        R"({"type":"subscribe","session":"a","kinds":"op"})",
        R"({"type":"subscribe","session":"a","kinds":["ops"]})",
        R"({"type":"subscribe","session":"a","kinds":[1]})",
        R"({"type":"subscribe","session":"a","kinds":[],"rate":1})",
        R"({"type":"unsubscribe","session":"a","kinds":[]})"}) {
    SCOPED_TRACE(text);
    const auto command = parse_live_command(text);
    ASSERT_FALSE(command.has_value());
    EXPECT_NE(command.error().find("subscribe"), std::string::npos);
  }
}

TEST(LiveEvents, AreTheWordsOfTheProtocol) {
  JobStatus running;
  running.id = "s";
  running.state = JobState::Running;
  running.prompt_tokens = 5;
  running.prompt_done = 2;
  running.generated = 1;
  running.max_tokens = 9;
  const Token token{.index = 6, .id = 42, .position = 6, .generated = true, .text = "raw"};
  EXPECT_EQ(hello_event(),
            R"({"type":"hello","protocol":1,"server":"tensor-trace )" TT_VERSION R"("})");
  EXPECT_EQ(subscribed_event("s", {.token = true, .step = true}, 3),
            R"({"type":"subscribed","session":"s","kinds":["token","step"],"number":3})");
  EXPECT_EQ(error_event("not_live", "why"), R"({"type":"error","code":"not_live","detail":"why"})");
  EXPECT_EQ(state_event(running),
            R"({"type":"state","session":"s","state":"running","position":0,"error":null})");
  EXPECT_EQ(progress_event(running),
            R"({"type":"progress","session":"s","prompt_done":2,"prompt_tokens":5,)"
            R"("generated":1,"max_tokens":9})");
  EXPECT_EQ(token_event("s", token, "é"),
            R"({"type":"token","session":"s","index":6,"id":42,"position":6,"generated":true,)"
            R"("reused":false,"text":"é"})");
  EXPECT_EQ(text_event("s", "rest"), R"({"type":"text","session":"s","text":"rest"})");
  EXPECT_EQ(loss_event("s", 12), R"({"type":"loss","session":"s","frames":12})");
}

}  // namespace
}  // namespace tt
