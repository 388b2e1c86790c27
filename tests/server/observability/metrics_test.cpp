// /metrics: format, counters, and compatibility with llama-server's names.
#include "server/observability/metrics.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <format>
#include <utility>

#include "tests/server/observability/exposition.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/llama_server.h"
#include "tests/server/support/program.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt {
namespace {

using namespace test;

constexpr double kTolerance = 1e-9;

class FakeClock {
 public:
  Metrics::Clock::time_point now() const { return now_; }
  void advance(std::chrono::milliseconds time) { now_ += time; }

 private:
  Metrics::Clock::time_point now_{};
};

MetricsCallbacks ports() {
  return {.queries = [] { return QueryQueue::Stats{.running = 2, .waiting = 4, .rejected = 9}; },
          .caches = [] { return CacheRoom::Stats{.entries = 4, .bytes = 11, .max_bytes = 12}; },
          .live_clients = [] { return 3; },
          .live_frames_lost = [] { return 7; },
          .log_lines_lost = [] { return 1; },
          .data_dir = "/"};
}

Token generated_token() {
  return {.index = 0, .id = 1, .position = 0, .generated = true, .reused = false, .text = "x"};
}

JobStatus job(const char* id, JobState state) {
  JobStatus status;
  status.id = id;
  status.state = state;
  return status;
}

double value(const Exposition& all, const std::string& sample) {
  const std::string name = family_of(sample.substr(0, sample.find('{')), all);
  const auto family = all.find(name);
  if (family == all.end() || !family->second.samples.contains(sample)) {
    ADD_FAILURE() << "no sample " << sample;
    return NAN;
  }
  return family->second.samples.at(sample);
}

TEST(Metrics, RequestTimesFollowSessionEvents) {
  FakeClock clock;
  Metrics metrics([&] { return clock.now(); });
  metrics.on_state(job("a", JobState::Queued));
  clock.advance(200ms);
  metrics.on_state(job("a", JobState::Running));
  Token of_prompt = generated_token();
  of_prompt.generated = false;
  metrics.on_token("a", of_prompt, "");
  for (int i = 0; i < 3; ++i) {
    clock.advance(300ms);
    metrics.on_token("a", generated_token(), "x");
  }
  clock.advance(100ms);
  metrics.on_state(job("a", JobState::Done));

  const Exposition all = parse_exposition(metrics.text(ports()));
  EXPECT_EQ(value(all, "tt_time_to_first_token_seconds_count"), 1);
  EXPECT_NEAR(value(all, "tt_time_to_first_token_seconds_sum"), 0.5, kTolerance);
  EXPECT_EQ(value(all, R"(tt_time_to_first_token_seconds_bucket{le="0.5"})"), 1);
  EXPECT_EQ(value(all, R"(tt_time_to_first_token_seconds_bucket{le="0.25"})"), 0);
  EXPECT_EQ(value(all, "tt_inter_token_latency_seconds_count"), 2);
  EXPECT_NEAR(value(all, "tt_inter_token_latency_seconds_sum"), 0.6, kTolerance);
  EXPECT_EQ(value(all, "tt_request_seconds_count"), 1);
  EXPECT_NEAR(value(all, "tt_request_seconds_sum"), 1.2, kTolerance);
}

// The time runs from the first token, which therefore does not count (docs/glossary.md).
TEST(Metrics, SpeedIsOfTheTokensAfterTheFirst) {
  Metrics metrics;
  for (const auto& [id, generated] : {std::pair{"a", 5u}, {"b", 7u}, {"c", 1u}, {"d", 0u}}) {
    metrics.on_state(job(id, JobState::Running));
    JobStatus ended = job(id, JobState::Done);
    ended.generated = generated;
    ended.generate_ns = generated > 1 ? 1'000'000'000 : 0;
    metrics.on_state(ended);
  }
  const Exposition all = parse_exposition(metrics.text(ports()));
  EXPECT_NEAR(value(all, "llamacpp:predicted_tokens_seconds"), 5, kTolerance);
  EXPECT_EQ(value(all, "llamacpp:tokens_predicted_total"), 13);
}

TEST(Metrics, QueueAndStateGaugesAreCurrent) {
  Metrics metrics;
  const auto expect = [&](double queued, double running) {
    const Exposition all = parse_exposition(metrics.text(ports()));
    EXPECT_EQ(value(all, "tt_queue_length"), queued);
    EXPECT_EQ(value(all, "llamacpp:requests_deferred"), queued);
    EXPECT_EQ(value(all, "llamacpp:requests_processing"), running);
  };
  expect(0, 0);
  for (const char* id : {"a", "b", "c"}) metrics.on_state(job(id, JobState::Queued));
  expect(3, 0);
  metrics.on_state(job("a", JobState::Running));
  metrics.on_state(job("b", JobState::Queued));  // moved up in the queue
  expect(2, 1);
  metrics.on_state(job("c", JobState::Cancelled));
  expect(1, 1);
  metrics.on_state(job("a", JobState::Failed));
  metrics.on_state(job("b", JobState::Running));
  metrics.on_state(job("b", JobState::Done));
  expect(0, 0);
  const Exposition all = parse_exposition(metrics.text(ports()));
  for (const char* state : {"done", "cancelled", "failed"}) {
    EXPECT_EQ(value(all, std::format("tt_sessions_total{{state=\"{}\"}}", state)), 1) << state;
  }
  EXPECT_EQ(value(all, "tt_request_seconds_count"), 2) << "c never ran";
}

TEST(Metrics, CountsRecordingLosses) {
  Metrics metrics;
  metrics.on_state(job("a", JobState::Queued));
  JobStatus ended = job("a", JobState::Done);
  ended.recording = {.losses = {.steps_without_times = 2, .steps_not_written = 5},
                     .error = "full",
                     .steps = 40,
                     .file_bytes = 1000};
  metrics.on_state(ended);
  const Exposition all = parse_exposition(metrics.text(ports()));
  EXPECT_EQ(value(all, "tt_steps_recorded_total"), 40);
  EXPECT_EQ(value(all, R"(tt_steps_lost_total{what="times"})"), 2);
  EXPECT_EQ(value(all, R"(tt_steps_lost_total{what="step"})"), 5);
  EXPECT_EQ(value(all, "tt_session_bytes_written_total"), 1000);
  EXPECT_EQ(value(all, "tt_cache_entries"), 4);
  EXPECT_EQ(value(all, "tt_cache_bytes"), 11);
  EXPECT_EQ(value(all, "tt_cache_limit_bytes"), 12);
  EXPECT_EQ(value(all, "tt_live_clients"), 3);
  EXPECT_EQ(value(all, "tt_live_frames_lost_total"), 7);
  EXPECT_EQ(value(all, "tt_log_lines_lost_total"), 1);
}

TEST(Metrics, UnknownMethodsShareOneSeries) {
  Metrics metrics;
  metrics.count_request("GET", "/a/{id}", 200);
  metrics.count_request("GET", "/a/{id}", 200);
  metrics.count_request("BREW", "none", 404);
  metrics.count_request("MELT\n\"", "none", 404);
  const Exposition all = parse_exposition(metrics.text(ports()));
  EXPECT_EQ(value(all, R"(tt_http_requests_total{method="GET",route="/a/{id}",status="200"})"), 2);
  EXPECT_EQ(value(all, R"(tt_http_requests_total{method="other",route="none",status="404"})"), 2);
  EXPECT_EQ(all.at("tt_http_requests_total").samples.size(), 2u);
}

TEST(Metrics, ProcessMetricsDescribeThisProcess) {
  const Exposition all = parse_exposition(Metrics().text(ports()));
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  EXPECT_LE(value(all, "process_start_time_seconds"), now.count() + 2);
  EXPECT_GT(value(all, "process_start_time_seconds"), now.count() - 86400);
  EXPECT_GT(value(all, "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value(all, "process_virtual_memory_bytes"),
            value(all, "process_resident_memory_bytes"));
  EXPECT_GE(value(all, "process_open_fds"), 3);
  EXPECT_GT(value(all, "process_max_fds"), value(all, "process_open_fds"));
  EXPECT_GT(value(all, "tt_data_free_bytes"), 0);
}

// ---------------------------------------------------------------- against llama-server

std::string body_of(const httplib::Result& result) { return result ? result->body : ""; }

// The metrics of llama-server after the same prompt for one token and for eight.
Exposition llama_server_metrics() {
  const LlamaServer server(kTestPaths.bundled_model, {"--metrics", "-c", "256"});
  if (!server.started()) return {};
  httplib::Client client = server.client();
  for (const char* count : {"1", "8"}) {
    const auto answer = client.Post(
        "/completion",
        std::string(R"({"prompt": "Once upon a time", "temperature": 0, "n_predict": )") + count +
            "}",
        "application/json");
    EXPECT_TRUE(answer && answer->status == 200);
  }
  return parse_exposition(body_of(client.Get("/metrics")));
}

Exposition tt_server_metrics() {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-c", "256", "-t", "1", "-tb", "1"});
  EXPECT_TRUE(server.wait_until_loaded());
  httplib::Client client = http_client(server.url);
  for (const char* count : {"1", "8"}) {
    const auto accepted = client.Post(
        "/api/v1/generate",
        std::string(R"({"prompt": "Once upon a time", "temperature": 0, "max_tokens": )") + count +
            "}",
        "application/json");
    if (!accepted || accepted->status != 202) {
      ADD_FAILURE() << body_of(accepted);
      return {};
    }
    server.wait_for_end(json::parse(accepted->body)["id"]);
  }
  // Listeners are notified of the end shortly after the status reports it.
  EXPECT_TRUE(wait_until([&] {
    return body_of(client.Get("/metrics")).contains("tt_sessions_total{state=\"done\"} 2\n");
  }));
  const auto answer = client.Get("/metrics");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  return parse_exposition(body_of(answer));
}

TEST(Metrics, MatchLlamaServerNamesTypesAndCounts) {
  const Exposition theirs = llama_server_metrics();
  const Exposition ours = tt_server_metrics();
  ASSERT_FALSE(theirs.empty());
  for (const auto& [name, family] : theirs) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(ours.contains(name));
    EXPECT_EQ(ours.at(name).type, family.type);
    // Times differ; all counts must be equal.
    if (name.find("seconds") != std::string::npos) continue;
    EXPECT_EQ(ours.at(name).samples, family.samples);
  }
  for (const auto& [name, family] : ours) {
    if (name.starts_with("llamacpp:")) {
      EXPECT_TRUE(theirs.contains(name)) << name;
    }
  }
  EXPECT_EQ(value(ours, "tt_time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(value(ours, "tt_inter_token_latency_seconds_count"), 7);
  EXPECT_EQ(value(ours, "tt_request_seconds_count"), 2);
  EXPECT_EQ(value(ours, R"(tt_sessions_total{state="done"})"), 2);
  EXPECT_EQ(value(ours, "tt_steps_recorded_total"), 9);
  EXPECT_GT(value(ours, "tt_session_bytes_written_total"), 0);
  for (const char* name :
       {"llamacpp:prompt_seconds_total", "llamacpp:prompt_tokens_seconds",
        "llamacpp:tokens_predicted_seconds_total", "llamacpp:predicted_tokens_seconds"}) {
    EXPECT_GT(value(ours, name), 0) << name;
  }
}

// The speed in /metrics, of the session, in its report, and as `tt show` prints it. (That the page
// shows the session's: strip.e2e.ts, inspector.e2e.ts.)
TEST(Metrics, SpeedIsThatOfTheSessionEverywhere) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-c", "256", "-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  httplib::Client client = http_client(server.url);
  const auto accepted =
      client.Post("/api/v1/generate",
                  R"({"prompt": "Once upon a time", "max_tokens": 100, "ignore_eos": true})",
                  "application/json");
  ASSERT_TRUE(accepted && accepted->status == 202);
  const std::string id = json::parse(accepted->body)["id"];
  server.wait_for_end(id);

  const std::string path = "/api/v1/sessions/" + id;
  const json speed = server.get(path)["speed"];
  const double rate = speed["tokens_per_second"];
  EXPECT_EQ(speed["tokens"], 99);
  EXPECT_NEAR(rate, 99e9 / speed["ns"].get<double>(), 1e-6 * rate);
  EXPECT_TRUE(wait_until([&] {
    return body_of(client.Get("/metrics")).contains("tt_sessions_total{state=\"done\"} 1\n");
  }));
  const Exposition all = parse_exposition(body_of(client.Get("/metrics")));
  EXPECT_NEAR(value(all, "llamacpp:predicted_tokens_seconds"), rate, 1e-6 * rate);
  const std::string text = std::format("{:.1f} tokens/s", rate);
  const json report = server.get(path + "/report?format=json");
  EXPECT_TRUE(report["findings"].dump().contains(
      std::format("{:.{}f} tokens/s.", rate, rate < 100 ? 1 : 0)))
      << report["findings"];
  const std::string show = command_output(
      std::format("{} show {}/{}.ttrace", kTestPaths.tt, folder.path().string(), id));
  EXPECT_TRUE(show.contains("speed      " + text)) << show;
}

}  // namespace
}  // namespace tt
