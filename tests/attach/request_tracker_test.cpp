// Which steps belong to one request, for batches as those of llama-server.
#include "attach/collector/request_tracker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tt::attach {
namespace {

// "0 1 2* @1 7*": positions, with a star if there is an output; @1: those of sequence 1 of the
// cache follow.
std::vector<BatchToken> batch_of(const std::string& text) {
  std::vector<BatchToken> tokens;
  std::optional<std::uint32_t> in_cache;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*') {
      tokens.back().output = true;
    } else if (text[i] == '@') {
      in_cache = static_cast<std::uint32_t>(text[++i] - '0');
    } else if (text[i] != ' ') {
      std::size_t length = 0;
      tokens.push_back(
          {.position = std::stoi(text.substr(i), &length), .output = false, .in_cache = in_cache});
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

// As add(), with the number of the request of each run, and "<" if it goes back.
std::string add_requests(RequestTracker& tracker, const std::string& text) {
  const std::vector<BatchToken> batch = batch_of(text);
  const auto runs = tracker.runs_of(batch);
  std::string out;
  for (const TokenRun& run : runs)
    out += (out.empty() ? "" : " ") + std::to_string(run.request) + (run.generated ? "g" : "p") +
           std::to_string(run.end - run.begin) + (run.goes_back ? "<" : "");
  tracker.add(batch, runs, 0, 0);
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

// The last token of a prompt may be alone in its step, and has an output like a generated one.
TEST(RequestTracker, LastTokenOfAPromptIsApart) {
  RequestTracker tracker;
  add(tracker, "0 1 2 3 4*");
  EXPECT_EQ(add_requests(tracker, "5* 0 1 2 3 4 5 6"), "1g1 2p7");
  EXPECT_EQ(add_requests(tracker, "6* 7*"), "1g1 2p1") << "is no draft of the first request";
  EXPECT_EQ(add_requests(tracker, "7* 8*"), "1g1 2g1");
  EXPECT_EQ(add_requests(tracker, "8* 9* 0 1 2 0 1 2 3 4"), "1g1 2g1 3p3 4p5");
  EXPECT_EQ(add_requests(tracker, "3 4* 5*"), "3p2 4p1") << "after the end of another prompt";
  EXPECT_EQ(tracker.requests(), 4U);
}

TEST(RequestTracker, SequencesOfTheCacheAreApart) {
  RequestTracker tracker;
  // The slots have another order than their requests, and the same positions.
  EXPECT_EQ(add_requests(tracker, "@1 0 1 2*"), "1p3");
  EXPECT_EQ(add_requests(tracker, "@0 0 1 2 3* @1 3*"), "2p4 1g1");
  EXPECT_EQ(add_requests(tracker, "@0 4* @1 4*"), "2g1 1g1");
  EXPECT_EQ(add_requests(tracker, "@0 5* @1 5*"), "2g1 1g1");
  EXPECT_EQ(add_requests(tracker, "@1 6*"), "1g1") << "the second one is over";
  EXPECT_EQ(add_requests(tracker, "@1 7* @0 3*"), "1g1 3p1") << "its prompt again";
  EXPECT_EQ(add_requests(tracker, "@1 8* @0 4*"), "1g1 3g1");
  EXPECT_EQ(add_requests(tracker, "@1 9* @0 5* @2 10*"), "1g1 3g1 4p1")
      << "a prompt whose first tokens are in the cache";
  tracker.forget_cache();
  EXPECT_EQ(add_requests(tracker, "@4 10* @5 6* @3 11*"), "1g1 3g1 4g1") << "other numbers";
}

// With a stream per slot, a step has as many tokens of each: a longer draft goes on in the next
// one.
TEST(RequestTracker, DraftOverSeveralSteps) {
  RequestTracker tracker;
  EXPECT_EQ(add_requests(tracker, "@0 0 1* @1 0 1*"), "1p2 2p2");
  EXPECT_EQ(add_requests(tracker, "@2 0 1*"), "3p2");
  EXPECT_EQ(add_requests(tracker, "@0 2* 3* @1 2* 3* @2 2* 3*"), "1g2 2g2 3g2");
  EXPECT_EQ(add_requests(tracker, "@0 3* @1 4* @2 4*"), "1g1< 2g1 3g1");
  EXPECT_EQ(add_requests(tracker, "@0 4* 5* 6*"), "1g3");
  EXPECT_EQ(add_requests(tracker, "@2 5*"), "3g1");
  EXPECT_EQ(add_requests(tracker, "@0 4* 5* @1 5* 6* @2 5* 6*"), "1g2< 2g2 3g2<")
      << "none was accepted";
  EXPECT_EQ(tracker.rejected(), 1U + 3 + 1);
  EXPECT_EQ(add_requests(tracker, "@0 6* @1 6* @2 7*"), "1g1 2g1< 3g1");
  EXPECT_EQ(tracker.requests(), 3U);
}

// The only token of an answer is not evaluated.
TEST(RequestTracker, LastTokenOfAPromptAgainIsNoRejectedDraft) {
  RequestTracker tracker;
  EXPECT_EQ(add(tracker, "0 1 2*"), "p3");
  EXPECT_EQ(add(tracker, "2*"), "new p1");
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
