// Which steps belong to one request, for batches as those of llama-server.
#include "attach/collector/request_tracker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tt::attach {
namespace {

// "0 1 2* | 7*": runs of positions, an output after each with a star.
std::vector<BatchToken> batch_of(const std::string& text) {
  std::vector<BatchToken> tokens;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*') {
      tokens.back().output = true;
    } else if (text[i] != ' ') {
      std::size_t length = 0;
      tokens.push_back({.position = std::stoi(text.substr(i), &length), .output = false});
      i += length - 1;
    }
  }
  return tokens;
}

// What a step is: "new" if it begins another request after all others are over, and for each run
// "p" or "g" (prompt, generated) with its number of tokens.
std::string add(RequestTracker& tracker, const std::string& text, std::int64_t begin = 0,
                std::int64_t end = 0) {
  const std::vector<BatchToken> batch = batch_of(text);
  std::string out;
  if (tracker.ends_before(tracker.runs_of(batch))) {
    out = "new ";
    tracker.end();
  }
  const auto runs = tracker.runs_of(batch);
  for (const TokenRun& run : runs)
    out += (run.generated ? "g" : "p") + std::to_string(run.end - run.begin);
  tracker.add(batch, runs, begin, end);
  return out;
}

TEST(RequestTracker, PromptInPartsThenTokens) {
  RequestTracker tracker;
  EXPECT_EQ(add(tracker, "0 1 2 3"), "p4");
  EXPECT_EQ(add(tracker, "4 5*"), "p2");
  EXPECT_EQ(add(tracker, "6*"), "g1");
  EXPECT_EQ(add(tracker, "7*"), "g1");
  EXPECT_EQ(tracker.requests(), 1U);
}

TEST(RequestTracker, PromptAfterAnOutputIsAnotherRequest) {
  RequestTracker tracker;
  add(tracker, "0 1*");
  add(tracker, "2*");
  EXPECT_EQ(add(tracker, "3 4 5*"), "new p3") << "a conversation goes on";
  EXPECT_EQ(add(tracker, "6*"), "g1");
  EXPECT_EQ(add(tracker, "5*"), "new p1") << "the same prompt: its last token again";
  EXPECT_EQ(add(tracker, "6*"), "g1");
  EXPECT_EQ(add(tracker, "2 3*"), "new p2") << "a prefix is reused";
  EXPECT_EQ(add(tracker, "0 1 2"), "new p3") << "a prompt that was not finished is left";
  EXPECT_EQ(add(tracker, "0*"), "new p1");
}

TEST(RequestTracker, SlotsAtTheSameTimeAreTogether) {
  RequestTracker tracker;
  add(tracker, "0 1 2*");
  EXPECT_EQ(add(tracker, "3* 0 1 2 3"), "g1p4") << "a second one begins";
  EXPECT_EQ(add(tracker, "4 5 6 7"), "p4") << "the rest of its prompt, in a step of its own";
  EXPECT_EQ(add(tracker, "4* 8*"), "g1p1") << "its last token, the only one with an output";
  EXPECT_EQ(add(tracker, "5* 9*"), "g1g1");
  EXPECT_EQ(add(tracker, "10*"), "g1") << "the first one is over";
  EXPECT_EQ(add(tracker, "11* 12* 0 1*"), "g2p2") << "a draft";
  EXPECT_EQ(tracker.requests(), 3U);
  EXPECT_EQ(add(tracker, "0 1 2*"), "new p3");
}

TEST(RequestTracker, SlotsAtConsecutivePositionsAreApart) {
  RequestTracker tracker;
  add(tracker, "0 1* 0 1 2*");
  EXPECT_EQ(add(tracker, "2* 3*"), "g1g1");
  EXPECT_EQ(add(tracker, "3* 4*"), "g1g1");
  EXPECT_EQ(add(tracker, "4* 5 6 7"), "g1p3") << "a prompt with a reused prefix follows";
  EXPECT_EQ(tracker.requests(), 3U);
}

TEST(RequestTracker, RejectedDraftGoesBack) {
  RequestTracker tracker;
  add(tracker, "0 1*");
  EXPECT_EQ(add(tracker, "2* 3* 4* 5*"), "g4");
  EXPECT_EQ(add(tracker, "3* 4* 5* 6*"), "g4");
  EXPECT_EQ(add(tracker, "7* 8*"), "g2");
  EXPECT_EQ(tracker.requests(), 1U);
  EXPECT_EQ(add(tracker, "7*"), "new p1") << "one token at least is always accepted";
}

TEST(RequestTracker, ShiftedCacheAndImagesGoOn) {
  RequestTracker tracker;
  add(tracker, "0 1 2 3 4 5 6*");
  add(tracker, "7*");
  tracker.add_other();
  EXPECT_EQ(add(tracker, "4*"), "g1") << "half of the cache was dropped";
  EXPECT_EQ(add(tracker, "5*"), "g1");
  EXPECT_EQ(add(tracker, "0 1 2"), "new p3");
  tracker.add_other();
  EXPECT_EQ(add(tracker, "60 61*"), "p2") << "an image had the positions between";
  EXPECT_EQ(tracker.requests(), 1U);
}

TEST(RequestTracker, TimeOfATokenIsThatOfTheSlowestRequest) {
  RequestTracker tracker;
  EXPECT_EQ(tracker.slowest_ns_per_token(), std::nullopt);
  add(tracker, "0 1* 0 1 2*", 0, 100);
  EXPECT_EQ(tracker.slowest_ns_per_token(), std::nullopt) << "a prompt";
  add(tracker, "2* 3*", 110, 120);
  add(tracker, "3* 4*", 120, 150);
  EXPECT_EQ(tracker.slowest_ns_per_token(), 20) << "from 110 to 150";
  add(tracker, "4* 5* 6* 7*", 150, 230);
  EXPECT_EQ(tracker.slowest_ns_per_token(), 40);
  add(tracker, "5*", 230, 231);
  EXPECT_EQ(tracker.slowest_ns_per_token(), 30) << "the draft was not accepted";
}

}  // namespace
}  // namespace tt::attach
