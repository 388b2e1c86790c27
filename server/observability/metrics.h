// What Prometheus reads at /metrics: what llama-server counts, under its names
// (llamacpp:...); sessions, steps, bytes, requests and how long they take
// (tt_...); and the process (process_...). docs/operation.md lists them.
//
// Reading changes nothing: two who read see the same. (llama-server's averages
// are of the time since somebody last read; here they are of all time.)
//
// Any thread. Counting is a lock held for a few assignments, fit for the
// inference thread between steps.
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

#include "tracer/engine/generation_queue.h"

namespace tt {

// What others know, of the moment in which it is asked.
struct MetricsPorts {
  std::function<std::size_t()> live_clients;
  std::function<std::uint64_t()> live_frames_lost;
  std::function<std::uint64_t()> log_lines_lost;
  std::filesystem::path data_dir;
};

class Metrics final : public SessionListener {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Metrics(std::function<Clock::time_point()> now = &Clock::now);

  // One answered HTTP request. `route` is the pattern that matched, never what a
  // client sent: each new one is kept for good.
  void count_request(std::string_view method, const std::string& route, int status);

  // Prometheus' text format, version 0.0.4.
  std::string text(const MetricsPorts& ports) const;

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
  // Of what has ended.
  struct Totals {
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated = 0, decodes = 0, longest = 0;
    double prompt_seconds = 0, generate_seconds = 0;
    std::uint64_t steps = 0, steps_without_times = 0, steps_not_written = 0, bytes = 0;
    std::uint64_t done = 0, cancelled = 0, failed = 0;
  };
  struct Snapshot {
    Totals totals;
    std::size_t queued = 0, running = 0;
  };

  void add(const JobStatus& ended);  // mutex held
  Snapshot snapshot() const;

  const std::function<Clock::time_point()> now_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& inter_token_;
  prometheus::Histogram& request_;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Job> jobs_;  // that have not ended
  Totals totals_;
};

}  // namespace tt
