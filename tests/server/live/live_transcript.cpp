#include "tests/server/live/live_transcript.h"

#include <gtest/gtest.h>

#include <cmath>
#include <variant>

namespace tt::test {

bool LiveTranscript::ended() const {
  return !states.empty() && states.back() != "queued" && states.back() != "running";
}

bool LiveTranscript::same_rows(const LiveTranscript& other) const {
  return tokens == other.tokens && steps == other.steps && text == other.text && ops == other.ops &&
         routing == other.routing;
}

void LiveTranscript::add(const json& event) {
  const std::string type = event["type"];
  json row = event;
  row.erase("type");
  if (type == "subscribed") {
    number = event["number"];
    at = event["from"];
  } else if (type == "state") {
    states.push_back(event["state"]);
  } else if (type == "progress") {
    progress.push_back(event);
  } else if (type == "loss") {
    lost = event;
  } else if (type == "token" || type == "text") {
    expect_next("token", event["index"]);
    at["token"] = event["index"].get<std::uint32_t>() + 1;
    text += event["text"];
    if (type == "token") tokens.push_back(row);
  } else if (type == "step") {
    expect_next("step", event["step"]);
    steps.push_back(row);
    at["step"] = event["step"].get<std::uint32_t>() + 1;
    at["op"] = at["routing"] = 0;
  }
}

void LiveTranscript::add_frame(std::span<const std::byte> bytes) {
  auto frame = decode_live_frame(bytes);
  ASSERT_TRUE(frame.has_value()) << frame.error();
  std::visit([this](const auto& of) { add(of); }, *frame);
}

void LiveTranscript::expect_next(const char* place, std::uint32_t index) {
  if (!gaps_allowed) {
    EXPECT_EQ(at[place], index) << place;
  }
}

void LiveTranscript::advance_to(std::uint32_t step) {
  if (at["step"] == step) return;
  EXPECT_GT(step, at["step"].get<std::uint32_t>());
  at["step"] = step;
  at["op"] = at["routing"] = 0;
}

void LiveTranscript::add(const OpsFrame& frame) {
  EXPECT_EQ(frame.subscription, number);
  advance_to(frame.step.v);
  ReceivedOps& whole = ops[frame.step.v];
  // After a complete step only a replacement on a new connection, or an empty frame that
  // repeats the completion.
  EXPECT_TRUE(!whole.complete || frame.withdrawn || (frame.complete && frame.begin.empty()))
      << frame.step.v;
  if (frame.withdrawn) {
    ++withdrawn;
    whole = {};
  }
  ASSERT_EQ(frame.first.v, whole.begin.size()) << "in step " << frame.step.v;
  whole.begin.insert(whole.begin.end(), frame.begin.begin(), frame.begin.end());
  whole.end.insert(whole.end.end(), frame.end.begin(), frame.end.end());
  whole.complete = frame.complete;
  partial_frames += frame.complete ? 0 : 1;
  at["op"] = whole.begin.size();
}

void LiveTranscript::add(const RoutingFrame& frame) {
  EXPECT_EQ(frame.subscription, number);
  advance_to(frame.step.v);
  auto& rows = routing[frame.step.v];
  ASSERT_EQ(frame.first, rows.size()) << "in step " << frame.step.v;
  for (std::size_t i = 0; i < frame.token.size(); ++i) {
    rows.emplace_back(frame.layer.v, frame.token[i], frame.expert[i], frame.rank[i],
                      std::isnan(frame.score[i]) ? -1.0F : frame.score[i]);
  }
  at["routing"] = rows.size();
}

}  // namespace tt::test
