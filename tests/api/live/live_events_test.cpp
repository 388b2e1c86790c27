#include "api/live/live_events.h"

#include <gtest/gtest.h>

#include <string>

namespace tt {
namespace {

LiveCommand parsed(const char* text) {
  const auto command = parse_live_command(text);
  EXPECT_TRUE(command.has_value()) << text << ": " << command.error();
  return command.value_or(LiveCommand{});
}

TEST(LiveCommand, ParsesCommands) {
  EXPECT_EQ(parsed(R"({"type":"subscribe","session":"a-1","kinds":["token","op","token"]})"),
            (LiveCommand{Subscribe{.session = "a-1", .kinds = {.token = true, .op = true}}}));
  EXPECT_EQ(parsed(R"({"type":"subscribe","session":"*","kinds":["step","routing","progress"],)"
                   R"("thin":"latest","from":{"token":4294967295,"step":2,"op":3,"routing":4}})"),
            (LiveCommand{Subscribe{
                .session = "*",
                .kinds = {.step = true, .routing = true, .progress = true},
                .from = LivePosition{.token = 4294967295, .step = 2, .op = 3, .routing = 4},
                .thin = Thin::Latest}}));
  EXPECT_EQ(parsed(R"({"type":"subscribe","session":"a","kinds":[],"from":{},"thin":"none"})"),
            (LiveCommand{Subscribe{.session = "a", .kinds = {}, .from = LivePosition{}}}));
  EXPECT_EQ(parsed(R"({"type":"unsubscribe","session":"*"})"), (LiveCommand{Unsubscribe{"*"}}));
  EXPECT_EQ(parsed(R"({"type":"ack","bytes":131072})"), (LiveCommand{Acknowledge{131072}}));
  EXPECT_EQ(parsed(R"({"type":"debug","session":"a"})"),
            (LiveCommand{DebugSession{.session = "a", .command = {}}}));
  EXPECT_EQ(parsed(R"({"type":"debug","session":"a","command":{"until":"op","count":20}})"),
            (LiveCommand{DebugSession{.session = "a",
                                      .command = ResumeRun{.until = RunUntil::Op, .count = 20}}}));
}

// The commands are those of REST, with the same messages.
TEST(LiveCommand, RejectsInvalidDebugCommands) {
  for (const std::string command : {R"({})", R"({"until":"now"})", R"({"break":1})",
                                    R"({"delete":0})", R"({"stop":true,"break":"x"})"}) {
    const auto live =
        parse_live_command(R"({"type":"debug","session":"a","command":)" + command + "}");
    ASSERT_FALSE(live.has_value()) << command;
    EXPECT_EQ(live.error(), parse_debug_command(command).error().detail);
  }
  EXPECT_FALSE(parse_live_command(R"({"type":"debug","session":"a","command":7})").has_value());
  EXPECT_FALSE(parse_live_command(R"({"type":"debug","session":"a","until":"op"})").has_value());
  EXPECT_FALSE(parse_live_command(R"({"type":"debug","command":{"stop":true}})").has_value());
}

TEST(LiveCommand, RejectsInvalidCommands) {
  for (const char* text :
       {"",
        "{",
        "7",
        "[]",
        "{}",
        R"({"type":7})",
        R"({"type":"shout"})",
        R"({"type":"subscribe"})",
        R"({"type":"subscribe","session":"a"})",
        R"({"type":"subscribe","session":1,"kinds":[]})",
        R"({"type":"subscribe","session":"a","kinds":"op"})",
        R"({"type":"subscribe","session":"a","kinds":["ops"]})",
        R"({"type":"subscribe","session":"a","kinds":[1]})",
        R"({"type":"subscribe","session":"a","kinds":[],"rate":1})",
        R"({"type":"subscribe","session":"a","kinds":[],"thin":"some"})",
        R"({"type":"subscribe","session":"a","kinds":[],"thin":null})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":7})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":null})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":{"token":-1}})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":{"token":1.5}})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":{"token":4294967296}})",
        R"({"type":"subscribe","session":"a","kinds":[],"from":{"ops":1}})",
        R"({"type":"ack"})",
        R"({"type":"ack","bytes":-1})",
        R"({"type":"ack","bytes":1.5})",
        R"({"type":"ack","bytes":"1"})",
        R"({"type":"ack","bytes":1,"session":"a"})",
        R"({"type":"unsubscribe","session":"a","kinds":[]})"}) {
    SCOPED_TRACE(text);
    const auto command = parse_live_command(text);
    ASSERT_FALSE(command.has_value());
    EXPECT_NE(command.error().find("subscribe"), std::string::npos);
  }
}

TEST(LiveEvents, MatchProtocol) {
  JobStatus running;
  running.id = "s";
  running.state = JobState::Running;
  running.prompt_tokens = 5;
  running.prompt_done = 2;
  running.generated = 1;
  running.max_tokens = 9;
  const Token token{.index = 6, .id = 42, .position = 6, .generated = true, .text = "raw"};
  EXPECT_EQ(hello_event(524288),
            R"({"type":"hello","protocol":3,"server":"tensor-trace )" TT_VERSION
            R"(","window":524288})");
  EXPECT_EQ(subscribed_event({.session = "s",
                              .kinds = {.token = true, .step = true},
                              .from = LivePosition{.token = 1, .step = 2, .op = 3, .routing = 4}},
                             3),
            R"({"type":"subscribed","session":"s","number":3,"kinds":["token","step"],)"
            R"("thin":"none","from":{"token":1,"step":2,"op":3,"routing":4}})");
  EXPECT_EQ(
      subscribed_event({.session = "*", .kinds = {.routing = true}, .thin = Thin::Latest}, 0),
      R"({"type":"subscribed","session":"*","number":0,"kinds":["routing"],"thin":"latest"})");
  EXPECT_EQ(error_event("too_fast", "", "why"),
            R"({"type":"error","code":"too_fast","detail":"why"})");
  EXPECT_EQ(error_event("not_live", "s", "why"),
            R"({"type":"error","code":"not_live","session":"s","detail":"why"})");
  EXPECT_EQ(state_event("s", {.state = "recovered", .error = "killed"}),
            R"({"type":"state","session":"s","state":"recovered","position":0,"error":"killed"})");
  EXPECT_EQ(state_event(running),
            R"({"type":"state","session":"s","state":"running","position":0,"error":null})");
  EXPECT_EQ(progress_event(running),
            R"({"type":"progress","session":"s","prompt_done":2,"prompt_tokens":5,)"
            R"("generated":1,"max_tokens":9})");
  EXPECT_EQ(token_event("s", token, "é"),
            R"({"type":"token","session":"s","index":6,"id":42,"position":6,"generated":true,)"
            R"("reused":false,"sequence":null,"draft":null,"text":"é"})");
  EXPECT_EQ(text_event("s", 7, "rest"), R"({"type":"text","session":"s","index":7,"text":"rest"})");
  EXPECT_EQ(loss_event("s", {.tokens = 1, .steps = 2, .ops = 3, .routing = 4}),
            R"({"type":"loss","session":"s","tokens":1,"steps":2,"ops":3,"routing":4})");
  EXPECT_EQ(sessions_loss_event(5), R"({"type":"loss","session":"*","sessions":5})");
}

}  // namespace
}  // namespace tt
