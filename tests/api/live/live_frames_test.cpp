#include "api/live/live_frames.h"
#include "tests/support/test_paths.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace tt {
namespace {

nlohmann::json vectors(const std::string& name) {
  std::ifstream file(source_path("tests/data/" + name));
  return nlohmann::json::parse(file)["frames"];
}
nlohmann::json ops_vectors() { return vectors("live_ops_frame.json"); }
nlohmann::json routing_vectors() { return vectors("live_routing_frame.json"); }

std::vector<std::byte> bytes_of(const nlohmann::json& lines) {
  std::string digits;
  for (const auto& line : lines)
    for (const char c : line.get<std::string>())
      if (c != ' ') digits += c;
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return out;
}

OpsFrame ops_frame_of(const nlohmann::json& json) {
  OpsFrame frame{.subscription = json["subscription"],
                 .step = StepId{json["step"]},
                 .first = OpId{json["first_op"]},
                 .complete = json["complete"],
                 .withdrawn = json["withdrawn"],
                 .begin = {},
                 .end = {}};
  for (const auto& ns : json["begin_ns"]) frame.begin.push_back(Ns{ns});
  for (const auto& ns : json["end_ns"]) frame.end.push_back(Ns{ns});
  return frame;
}

RoutingFrame routing_frame_of(const nlohmann::json& json) {
  return {.subscription = json["subscription"],
          .step = StepId{json["step"]},
          .first = json["first"],
          .complete = json["complete"],
          .layer = LayerId{json["layer"]},
          .token = json["token"],
          .expert = json["expert"],
          .rank = json["rank"],
          .score = json["score"]};
}

template <class Frame>
void expect_round_trip(const Frame& frame, const std::vector<std::byte>& bytes) {
  EXPECT_EQ(encode(frame), bytes);
  EXPECT_EQ(bytes.size() % 8, 0u);
  const auto decoded = decode_live_frame(bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(std::get<Frame>(*decoded), frame);
}

TEST(LiveFrames, MatchWebUiTestVectors) {
  ASSERT_EQ(ops_vectors().size(), 3u);
  ASSERT_EQ(routing_vectors().size(), 3u);
  for (const auto& vector : ops_vectors()) {
    SCOPED_TRACE(vector["name"]);
    expect_round_trip(ops_frame_of(vector), bytes_of(vector["hex"]));
  }
  for (const auto& vector : routing_vectors()) {
    SCOPED_TRACE(vector["name"]);
    expect_round_trip(routing_frame_of(vector), bytes_of(vector["hex"]));
  }
}

TEST(LiveFrames, RoundTrip) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    OpsFrame frame{.subscription = static_cast<std::uint32_t>(dice()),
                   .step = StepId{static_cast<std::uint32_t>(dice())},
                   .first = OpId{static_cast<std::uint32_t>(dice() % 5000)},
                   .complete = dice() % 2 == 0,
                   .withdrawn = dice() % 2 == 0,
                   .begin = {},
                   .end = {}};
    const std::size_t rows = dice() % 50;
    for (std::size_t i = 0; i < rows; ++i) {
      // Times up to 104 days (2^53 ns) are exact in a double.
      frame.begin.push_back(Ns{static_cast<std::int64_t>(dice()) << 20});
      frame.end.push_back(Ns{static_cast<std::int64_t>(dice()) << 21});
    }
    expect_round_trip(frame, encode(frame));
    RoutingFrame routing{.subscription = frame.subscription,
                         .step = frame.step,
                         .first = static_cast<std::uint32_t>(dice()),
                         .complete = frame.complete,
                         .layer = LayerId{static_cast<std::int32_t>(dice() % 100) - 1},
                         .token = {},
                         .expert = {},
                         .rank = {},
                         .score = {}};
    for (std::size_t i = 0; i < rows; ++i) {
      routing.token.push_back(static_cast<std::uint32_t>(dice()));
      routing.expert.push_back(static_cast<std::uint32_t>(dice() % 256));
      routing.rank.push_back(static_cast<std::uint32_t>(dice() % 8));
      routing.score.push_back(static_cast<float>(dice() % 1000) / 1000.0F);
    }
    expect_round_trip(routing, encode(routing));
  }
}

TEST(LiveFrames, RejectInvalidFrames) {
  const auto good = bytes_of(ops_vectors()[0]["hex"]);
  ASSERT_GT(good.size(), 36u);
  const auto with = [&](std::size_t at, int value) {
    std::vector<std::byte> bytes = good;
    bytes.at(at) = static_cast<std::byte>(value);
    return bytes;
  };
  struct Case {
    const char* name;
    std::vector<std::byte> bytes;
    const char* expected_text;
  };
  const Case cases[] = {
      {"empty", {}, "header"},
      {"half a header", {good.begin(), good.begin() + 16}, "header"},
      {"other magic", with(0, 'X'), "TTF1"},
      {"other kind", with(4, 9), "kind 9"},
      {"one row too many", with(20, 4), "4 rows"},
      {"four billion rows", with(23, 0xff), "rows"},
      {"truncated", {good.begin(), good.end() - 1}, "bytes, expected"},
      {"a skipped op", with(36, 9), "row 1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto decoded = decode_live_frame(c.bytes);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_NE(decoded.error().find(c.expected_text), std::string::npos) << decoded.error();
  }
}

}  // namespace
}  // namespace tt
