#include "server/observability/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "api/json/version.h"
#include "server/observability/process_stats.h"
#include "tracer/engine/backends.h"

namespace tt {

namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Upper bucket bounds in seconds. A token takes milliseconds to seconds; a prompt or a whole
// request can take minutes.
const Histogram::BucketBoundaries kPerToken = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                               0.1,   0.25,   0.5,   1,    2.5};
const Histogram::BucketBoundaries kPerRequest = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                 2.5,  5,     10,   30,  60,   120, 300};

double seconds(Metrics::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string_view method_label(std::string_view method) {
  constexpr std::array kKnown = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  return std::ranges::contains(kKnown, method) ? method : "other";
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Metric families whose values are sampled when the metrics are read.
class Sampled {
 public:
  void counter(const char* name, const char* help, auto value) {
    family(name, help, MetricType::Counter).counter.value = static_cast<double>(value);
  }
  void gauge(const char* name, const char* help, auto value) {
    family(name, help, MetricType::Gauge).gauge.value = static_cast<double>(value);
  }
  // Adds a metric to the last family.
  void labelled_counter(const char* label, const char* value, auto count) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = {{.name = label, .value = value}};
    metric.counter.value = static_cast<double>(count);
  }
  void begin_counters(const char* name, const char* help) {
    families_.push_back({.name = name, .help = help, .type = MetricType::Counter, .metric = {}});
  }
  void build_info();
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  ClientMetric& family(const char* name, const char* help, MetricType type) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
    return families_.back().metric.emplace_back();
  }
  std::vector<MetricFamily> families_;
};

void Sampled::build_info() {
  const LibraryVersions library = library_versions();
  ClientMetric& metric =
      family("tt_build_info", "Always 1; labels: versions of the server and its libraries",
             MetricType::Gauge);
  metric.label = {{.name = "version", .value = kVersion},
                  {.name = "libllama", .value = library.llama},
                  {.name = "ggml", .value = library.ggml}};
  metric.gauge.value = 1;
}

}  // namespace

Metrics::Metrics(std::function<Clock::time_point()> now)
    : now_(std::move(now)),
      requests_(prometheus::BuildCounter()
                    .Name("tt_http_requests_total")
                    .Help("Completed HTTP requests; route is the matched pattern")
                    .Register(registry_)),
      first_token_(prometheus::BuildHistogram()
                       .Name("tt_time_to_first_token_seconds")
                       .Help("Time from the arrival of a request to its first generated token")
                       .Register(registry_)
                       .Add({}, kPerRequest)),
      inter_token_(prometheus::BuildHistogram()
                       .Name("tt_inter_token_latency_seconds")
                       .Help("Time between consecutive generated tokens")
                       .Register(registry_)
                       .Add({}, kPerToken)),
      request_(prometheus::BuildHistogram()
                   .Name("tt_request_seconds")
                   .Help("Duration of generation requests that ran, including queueing")
                   .Register(registry_)
                   .Add({}, kPerRequest)) {}

void Metrics::count_request(std::string_view method, const std::string& route, int status) {
  requests_
      .Add({{"method", std::string(method_label(method))},
            {"route", route},
            {"status", std::to_string(status)}})
      .Increment();
}

// ---------------------------------------------------------------- sessions

void Metrics::on_state(const JobStatus& status) {
  const Clock::time_point now = now_();
  const std::lock_guard lock(mutex_);
  if (status.state == JobState::Queued) {
    jobs_.try_emplace(status.id, Job{.submitted = now, .running = false, .last_token = {}});
  } else if (status.state == JobState::Running) {
    jobs_.try_emplace(status.id, Job{.submitted = now, .running = true, .last_token = {}})
        .first->second.running = true;
  } else if (const auto job = jobs_.find(status.id); job != jobs_.end()) {
    if (job->second.running) request_.Observe(seconds(now - job->second.submitted));
    add_ended(status);
    jobs_.erase(job);
  }
}

void Metrics::add_ended(const JobStatus& ended) {
  Totals& to = totals_;
  const std::uint32_t evaluated = std::max(ended.prompt_done, ended.reused_tokens);
  to.prompt_tokens += evaluated - ended.reused_tokens;
  to.cached_tokens += ended.reused_tokens;
  to.generated += ended.generated;
  to.after_first += std::max(ended.generated, 1u) - 1;
  to.decodes += ended.steps;
  // The last generated token is not evaluated.
  to.longest = std::max<std::uint64_t>(to.longest, evaluated + std::max(ended.generated, 1u) - 1);
  to.prompt_seconds += static_cast<double>(ended.prompt_ns) * 1e-9;
  to.generate_seconds += static_cast<double>(ended.generate_ns) * 1e-9;
  to.steps += ended.recording.steps;
  to.steps_without_times += ended.recording.losses.steps_without_times;
  to.steps_not_written += ended.recording.losses.steps_not_written;
  to.bytes += ended.recording.file_bytes;
  to.done += ended.state == JobState::Done ? 1 : 0;
  to.cancelled += ended.state == JobState::Cancelled ? 1 : 0;
  to.failed += ended.state == JobState::Failed ? 1 : 0;
}

void Metrics::on_token(const std::string& session, const Token& token, std::string_view) {
  if (!token.generated) return;
  const Clock::time_point now = now_();
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(session);
  if (job == jobs_.end()) return;
  if (const auto before = std::exchange(job->second.last_token, now)) {
    inter_token_.Observe(seconds(now - *before));
  } else {
    first_token_.Observe(seconds(now - job->second.submitted));
  }
}

