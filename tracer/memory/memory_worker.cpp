#include "tracer/memory/memory_worker.h"

#include <pthread.h>

#include <cstring>
#include <format>
#include <thread>
#include <utility>

#include "tracer/memory/limits/mebibytes.h"

namespace tt {

namespace {

using namespace std::chrono_literals;

constexpr auto kPublishInterval = 50ms;

}  // namespace

MemoryWorker::MemoryWorker(const MemoryManager::Setup& setup, MemoryExchange& exchange,
                           const StepMeter& meter)
    : exchange_(exchange),
      meter_(meter),
      files_(setup.files.begin(), setup.files.end()),
      pattern_file_(setup.pattern),
      address_of_(setup.address_of),
      system_root_(setup.system_root.empty() ? "/" : setup.system_root),
      limit_reader_(setup.system_root),
      pages_(files_) {}

void MemoryWorker::run() {
  pthread_setname_np(pthread_self(), "memory");  // not that of the threads that evaluate
  lower_priority();
  load_pattern();
  while (!exchange_.stopping()) {
    if (auto changes = exchange_.take_changes()) {
      take(*std::move(changes));
      continue;
    }
    const std::uint64_t step = meter_.steps().load();
    check_limit();
    check_lateness();
    const bool worked = planned_ && work();
    publish();
    const bool running = meter_.running();
    if (!running && std::exchange(pattern_changed_, false)) save_pattern();
    if (!worked && planned_ && running) std::this_thread::sleep_for(kPollInterval);
    if (worked || (planned_ && running)) continue;
    exchange_.wait(kLimitInterval,
                   [&] { return planned_ && (meter_.running() || meter_.steps().load() != step); });
  }
  save_pattern(/*always=*/true);
  undo();
}

void MemoryWorker::take(MemoryExchange::Changes changes) {
  current_ = changes.options;
  const std::size_t known = weights_.size() + experts_.weights().size();
  bool forgot = false;
  if (changes.pattern) adopt_pattern(*std::move(changes.pattern));
  for (const StepClass kind : {kGenerateStep, kPromptStep})
    if (changes.graph_changed[kind] || (!learned_[kind] && changes.graphs[kind].graph))
      forgot = learn(kind, changes.graphs[kind]) || forgot;
  if (changes.options_changed) window_seconds_ = first_window_seconds_;
  const bool other_weights = weights_.size() + experts_.weights().size() != known;
  if (changes.options_changed || forgot || other_weights) replan();
  publish();
}

// As planned, but with the share of the used experts that were in memory lately, once it is known:
// a plan that has seen no routing assumes that it is uniform.
double MemoryWorker::bytes_per_token() {
  constexpr std::uint64_t kEnough = 200;
  if (!experts_.active()) return plan_.bytes_per_token;
  const ExpertUses now{.uses = experts_.hits() + experts_.misses(), .misses = experts_.misses()};
  if (!judged_.empty() && now.uses < judged_.back().uses) {  // another plan
    judged_.clear();
    miss_rate_.reset();
  }
  if (judged_.empty() || now.uses > judged_.back().uses) judged_.push_back(now);
  // The first uses of a plan miss, because nothing is cached yet: only the last ones count.
  while (judged_.size() > 1 && now.uses - judged_[1].uses >= kEnough) judged_.pop_front();
  const ExpertUses& before = judged_.front();
  if (now.uses - before.uses >= kEnough) {
    miss_rate_ = static_cast<double>(now.misses - before.misses) /
                 static_cast<double>(now.uses - before.uses);
  }
  if (!miss_rate_) return plan_.bytes_per_token;
  return static_cast<double>(plan_.streamed) +
         *miss_rate_ * static_cast<double>(expert_bytes_per_token_);
}

// Whether choosing experts can help, once enough of them were used.
std::string MemoryWorker::routing_text() const {
  constexpr std::uint64_t kEnough = 2000;
  constexpr double kGain = 1.1;
  const std::uint64_t hits = experts_.hits(), uses = hits + experts_.misses();
  const double share = experts_.uniform_share();
  if (uses < kEnough || share <= 0 || share >= 1) return "";
  if (static_cast<double>(hits) >= kGain * share * static_cast<double>(uses)) return "";
  return std::format(
      " Routing is near uniform: {:.0f} % of the used experts were in memory, {:.0f} % if all were "
      "equally likely. Choosing which experts to keep cannot help; what helps is to read nothing "
      "else than the chosen ones.",
      100 * static_cast<double>(hits) / static_cast<double>(uses), 100 * share);
}

// How good the predictions of experts are, once there are enough.
std::string MemoryWorker::prediction_text() const {
  constexpr std::uint64_t kEnough = 200;
  const ExpertPredictor* predictor = experts_.predictor();
  if (predictor == nullptr || predictor->predicted() < kEnough) return "";
  const bool by_layer = predictor->by() == ExpertPredictor::By::PreviousLayer;
  std::string text = std::format(
      " Of the experts that are not in memory, {:.0f} % of the predicted ones (by the {}) are "
      "chosen",
      100 * static_cast<double>(predictor->right()) / static_cast<double>(predictor->predicted()),
      by_layer ? "layer before" : "previous token");
  if (experts_.bytes_ahead() == 0) return text + ": too few to read them ahead of the router.";
  return text + std::format("; {} were read ahead of the router, {} of them for nothing.",
                            mebibytes(experts_.bytes_ahead()), mebibytes(experts_.bytes_wasted()));
}

void MemoryWorker::publish() {
  const auto now = Clock::now();
  if (now < next_publish_) return;
  next_publish_ = now + kPublishInterval;
  if (current_.budget == MemoryOptions::kOff) {
    state_ = {};
  } else if (!weights_.empty() || !experts_.weights().empty()) {
    fill_state(state_);
  }
  exchange_.publish({.state = state_,
                     .disk_bytes_per_second = disk_.bytes_per_second(),
                     .other_locks = other_locks_text(others_, locked_, limit_.limit)});
}

void MemoryWorker::fill_state(MemoryState& state) {
  state.phase = plan_.kind == MemoryPlan::Kind::Fits       ? MemoryState::Phase::Fits
                : plan_.kind == MemoryPlan::Kind::TooSmall ? MemoryState::Phase::Unavailable
                                                           : MemoryState::Phase::Active;
  state.message = plan_.reason;
  if (lock_error_ != 0 && planned_) {
    state.message += std::format(
        " {} of {} are locked, the rest is kept warm: mlock: {}. Raise the limit with `ulimit -l "
        "unlimited`, or for a service with LimitMEMLOCK=infinity.",
        mebibytes(locked_), mebibytes(plan_.pinned), std::strerror(lock_error_));
  }
  if (experts_.active()) state.message += routing_text() + prediction_text();
  if (!pressure_.empty()) state.message += " " + pressure_;
  if (from_pattern_[kGenerateStep])
    state.message += " Until the first step, weights are read in the order of the access pattern.";
  state.limit = limit_.limit;
  state.limit_used = limit_.used;
  state.limit_source = limit_.source;
  state.lock_limit = limit_.lock_limit;
  state.weights = plan_.weights;
  state.pinned = plan_.pinned;
  state.streamed = plan_.streamed;
  state.pinned_ranges = state.streamed_ranges = 0;
  for (const PlannedRange& range : plan_.ranges)
    ++(range.pinned ? state.pinned_ranges : state.streamed_ranges);
  state.experts = plan_.experts;
  state.expert_cache = plan_.expert_cache;
  state.window = plan_.window;
  state.locked = locked_;
  state.resident = resident();
  state.disk_bytes_per_second = disk_.bytes_per_second();
  // Measured while it reads, whatever it reads.
  const ReadSpeeds speeds{.blocks = disk_.bytes_per_second(), .faults = exchange_.faults()};
  const double bytes = bytes_per_token();
  const double compute_seconds = exchange_.compute_seconds();
  TokenReads reads = plan_.reads;
  if (experts_.active()) reads.experts = bytes - reads.blocks - reads.pages;
  state.predicted_bytes_per_token = bytes;
  state.predicted_tokens_per_second = token_rate(reads, compute_seconds, speeds);
  state.plain_bytes_per_token = plan_.plain_bytes_per_token;
  state.plain_tokens_per_second = token_rate(plan_.plain_reads, compute_seconds, speeds);
  state.bytes_read = bytes_submitted_ + experts_.bytes_submitted();
  state.late_ranges = late_;
  state.expert_hits = experts_.hits();
  state.expert_misses = experts_.misses();
  if (const ExpertPredictor* predictor = experts_.predictor()) {
    state.experts_predicted = predictor->predicted();
    state.experts_predicted_right = predictor->right();
  }
  state.expert_bytes_ahead = experts_.bytes_ahead();
  state.expert_bytes_wasted = experts_.bytes_wasted();
  state.reductions = reductions_;
}

}  // namespace tt
