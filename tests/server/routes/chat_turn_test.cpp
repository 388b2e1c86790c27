// The second turn of a chat reuses the KV cache cells of the first one and is a separate
// session that records the reuse.
#include <gtest/gtest.h>

#include <format>
#include <string>

#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

json chat_request(const json& messages) {
  return {{"messages", messages}, {"max_tokens", 12}, {"temperature", 0}, {"seed", 1}};
}

struct Turn {
  json status, session;
};

Turn generate_turn(TestServer& server, const json& body) {
  const std::string id = server.generate(body);
  Turn turn{.status = server.wait_for_end(id), .session = {}};
  EXPECT_EQ(turn.status["state"], "done") << turn.status;
  turn.session = server.get("/api/v1/sessions/" + id).body;
  return turn;
}

// Number of tokens that the prompt steps evaluated.
int evaluated_prompt_tokens(TestServer& server, const Turn& turn) {
  int tokens = 0;
  const std::string id = turn.session["id"];
  for (const json& step : server.get("/api/v1/sessions/" + id + "/steps").body["steps"])
    if (step["phase"] == "prompt") tokens += step["token_count"].get<int>();
  return tokens;
}

TEST(ChatTurn, ReusesKvCacheOfPreviousTurn) {
  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  json messages = {{{"role", "user"}, {"content", "Tell me about the sea."}}};
  const Turn first = generate_turn(server, chat_request(messages));
  EXPECT_EQ(first.session["reused_tokens"], 0);
  EXPECT_TRUE(first.session["reused_from"].is_null());
  EXPECT_EQ(evaluated_prompt_tokens(server, first), first.status["prompt_tokens"]);

  messages.push_back({{"role", "assistant"}, {"content", first.status["text"]}});
  messages.push_back({{"role", "user"}, {"content", "And the sky?"}});
  const Turn second = generate_turn(server, chat_request(messages));
  const int reused = second.status["reused_tokens"];
  // At least the whole first prompt; the reply may be tokenized differently.
  EXPECT_GE(reused, first.status["prompt_tokens"].get<int>() - 1);
  EXPECT_GT(reused, 0);
  EXPECT_NE(second.session["id"], first.session["id"]);
  EXPECT_EQ(second.session["reused_tokens"], reused);
  EXPECT_EQ(second.session["reused_from"], first.session["id"]);
  EXPECT_EQ(second.session["facts"]["result.reused_tokens"].get<std::string>(),
            std::to_string(reused));
  EXPECT_EQ(second.session["facts"]["result.reused_from"], first.session["id"]);
  EXPECT_EQ(evaluated_prompt_tokens(server, second),
            second.status["prompt_tokens"].get<int>() - reused);
  int marked = 0;
  const std::string id = second.session["id"];
  for (const json& token : server.get("/api/v1/sessions/" + id + "/tokens").body["tokens"])
    marked += token["reused"] ? 1 : 0;
  EXPECT_EQ(marked, reused);

  // The command line says so, too.
  const auto tt = [&](const std::string& verb, const char* options = "") {
    const auto file = [&](const Turn& turn) {
      return (server.data / (turn.session["id"].get<std::string>() + ".ttrace")).string();
    };
    const std::string files = verb == "compare" ? file(first) + " " + file(second) : file(second);
    return command_output(std::format("{} {} {} {}", kTestPaths.tt, verb, files, options));
  };
  const std::string of =
      std::format("{} of {} prompt tokens", reused, second.status["prompt_tokens"].get<int>());
  const std::string shown = tt("show");
  EXPECT_TRUE(shown.contains(std::format("reused     {}, from session {}: they were not evaluated",
                                         of, first.session["id"].get<std::string>())))
      << shown;
  const std::string compared = tt("compare");
  EXPECT_TRUE(compared.contains("reused")) << compared;
  EXPECT_TRUE(tt("report", "--format md").contains("prompt tokens were reused from session"));

  // Without reuse the same turn generates the same text.
  json anew = chat_request(messages);
  anew["reuse_prefix"] = false;
  const Turn third = generate_turn(server, anew);
  EXPECT_EQ(third.session["reused_tokens"], 0);
  EXPECT_TRUE(third.session["reused_from"].is_null());
  EXPECT_EQ(third.status["text"], second.status["text"]);
  EXPECT_EQ(evaluated_prompt_tokens(server, third), third.status["prompt_tokens"]);

  // Cells of an unrecorded request are reused; reused_from is null.
  json unrecorded = chat_request(messages);
  unrecorded["level"] = "off";
  server.wait_for_end(server.generate(unrecorded));
  const Turn fifth = generate_turn(server, chat_request(messages));
  EXPECT_GT(fifth.session["reused_tokens"], 0);
  EXPECT_TRUE(fifth.session["reused_from"].is_null());
}

}  // namespace
}  // namespace tt::test
