// A request that a client stops, looks at, changes and lets go on, and what others are told of it.
// webui/test/contract checks the fields of the routes.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/server/live/live_client.h"
#include "tests/server/support/test_server.h"
#include "tests/support/models/backends.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

constexpr const char* kPrompt = "Once upon a time";

json request(const json& more) {
  json body = {{"prompt", kPrompt},
               {"max_tokens", 3},
               {"ignore_eos", true},
               {"temperature", 0},
               {"reuse_prefix", false}};
  body.update(more);
  return body;
}

class DebugRoutes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ensure_backends_loaded(); }
  void SetUp() override { ASSERT_TRUE(server_.wait_until_loaded()); }
  std::string debug_path(const std::string& id) { return "/api/v1/generate/" + id + "/debug"; }
  // The next stop after number `seen`; null: the request has ended.
  json next_stop(const std::string& id, int seen) {
    json stop;
    EXPECT_TRUE(wait_until([&] {
      const TestResponse state = server_.get(debug_path(id));
      if (state.status == 404) return true;
      stop = state.body["stop"];
      return !stop.is_null() && stop["number"] > seen;
    }));
    return stop;
  }
  TestServer server_;
};

TEST_F(DebugRoutes, AStoppedRequestIsReadChangedAndGoesOn) {
  // The values that a plain recording has.
  const std::string plain =
      server_.generate(request({{"capture", {"^l_out@L1@S0"}}, {"level", "detailed"}}));
  const std::string answer = server_.wait_for_end(plain)["text"];
  std::vector<float> recorded;
  ASSERT_TRUE(server_.sessions.open(plain)->for_each_values(StepId{0}, 1, [&](const auto& of) {
    recorded = of.outputs.at(0).values;
    return true;
  }));

  LiveClient live(server_.port);
  live.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", json::array()}});
  const std::string id = server_.generate(request({{"breakpoints", {"^l_out layer 1 step 0"}}}));
  const json stop = next_stop(id, 0);
  EXPECT_EQ(stop["breakpoints"], json::array({1}));
  EXPECT_EQ(stop["place"]["layer_id"], 1);
  const std::string place = server_.state_of(id)["stopped"];
  EXPECT_TRUE(place.starts_with("step 0, op ") && place.ends_with(", layer 1: ADD l_out-1"))
      << place;
  const json values = server_.get(debug_path(id) + "/values").body;
  EXPECT_EQ(values["values"].get<std::vector<float>>(), recorded);
  // Of this stop, not of another one.
  const std::uint64_t number = stop["number"];
  const std::string of_stop = debug_path(id) + "/values?stop=";
  EXPECT_EQ(server_.get(of_stop + std::to_string(number)).body, values);
  EXPECT_EQ(server_.get(of_stop + std::to_string(number + 1)).status, 409);
  const json first = server_.get(debug_path(id) + "/values?limit=3").body;
  EXPECT_EQ(first["values"].get<std::vector<float>>(),
            std::vector<float>(recorded.begin(), recorded.begin() + 3));
  EXPECT_EQ(first["statistics"], values["statistics"]) << "of all elements";
  double squares = 0;
  for (const float value : recorded) squares += double{value} * double{value};
  EXPECT_NEAR(values["statistics"]["norm"].get<double>(), std::sqrt(squares),
              1e-5 * std::sqrt(squares));

  // The live protocol tells another client the place of the stop, and null when the request goes
  // on.
  const auto told = [&](const json& expected) {
    for (;;) {
      const json event = live.read_event();
      if (event["type"] == "state" && event["session"] == id && event.contains("stopped"))
        return event["stopped"] == expected;
    }
  };
  EXPECT_TRUE(told(place));

  // A request behind it is told, too.
  const std::string behind = server_.generate(request({{"max_tokens", 1}}));
  EXPECT_EQ(server_.state_of(behind)["stopped_ahead"], place);
  EXPECT_EQ(server_.state_of(behind)["stopped"], nullptr);
  EXPECT_EQ(server_.state_of(id)["stopped_ahead"], nullptr);
  for (json event; event["session"] != behind; event = live.read_event())
    if (event["type"] == "state" && event["session"] == behind) {
      EXPECT_EQ(event["stopped_ahead"], place);
    }

  const TestResponse changed = server_.post(debug_path(id), R"({"change": "scale -2"})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.body["changes"][0]["elements"], recorded.size());
  const json after = server_.get(debug_path(id) + "/values?indices=0,0").body;
  EXPECT_EQ(after["values"][0].get<float>(), recorded[0] * -2);
  EXPECT_EQ(server_.post(debug_path(id), R"({"until": "breakpoint"})").status, 200);
  EXPECT_TRUE(told(nullptr));
  const json end = server_.wait_for_end(id);
  EXPECT_EQ(end["state"], "done");
  EXPECT_EQ(end["stopped"], nullptr);
  EXPECT_NE(end["text"], answer);
  const std::string altered(server_.sessions.open(id)->info()->fact("altered.0"));
  EXPECT_TRUE(
      altered.ends_with("l_out-1: scale -2 (" + std::to_string(recorded.size()) + " elements)"))
      << altered;
  EXPECT_EQ(server_.get(debug_path(id)).status, 404) << "it has ended";
  EXPECT_EQ(server_.get(debug_path(plain)).status, 404);
}

// Two clients of the live protocol: one stops, steps and sets breakpoints, the other is told, and
// may do the same. What they get is what the REST route answers.
TEST_F(DebugRoutes, TheLiveProtocolHasTheCommandsOfRest) {
  LiveClient first(server_.port), second(server_.port);
  second.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", json::array()}});
  const std::string id = server_.generate(request({{"stop_at_first_op", true}}));
  const json begin = next_stop(id, 0);
  const auto answer = [](LiveClient& client, const std::string& type) {
    for (;;) {
      json event = client.read_event();
      if (event.is_null() || event["type"] == type || event["type"] == "error") return event;
    }
  };
  // Without "command": the state.
  const auto ask = [&](LiveClient& client, const json& command) {
    json message = {{"type", "debug"}, {"session", id}};
    if (!command.is_null()) message["command"] = command;
    client.send_command(message);
    json event = answer(client, "debug");
    EXPECT_EQ(event["session"], id);
    return event;
  };
  const auto without_times = [](json state) {
    state.erase("time_left_ms");
    return state;
  };
  const auto rest_state = [&] {
    return server_.get(debug_path(id) + "?watched_from=9007199254740991").body;
  };
  // Only the newest state is sent: a stop that has ended at once may not be told.
  const auto wait_until_told = [&](const json& stopped) {
    for (;;) {
      const json event = second.read_event();
      if (event.is_null()) return;  // the connection was closed
      if (event["type"] == "state" && event["session"] == id && event.contains("stopped") &&
          event["stopped"] == stopped)
        return;
    }
  };
  wait_until_told(server_.state_of(id)["stopped"]);
  const json state = ask(first, nullptr)["state"];
  EXPECT_EQ(state["stop"], begin);
  EXPECT_EQ(without_times(state), without_times(rest_state()));

  // Set, and as the other client sees it.
  const json set = ask(first, {{"break", "^l_out layer 1"}})["state"];
  EXPECT_EQ(set["breakpoints"][0]["text"], "^l_out layer 1");
  EXPECT_EQ(ask(second, nullptr)["state"]["breakpoints"], set["breakpoints"]);
  // Step: exactly so many ops.
  EXPECT_TRUE(ask(first, {{"until", "op"}, {"count", 5}}).contains("state"));
  const json later = next_stop(id, begin["number"]);
  EXPECT_EQ(later["place"]["op"].get<int>(),
            begin["place"]["op"].get<int>() + (begin["before"] == later["before"] ? 5 : 4));
  wait_until_told(server_.state_of(id)["stopped"]);
  // Continue, to the breakpoint; the other client removes it.
  ask(first, {{"until", "breakpoint"}});
  const json at = next_stop(id, later["number"]);
  EXPECT_EQ(at["place"]["tensor_name"], "l_out-1");
  wait_until_told(server_.state_of(id)["stopped"]);
  EXPECT_EQ(ask(second, {{"delete", 1}})["state"]["breakpoints"], json::array());
  const json changed = ask(second, {{"change", "scale 2"}})["state"]["changes"];
  EXPECT_EQ(changed[0]["place"], at["place"]);

  // The errors are those of REST.
  const auto expect_error = [&](const std::string& of, const json& command) {
    first.send_command({{"type", "debug"}, {"session", of}, {"command", command}});
    const json event = answer(first, "error");
    const json problem = server_.post(debug_path(of), command.dump()).body;
    EXPECT_EQ(event["code"], problem["code"]) << event;
    EXPECT_EQ(event["detail"], problem["detail"]);
  };
  expect_error(id, {{"delete", 1}});
  expect_error(id, {{"break", "layer x"}});
  expect_error("none", {{"stop", true}});
  ask(second, {{"until", "breakpoint"}});
  wait_until_told(nullptr);
  EXPECT_EQ(server_.wait_for_end(id)["state"], "done");
  expect_error(id, {{"until", "op"}});
}

TEST_F(DebugRoutes, AChangeIsKeptForAllTokensUntilItIsReleased) {
  const std::string id = server_.generate(request({{"breakpoints", {"^l_out layer 1"}}}));
  next_stop(id, 0);
  const json first = server_.post(debug_path(id), R"({"change": "scale -2", "keep": true})").body;
  EXPECT_EQ(first["changes"][0]["kept"], 1);
  EXPECT_EQ(first["kept"][0]["text"], "scale -2");
  const std::uint64_t number = first["stop"]["number"];
  ASSERT_EQ(server_.post(debug_path(id), R"({"until": "breakpoint"})").status, 200);
  next_stop(id, static_cast<int>(number));
  const json second = server_.get(debug_path(id)).body;
  EXPECT_EQ(second["kept"][0]["steps"], 2);
  EXPECT_EQ(second["kept"][0]["problem"], nullptr);
  EXPECT_EQ(second["changes"].size(), 2U) << "the prompt has more elements";
  EXPECT_EQ(server_.post(debug_path(id), R"({"release": 1})").body["kept"], json::array());
  EXPECT_EQ(server_.post(debug_path(id), R"({"release": 1})").status, 400);
  EXPECT_EQ(server_.post(debug_path(id), R"({"change": "scale 2", "keep": 1})").status, 400);
  EXPECT_EQ(server_.post(debug_path(id), R"({"keep": true})").status, 400);
  ASSERT_EQ(server_.post(debug_path(id), R"({"delete": 1})").status, 200);
  ASSERT_EQ(server_.post(debug_path(id), R"({"until": "breakpoint"})").status, 200);
  EXPECT_EQ(server_.wait_for_end(id)["state"], "done");
  const auto info = server_.sessions.open(id)->info();
  EXPECT_FALSE(info->fact("altered.1").empty());
  EXPECT_TRUE(info->fact("altered.2").empty());
}

TEST_F(DebugRoutes, StopsEndByCancellationAndByTheirLimit) {
  const std::string cancelled = server_.generate(request({{"stop_at_first_op", true}}));
  EXPECT_TRUE(next_stop(cancelled, 0)["before"]);
  EXPECT_EQ(server_.del("/api/v1/generate/" + cancelled).status, 202);
  EXPECT_EQ(server_.wait_for_end(cancelled)["state"], "cancelled");
  const std::string left = server_.generate(request({{"breakpoints", {"l_out"}}, {"hold_ms", 20}}));
  EXPECT_EQ(server_.wait_for_end(left)["state"], "done") << "each l_out would stop it";
}

TEST_F(DebugRoutes, WatchedOutputsAreReadInPages) {
  const std::string id =
      server_.generate(request({{"stop_at_first_op", true}, {"breakpoints", {"watch ^l_out"}}}));
  next_stop(id, 0);
  ASSERT_EQ(server_.post(debug_path(id), R"({"until": "step", "count": 2})").status, 200);
  next_stop(id, 1);
  const json all = server_.get(debug_path(id)).body;
  const auto rows = all["watched"].size();
  ASSERT_GT(rows, 2U);
  const json rest = server_.get(debug_path(id) + "?watched_from=1").body;
  EXPECT_EQ(rest["watched"].size(), rows - 1);
  EXPECT_EQ(rest["watched_from"], 1);
  EXPECT_EQ(rest["watched"][0], all["watched"][1]);
  server_.del("/api/v1/generate/" + id);
  server_.wait_for_end(id);
}

TEST_F(DebugRoutes, AnInvalidBreakpointIsRejected) {
  const TestResponse answer =
      server_.post("/api/v1/generate", request({{"breakpoints", {"layer x"}}}).dump());
  EXPECT_EQ(answer.status, 422);
  EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("is not a range")) << answer.body;
}

}  // namespace
}  // namespace tt::test
