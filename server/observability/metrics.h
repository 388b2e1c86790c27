// Metrics for Prometheus at /metrics: the counters of llama-server under their names
// (llamacpp:...); sessions, steps, bytes, request counts and latencies (tt_...); and the
// process (process_...). Listed in docs/operation.md.
//
// Reading has no side effects: two readers get the same values. (In llama-server averages
// cover the time since the last read; here they cover the whole run.)
//
// Any thread. Updates hold a lock for a few assignments, so the inference thread can call them
// between steps.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/http/query_queue.h"
#include "server/sessions/cache_room.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

// Values of other components, sampled on each read.
struct MetricsCallbacks {
  std::function<QueryQueue::Stats()> queries;
  std::function<CacheRoom::Stats()> caches;
  std::function<std::size_t()> live_clients;
  std::function<std::uint64_t()> live_frames_lost;
  std::function<std::uint64_t()> log_lines_lost;
  std::filesystem::path data_dir;
};

class Metrics final : public SessionListener {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Metrics(std::function<Clock::time_point()> now = &Clock::now);

  // Counts one completed HTTP request. `route` must be the matched pattern, never client
  // input: each distinct value is kept for the lifetime of the server.
  void count_request(std::string_view method, const std::string& route, int status);

  // Returns the metrics in the Prometheus text format, version 0.0.4.
  std::string text(const MetricsCallbacks& callbacks) const;

  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus&) override {}
  void on_token(const std::string& session, const Token& token, std::string_view piece) override;
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}

 private:
  struct Job {
    Clock::time_point submitted;
    bool running = false;
    std::optional<Clock::time_point> last_token;
  };
  // Sums over ended requests.
  struct Totals {
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated = 0, decodes = 0, longest = 0;
    std::uint64_t after_first = 0;  // generated tokens after the first one of their request
    double prompt_seconds = 0, generate_seconds = 0;
    std::uint64_t steps = 0, steps_without_times = 0, steps_not_written = 0, bytes = 0;
    std::uint64_t done = 0, cancelled = 0, failed = 0;
  };
  struct Snapshot {
    Totals totals;
    std::size_t queued = 0, running = 0;
  };

  void add_ended(const JobStatus& ended);  // mutex held
  Snapshot snapshot() const;

  const std::function<Clock::time_point()> now_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& inter_token_;
  prometheus::Histogram& request_;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Job> jobs_;  // not ended yet
  Totals totals_;
};

}  // namespace tt
