#include "tracer/memory/memory_worker.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

#include "tracer/format/model/quantile.h"
#include "tracer/memory/compute_time.h"
#include "tracer/memory/mebibytes.h"

namespace tt {

namespace {

using namespace std::chrono_literals;

constexpr auto kPublishInterval = 50ms;
constexpr std::size_t kRecentSteps = 16;

}  // namespace

// ---------------------------------------------------------------- any thread

MemoryManager::Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MemoryManager::Worker::set(const MemoryOptions& options) {
  const std::lock_guard lock(mutex_);
  if (options == options_) return;
  options_ = options;
  options_changed_ = true;
  recent_seconds_.clear();
  recent_bytes_.clear();
  const bool on = options.budget != MemoryOptions::kOff && unavailable_.empty();
  wants_graph_ = on && graphs_[kGenerate].graph == nullptr;
  if (on && !thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_all();
}

MemoryState MemoryManager::Worker::state() const {
  const std::lock_guard lock(mutex_);
  MemoryState state = published_;
  state.options = options_;
  state.compute_seconds = compute_seconds_;
  const auto mean = [](const std::deque<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  };
  if (const double seconds = mean(recent_seconds_); seconds > 0)
    state.tokens_per_second = 1 / seconds;
  state.bytes_per_token = mean(recent_bytes_);
  if (options_.budget == MemoryOptions::kOff) return state;
  if (!unavailable_.empty()) {
    state.phase = MemoryState::Phase::Unavailable;
    state.message = unavailable_;
  } else if (state.phase == MemoryState::Phase::Off) {
    state.phase = MemoryState::Phase::Learning;
    state.message = "The order in which the weights are read is learned in the next step.";
    if (!pattern_note_.empty()) state.message += " " + pattern_note_;
    if (const std::string text = other_locks_text(others_, locked_, limit_.limit); !text.empty())
      state.message += " " + text;
  }
  return state;
}

std::shared_ptr<const std::vector<MemoryRange>> MemoryManager::Worker::ranges() const {
  const std::lock_guard lock(mutex_);
  return published_ranges_;
}

std::vector<MemoryPrediction> MemoryManager::Worker::predict(std::span<const std::uint64_t> budgets,
                                                             bool& disk_measured) const {
  Graph graph;
  PlanInput input;
  {
    const std::lock_guard lock(mutex_);
    graph = graphs_[graphs_[kGenerate].graph ? kGenerate : kPrompt];
    input.compute_seconds = compute_seconds_;
    input.speeds = {.blocks = published_disk_speed_, .faults = faults_};
  }
  disk_measured = input.speeds.blocks > 0;
  if (!disk_measured) input.speeds.blocks = kAssumedDiskSpeed;
  if (!graph.graph) return {};
  GraphTemplate mapped = graph.graph->graph;
  const std::vector<std::uint64_t> addresses = map_weights(mapped);
  const WeightOrder order = weight_order(mapped, graph.graph->accesses, addresses);
  std::vector<WeightRange> weights, experts;
  for (const WeightUse& use : order.weights)
    if (!std::ranges::contains(weights, use.range)) weights.push_back(use.range);
  for (const ExpertUse& use : order.experts) {
    input.expert_bytes_per_token += use.slice * std::min(use.per_token, use.experts);
    if (!std::ranges::contains(experts, use.range)) experts.push_back(use.range);
  }
  for (const WeightRange& range : experts) input.expert_bytes += range.file.length;
  input.weights = weights;
  const std::lock_guard lock(replayed_mutex_);
  if (replayed_.graph != graph.graph)
    replayed_ = {.graph = graph.graph, .replay = FaultReplay(order), .bytes = {}};
  // The curve has no kept ranges but those of the plan, which reads the others ahead.
  input.faulted = [&](std::uint64_t room, std::span<const FileRange> kept) {
    const auto around = static_cast<std::uint64_t>(input.speeds.faults.bytes);
    const auto [found, is_new] = replayed_.bytes.try_emplace({around, room});
    if (is_new) found->second = replayed_.replay.bytes_per_token(around, room, kept);
    return found->second;
  };
  std::vector<MemoryPrediction> curve;
  for (const std::uint64_t budget : budgets) {
    input.budget = budget;
    const MemoryPlan plan = plan_memory(input);
    MemoryPrediction point{.budget = budget,
                           .bytes_per_token = plan.bytes_per_token,
                           .tokens_per_second = plan.tokens_per_second,
                           .plain_bytes_per_token = plan.plain_bytes_per_token,
                           .plain_tokens_per_second = plan.plain_tokens_per_second};
    // More memory is not slower: the replay of page faults is that of a few tokens.
    if (!curve.empty() && curve.back().budget <= budget) {
      const MemoryPrediction& less = curve.back();
      const auto at_least = [](double& value, double other) { value = std::max(value, other); };
      const auto at_most = [](double& value, double other) { value = std::min(value, other); };
      at_most(point.bytes_per_token, less.bytes_per_token);
      at_most(point.plain_bytes_per_token, less.plain_bytes_per_token);
      at_least(point.tokens_per_second, less.tokens_per_second);
      at_least(point.plain_tokens_per_second, less.plain_tokens_per_second);
    }
    curve.push_back(point);
  }
  return curve;
}

// ---------------------------------------------------------------- inference thread

void MemoryManager::Worker::use_pattern(StoredPattern pattern) {
  const std::lock_guard lock(mutex_);
  given_pattern_ = std::move(pattern);
  wake_.notify_all();
}

void MemoryManager::Worker::begin_step(std::uint32_t tokens) {
  kind_.store(tokens > 1 ? kPrompt : kGenerate);
  running_.store(true);
  if (!acting_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);  // the worker may be about to wait
  wake_.notify_one();
}

void MemoryManager::Worker::end_step(const FinishedStep& step) {
  running_.store(false);
  step_.fetch_add(1);
  const std::uint64_t read_now = bytes_read_from_disk();
  const std::uint64_t read = read_now - std::exchange(read_before_, read_now);
  if (!step.complete) return;
  const StepClass kind = step.tokens > 1 ? kPrompt : kGenerate;
  if (kind == kGenerate && step.graph != nullptr && !step.op_ns.empty()) {
    if (op_ns_.size() != step.op_ns.size()) {  // another graph
      op_ns_.assign(step.op_ns.begin(), step.op_ns.end());
      least_step_ns_ = step.ns;
    }
    for (std::size_t op = 0; op < op_ns_.size(); ++op)
      op_ns_[op] = std::min(op_ns_[op], step.op_ns[op]);
  }
  const std::lock_guard lock(mutex_);
  // Without a plan all is read by page faults. A long prompt computes for much of its time.
  constexpr std::uint64_t kMuchRead = 32U << 20;
  constexpr std::uint32_t kFewTokens = 32;
  if (!acting_.load(std::memory_order_relaxed) && read >= kMuchRead && step.ns > 0 &&
      step.tokens <= kFewTokens) {
    faults_ = {.bytes = faults_.bytes,
               .bytes_per_second = static_cast<double>(read) * 1e9 / static_cast<double>(step.ns),
               .with_computing = true};
  }
  if (kind == kGenerate) {
    const auto add = [](std::deque<double>& values, double value) {
      values.push_back(value);
      if (values.size() > kRecentSteps) values.pop_front();
    };
    add(recent_seconds_, static_cast<double>(step.ns) * 1e-9);
    add(recent_bytes_, static_cast<double>(read));
    const std::int64_t sum = compute_time(op_ns_, weight_bytes_);
    // Only recorded steps have times of ops, and those of a step that waits for the disk at every
    // op say little: no token computes for longer than the fastest one took.
    least_step_ns_ = std::min(least_step_ns_, step.ns);
    compute_seconds_ = static_cast<double>(std::min(sum, least_step_ns_)) * 1e-9;
    // A token that read nothing takes longer than its ops: threads wait for each other in between.
    if (read == 0) add(unread_seconds_, static_cast<double>(step.ns) * 1e-9);
    std::vector<double> unread(unread_seconds_.begin(), unread_seconds_.end());
    std::ranges::sort(unread);
    compute_seconds_ = std::max(compute_seconds_, quantile<double>(unread, 0.25).value_or(0));
  }
  Graph& known = graphs_[kind];
  if (step.graph == nullptr || (known.graph == step.graph && known.addresses == step.addresses))
    return;
  known = {.graph = step.graph, .addresses = step.addresses};
  graph_changed_[kind] = true;
  if (kind == kGenerate) wants_graph_ = false;
  if (thread_.joinable()) wake_.notify_one();
}

// ---------------------------------------------------------------- worker thread

void MemoryManager::Worker::run() {
  pthread_setname_np(pthread_self(), "memory");  // not that of the threads that evaluate
  lower_priority();
  load_pattern();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (take_changes(lock)) continue;
    const std::uint64_t step = step_.load();
    lock.unlock();
    check_limit();
    check_lateness();
    const bool worked = planned_ && work();
    publish();
    const bool running = running_.load();
    if (!running && std::exchange(pattern_changed_, false)) save_pattern();
    if (!worked && planned_ && running) std::this_thread::sleep_for(kPollInterval);
    lock.lock();
    if (worked || (planned_ && running)) continue;
    wake_.wait_for(lock, kLimitInterval, [&] {
      return stopping_ || options_changed_ || given_pattern_ ||
             std::ranges::contains(graph_changed_, true) ||
             (planned_ && (running_.load() || step_.load() != step));
    });
  }
  lock.unlock();
  save_pattern(/*always=*/true);
  undo();
}

// Returns whether there were any.
bool MemoryManager::Worker::take_changes(std::unique_lock<std::mutex>& lock) {
  const bool options_changed = std::exchange(options_changed_, false);
  const auto graph_changed = std::exchange(graph_changed_, {});
  auto pattern = std::exchange(given_pattern_, {});
  if (!options_changed && !pattern && !std::ranges::contains(graph_changed, true)) return false;
  current_ = options_;
  const std::array<Graph, kClasses> graphs = graphs_;
  lock.unlock();
  const std::size_t known = weights_.size() + experts_.weights().size();
  bool forgot = false;
  if (pattern) adopt_pattern(*std::move(pattern));
  for (const StepClass kind : {kGenerate, kPrompt})
    if (graph_changed[kind] || (!learned_[kind] && graphs[kind].graph))
      forgot = learn(kind, graphs[kind]) || forgot;
  if (options_changed) window_seconds_ = first_window_seconds_;
  const bool other_weights = weights_.size() + experts_.weights().size() != known;
  if (options_changed || forgot || other_weights) replan();
  publish();
  lock.lock();
  return true;
}

// As planned, but with the share of the used experts that were in memory lately, once it is known:
// a plan that has seen no routing assumes that it is uniform.
double MemoryManager::Worker::bytes_per_token() {
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
std::string MemoryManager::Worker::routing_text() const {
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
std::string MemoryManager::Worker::prediction_text() const {
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

void MemoryManager::Worker::publish() {
  const auto now = Clock::now();
  if (now < next_publish_) return;
  next_publish_ = now + kPublishInterval;
  const std::lock_guard lock(mutex_);
  published_disk_speed_ = disk_.bytes_per_second();
  MemoryState& state = published_;
  if (current_.budget == MemoryOptions::kOff) {
    state = {};
    return;
  }
  if (weights_.empty() && experts_.weights().empty()) return;
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
  if (from_pattern_[kGenerate])
    state.message += " Until the first step, weights are read in the order of the access pattern.";
  if (!pattern_note_.empty()) state.message += " " + pattern_note_;
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
  const ReadSpeeds speeds{.blocks = disk_.bytes_per_second(), .faults = faults_};
  const double bytes = bytes_per_token();
  TokenReads reads = plan_.reads;
  if (experts_.active()) reads.experts = bytes - reads.blocks - reads.pages;
  state.predicted_bytes_per_token = bytes;
  state.predicted_tokens_per_second = token_rate(reads, compute_seconds_, speeds);
  state.plain_bytes_per_token = plan_.plain_bytes_per_token;
  state.plain_tokens_per_second = token_rate(plan_.plain_reads, compute_seconds_, speeds);
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
