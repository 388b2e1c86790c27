#include "tests/server/support/bystander.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <print>
#include <utility>

#include "tests/server/live/live_client.h"
#include "tests/server/support/http_client.h"
#include "tests/support/sanitizers.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

namespace {

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Bystander::Bystander(RunningServer& server, std::filesystem::path data, std::string model)
    : server_(server), data_(std::move(data)), model_(std::move(model)) {
  EXPECT_EQ(server_.load(model_), "");
  first_session_ = generate();
  hear(first_session_);
  EXPECT_FALSE(first_text_.empty());
  longest_pause_ = {};
  // A session that was read while it ended leaves WAL mode a moment later; byte 18 of the header of
  // an SQLite file says 2 until then.
  EXPECT_TRUE(wait_until([&] {
    first_bytes_ = bytes_of(file_of(first_session_));
    return first_bytes_.size() > 18 && first_bytes_[18] == 1;
  }));
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested() && !::testing::Test::HasFailure()) {
      const std::string session = generate();
      hear(session);
      ++generations_;
      std::error_code ignored;
      std::filesystem::remove(file_of(session), ignored);
    }
  });
}

void Bystander::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::string Bystander::generate() {
  const json body = {{"model", model_},   {"prompt", "Once upon a time"},
                     {"max_tokens", 300}, {"ignore_eos", true},
                     {"temperature", 0},  {"reuse_prefix", false}};
  const auto accepted =
      http_client(server_.url).Post("/api/v1/generate", body.dump(), "application/json");
  if (!accepted || accepted->status != 202) {
    ADD_FAILURE() << (accepted ? accepted->body : "the server does not answer");
    return "";
  }
  return json::parse(accepted->body)["id"];
}

void Bystander::hear(const std::string& session) {
  if (session.empty()) return;
  LiveClient client(server_.port());
  client.send_command({{"type", "subscribe"},
                       {"session", session},
                       {"kinds", {"token"}},
                       {"from", json::object()}});
  LiveTranscript transcript;
  auto heard = Clock::now();
  while (!transcript.ended()) {
    if (!client.receive(session, transcript)) {
      ADD_FAILURE() << "the live connection was closed";
      return;
    }
    longest_pause_ = std::max<std::chrono::nanoseconds>(longest_pause_, Clock::now() - heard);
    heard = Clock::now();
  }
  EXPECT_EQ(transcript.states.back(), "done");
  EXPECT_TRUE(transcript.lost.empty()) << transcript.lost;
  if (first_text_.empty()) first_text_ = transcript.text;
  EXPECT_EQ(transcript.text, first_text_);
  const auto faults = check_session(file_of(session));
  EXPECT_TRUE(faults.has_value() && faults->empty()) << session;
}

void Bystander::expect_undisturbed() {
  stop();
  EXPECT_GT(generations_, 0U);
  EXPECT_LT(longest_pause_, 2s * kTimeFactor);
  EXPECT_EQ(bytes_of(file_of(first_session_)), first_bytes_);
  std::println("{} generations of another client, longest pause {} ms", generations_,
               std::chrono::duration_cast<std::chrono::milliseconds>(longest_pause_).count());
}

}  // namespace tt::test