// ---------------------------------------------------------------- reading

Metrics::Snapshot Metrics::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot now{.totals = totals_};
  for (const auto& [id, job] : jobs_) ++(job.running ? now.running : now.queued);
  return now;
}

std::string Metrics::text(const MetricsCallbacks& callbacks) const {
  const auto [of, queued, running] = snapshot();
  const ProcessStats process = process_stats();
  Sampled out;
  // Names, types and descriptions as in llama-server. There is no speculative decoding here.
  out.counter("llamacpp:prompt_tokens_total",
              "Number of prompt tokens processed, excluding cached tokens", of.prompt_tokens);
  out.counter("llamacpp:prompt_tokens_cached_total",
              "Number of prompt tokens reused from the cache", of.cached_tokens);
  out.counter("llamacpp:prompt_seconds_total", "Total time spent processing prompts",
              of.prompt_seconds);
  out.counter("llamacpp:tokens_predicted_total", "Number of generation tokens processed",
              of.generated);
  out.counter("llamacpp:tokens_predicted_seconds_total", "Total time spent generating tokens",
              of.generate_seconds);
  out.counter("llamacpp:n_decode_total", "Total number of llama_decode() calls", of.decodes);
  out.counter("llamacpp:n_tokens_max", "Largest observed sequence length (prompt + generation)",
              of.longest);
  out.counter("llamacpp:spec_decode_num_draft_tokens_total", "Always 0", 0);
  out.counter("llamacpp:spec_decode_num_accepted_tokens_total", "Always 0", 0);
  out.counter("llamacpp:spec_decode_num_drafts_total", "Always 0", 0);
  out.gauge("llamacpp:prompt_tokens_seconds", "Average prompt throughput in tokens/s",
            ratio(static_cast<double>(of.prompt_tokens), of.prompt_seconds));
  out.gauge("llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s",
            ratio(static_cast<double>(of.after_first), of.generate_seconds));
  out.gauge("llamacpp:requests_processing", "Number of requests processing", running);
  out.gauge("llamacpp:requests_deferred", "Number of requests deferred", queued);
  out.gauge("llamacpp:n_busy_slots_per_decode",
            "Average number of busy slots per llama_decode() call", of.decodes > 0 ? 1 : 0);

  out.build_info();
  out.gauge("tt_queue_length", "Queued generation requests", queued);
  out.begin_counters("tt_sessions_total", "Ended generation requests by state");
  out.labelled_counter("state", "done", of.done);
  out.labelled_counter("state", "cancelled", of.cancelled);
  out.labelled_counter("state", "failed", of.failed);
  out.counter("tt_steps_recorded_total", "Steps in the files of ended sessions", of.steps);
  out.begin_counters(
      "tt_steps_lost_total",
      "Steps recorded without times, or not recorded, because the disk or the CPU did not keep up");
  out.labelled_counter("what", "times", of.steps_without_times);
  out.labelled_counter("what", "step", of.steps_not_written);
  out.counter("tt_session_bytes_written_total", "Size of the files of ended sessions", of.bytes);
  const QueryQueue::Stats queries = callbacks.queries();
  out.gauge("tt_expensive_queries_running", "Queries of sessions being computed", queries.running);
  out.gauge("tt_expensive_queries_waiting", "Queries of sessions waiting for their turn",
            queries.waiting);
  out.counter("tt_expensive_queries_rejected_total",
              "Queries of sessions rejected because too many were running and waiting",
              queries.rejected);
  const CacheRoom::Stats caches = callbacks.caches();
  out.gauge("tt_cache_entries", "Sessions of which an index or totals are in memory",
            caches.entries);
  out.gauge("tt_cache_bytes", "Memory that these take", caches.bytes);
  out.gauge("tt_cache_limit_bytes", "Maximum of tt_cache_bytes now", caches.max_bytes);
  out.gauge("tt_live_clients", "Connected live clients", callbacks.live_clients());
  out.counter("tt_live_frames_lost_total", "Live messages dropped because a client queue was full",
              callbacks.live_frames_lost());
  out.counter("tt_log_lines_lost_total", "Log lines dropped because stderr was not read in time",
              callbacks.log_lines_lost());
  std::error_code unknown;
  if (const auto space = std::filesystem::space(callbacks.data_dir, unknown); !unknown) {
    out.gauge("tt_data_free_bytes", "Free space on the disk of the session folder",
              space.available);
  }

  out.gauge("process_start_time_seconds", "Start time of the process, Unix time",
            process.start_utc_seconds);
  out.counter("process_cpu_seconds_total", "User and system time", process.cpu_seconds);
  out.gauge("process_resident_memory_bytes", "Resident memory", process.resident_bytes);
  out.gauge("process_virtual_memory_bytes", "Virtual memory", process.virtual_bytes);
  out.gauge("process_threads", "Threads", process.threads);
  out.gauge("process_open_fds", "Open file descriptors", process.open_fds);
  out.gauge("process_max_fds", "Maximum number of open file descriptors", process.max_fds);

  std::vector<MetricFamily> families = out.take();
  std::ranges::move(registry_.Collect(), std::back_inserter(families));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return std::move(text).str();
}

}  // namespace tt
