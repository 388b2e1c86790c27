#include "tracer/memory/memory_manager.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <format>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tracer/memory/disk_speed.h"
#include "tracer/memory/expert_cache.h"
#include "tracer/memory/mebibytes.h"
#include "tracer/memory/memory_limit.h"
#include "tracer/memory/memory_plan.h"
#include "tracer/memory/model_pages.h"
#include "tracer/memory/read_ahead_window.h"
#include "tracer/memory/read_order.h"

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// While a step runs and the window is full, the position is polled at this interval.
constexpr auto kPoll = 100us;
constexpr auto kLimitInterval = 200ms;
constexpr auto kPublishInterval = 50ms;
// The budget grows only after it was stable for this time.
constexpr auto kGrowAfter = 3s;
constexpr std::uint64_t kShrinkBytes = 4U << 20, kGrowBytes = 32U << 20;
// Free below the limit: pages that the kernel has to charge at once.
constexpr std::uint64_t kMinReserve = 12U << 20;
// Page cache of others in the group that is left to them: programs, session files.
constexpr std::uint64_t kOthersCache = 24U << 20;
// Lower priority than the threads of inference, by this much. Where more threads run than there
// are processors, a larger value delays reads that inference then waits for.
constexpr int kNice = 1;
constexpr double kAssumedDiskSpeed = 1e9;  // before it is measured
constexpr std::size_t kRecentSteps = 16;

// Identifies the part of a weight.
using WeightKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
WeightKey key_of(const WeightRange& weight) {
  return {weight.file.file, weight.file.offset, weight.file.length};
}

WeightRange slice_of(const ExpertUse& use, std::uint32_t expert) {
  const std::uint64_t at = std::uint64_t{expert} * use.stride;
  return {.file = {.file = use.range.file.file,
                   .offset = use.range.file.offset + at,
                   .length = use.slice},
          .address = use.range.address + at};
}

// The distinct experts in the list of a running graph. The values can change while they are read:
// then they are wrong experts, but valid ones.
std::vector<std::uint32_t> listed_experts(const ExpertUse& use) {
  std::vector<std::uint32_t> experts;
  for (std::uint32_t token = 0; token < use.tokens; ++token) {
    const auto* list = reinterpret_cast<const std::int32_t*>(  // NOLINT: an address of the graph
        use.list_address + token * use.token_stride);
    for (std::uint32_t i = 0; i < use.per_token; ++i) {
      const std::int32_t expert = __atomic_load_n(list + i, __ATOMIC_RELAXED);
      if (expert >= 0 && static_cast<std::uint32_t>(expert) < use.experts)
        experts.push_back(static_cast<std::uint32_t>(expert));
    }
  }
  std::ranges::sort(experts);
  const auto [first, last] = std::ranges::unique(experts);
  experts.erase(first, last);
  return experts;
}

}  // namespace

class MemoryManager::Worker {
 public:
  explicit Worker(const Setup& setup)
      : files_(setup.files.begin(), setup.files.end()),
        ops_run_(setup.ops_run),
        unavailable_(setup.unavailable),
        limit_reader_(setup.system_root),
        pages_(files_) {}
  ~Worker();

  void set(const MemoryOptions& options);
  MemoryState state() const;
  std::shared_ptr<const std::vector<MemoryRange>> ranges() const;
  std::vector<MemoryPrediction> predict(std::span<const std::uint64_t> budgets,
                                        bool& disk_measured) const;
  void begin_step(std::uint32_t tokens);
  void end_step(const FinishedStep& step);
  bool wants_graph() const { return wants_graph_.load(std::memory_order_relaxed); }

 private:
  enum StepClass : std::uint8_t { kGenerate, kPrompt, kClasses };
  // The routed experts of one layer in one graph: all its weights use the same list.
  struct ExpertGroup {
    std::vector<ExpertUse> uses;
    std::size_t layer = 0;  // in the cache
    std::uint32_t last_op() const { return uses.back().op.v; }
  };
  struct Graph {
    KnownGraphPtr graph;
    AddressesPtr addresses;
  };
  struct Position {
    ReadAheadWindow::Position window;
    StepClass kind = kGenerate;
    bool running = false;
  };

  // Worker thread.
  void run();
  bool take_changes(std::unique_lock<std::mutex>& lock);
  void learn(StepClass kind, const Graph& graph);
  void replan();
  void apply(MemoryPlan plan);
  void drop_all();
  void undo();
  std::uint64_t effective_budget(const MemoryLimit& limit) const;
  void check_limit();
  Position position() const;
  void use_schedule(StepClass kind);
  bool work();
  bool settle_one();
  bool is_pinned(const PlannedRange& range) const {
    return range.pinned && pinned_.contains(range.pages.address);
  }
  bool visit(ReadAheadWindow::Entry& entry, const Position& at);
  bool follow_experts(const Position& at);
  void fetch_experts(ExpertGroup& group, std::span<const std::uint32_t> experts);
  void release_experts(ExpertGroup& group);
  void pin(std::uint32_t range);
  void release(std::uint32_t range);
  void publish();
  void publish_ranges();
  std::uint64_t resident() const;

  const std::vector<ModelFile> files_;
  const std::atomic<std::uint32_t>& ops_run_;
  const std::string unavailable_;

  // Written by the inference thread.
  std::atomic<std::uint64_t> step_{0};
  std::atomic<bool> running_{false};
  std::atomic<StepClass> kind_{kGenerate};
  std::atomic<bool> wants_graph_{false};
  std::atomic<bool> acting_{false};
  std::vector<std::int64_t> op_ns_;  // least duration of each op of a generated token
  std::uint64_t read_before_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  MemoryOptions options_;
  bool options_changed_ = false, stopping_ = false;
  std::array<Graph, kClasses> graphs_;
  std::array<bool, kClasses> graph_changed_{};
  std::deque<double> recent_seconds_, recent_bytes_;
  double compute_seconds_ = 0;
  MemoryState published_;
  std::shared_ptr<const std::vector<MemoryRange>> published_ranges_;
  double published_disk_speed_ = 0;

  // Worker thread only.
  MemoryLimitReader limit_reader_;
  ModelPages pages_;
  MemoryOptions current_;
  std::array<ReadOrder, kClasses> orders_;
  std::array<bool, kClasses> learned_{};
  std::vector<WeightRange> weights_;  // of all orders, in the order of their first use
  std::map<WeightKey, std::uint32_t> weight_index_;
  std::vector<WeightRange> expert_weights_, lookup_;
  MemoryPlan plan_;
  bool planned_ = false;
  std::map<std::uint64_t, PageRange> pinned_;  // by address
  std::vector<std::uint32_t> first_range_;     // per weight, and one more
  std::array<std::vector<ReadAheadWindow::Use>, kClasses> schedules_;
  std::optional<StepClass> scheduled_;
  std::optional<ReadAheadWindow> window_;
  std::vector<bool> read_;   // per range: submitted and not released
  std::size_t settled_ = 0;  // ranges before it are pinned, if they are to be
  std::uint64_t streamed_resident_ = 0, pinned_resident_ = 0, locked_ = 0;
  int lock_error_ = 0;
  std::uint64_t bytes_submitted_ = 0, late_ = 0, reductions_ = 0;
  DiskSpeed disk_;
  MemoryLimit limit_;
  Clock::time_point next_limit_, next_publish_, last_plan_;
  std::string pressure_;

  std::array<std::vector<ExpertGroup>, kClasses> groups_;
  std::optional<ExpertCache> experts_;
  std::uint64_t expert_step_ = 0;
  std::size_t expert_group_ = 0;  // of this step, not yet passed
  bool expert_routed_ = false;    // its list was read
  std::deque<PageRange> expert_queue_;

  std::thread thread_;
};

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
    input.disk_bytes_per_second = published_disk_speed_;
  }
  disk_measured = input.disk_bytes_per_second > 0;
  if (!disk_measured) input.disk_bytes_per_second = kAssumedDiskSpeed;
  if (!graph.graph) return {};
  const ReadOrder order = read_order(graph.graph->graph, graph.graph->accesses, *graph.addresses);
  std::vector<WeightRange> weights, experts;
  for (const WeightUse& use : order.weights)
    if (!std::ranges::contains(weights, use.range)) weights.push_back(use.range);
  for (const ExpertUse& use : order.experts) {
    input.expert_bytes_per_token += use.slice * std::min(use.per_token, use.experts);
    if (!std::ranges::contains(experts, use.range)) experts.push_back(use.range);
  }
  for (const WeightRange& range : experts) input.expert_bytes += range.file.length;
  input.weights = weights;
  std::vector<MemoryPrediction> curve;
  for (const std::uint64_t budget : budgets) {
    input.budget = budget;
    const MemoryPlan plan = plan_memory(input);
    curve.push_back({.budget = budget,
                     .bytes_per_token = plan.bytes_per_token,
                     .tokens_per_second = plan.tokens_per_second,
                     .plain_bytes_per_token = plan.plain_bytes_per_token,
                     .plain_tokens_per_second = plan.plain_tokens_per_second});
  }
  return curve;
}

// ---------------------------------------------------------------- inference thread

void MemoryManager::Worker::begin_step(std::uint32_t tokens) {
  kind_.store(tokens > 1 ? kPrompt : kGenerate);
  running_.store(true);
  read_before_ = bytes_read_from_disk();
  if (!acting_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);  // the worker may be about to wait
  wake_.notify_one();
}

void MemoryManager::Worker::end_step(const FinishedStep& step) {
  running_.store(false);
  step_.fetch_add(1);
  if (!step.complete) return;
  const StepClass kind = step.tokens > 1 ? kPrompt : kGenerate;
  const std::uint64_t read = bytes_read_from_disk() - read_before_;
  if (kind == kGenerate && step.graph != nullptr && step.op_ns.size() > 0) {
    if (op_ns_.size() != step.op_ns.size()) op_ns_.assign(step.op_ns.begin(), step.op_ns.end());
    for (std::size_t op = 0; op < op_ns_.size(); ++op)
      op_ns_[op] = std::min(op_ns_[op], step.op_ns[op]);
  }
  const std::lock_guard lock(mutex_);
  if (kind == kGenerate) {
    const auto add = [](std::deque<double>& values, double value) {
      values.push_back(value);
      if (values.size() > kRecentSteps) values.pop_front();
    };
    add(recent_seconds_, static_cast<double>(step.ns) * 1e-9);
    add(recent_bytes_, static_cast<double>(read));
    std::int64_t sum = 0;
    for (const std::int64_t ns : op_ns_) sum += ns;
    compute_seconds_ = static_cast<double>(sum) * 1e-9;
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
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kNice);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (take_changes(lock)) continue;
    const std::uint64_t step = step_.load();
    lock.unlock();
    check_limit();
    const bool worked = planned_ && work();
    publish();
    const bool running = running_.load();
    if (!worked && planned_ && running) std::this_thread::sleep_for(kPoll);
    lock.lock();
    if (worked || (planned_ && running)) continue;
    wake_.wait_for(lock, kLimitInterval, [&] {
      return stopping_ || options_changed_ || std::ranges::contains(graph_changed_, true) ||
             (planned_ && (running_.load() || step_.load() != step));
    });
  }
  lock.unlock();
  undo();
}

// Returns whether there were any.
bool MemoryManager::Worker::take_changes(std::unique_lock<std::mutex>& lock) {
  const bool options_changed = std::exchange(options_changed_, false);
  const auto graph_changed = std::exchange(graph_changed_, {});
  if (!options_changed && !std::ranges::contains(graph_changed, true)) return false;
  current_ = options_;
  const std::array<Graph, kClasses> graphs = graphs_;
  lock.unlock();
  const std::size_t known = weights_.size() + expert_weights_.size();
  for (const StepClass kind : {kGenerate, kPrompt})
    if (graph_changed[kind] || (!learned_[kind] && graphs[kind].graph)) learn(kind, graphs[kind]);
  if (options_changed || weights_.size() + expert_weights_.size() != known) replan();
  publish();
  lock.lock();
  return true;
}

void MemoryManager::Worker::learn(StepClass kind, const Graph& graph) {
  orders_[kind] = read_order(graph.graph->graph, graph.graph->accesses, *graph.addresses);
  learned_[kind] = true;
  for (const WeightUse& use : orders_[kind].weights) {
    if (weight_index_.emplace(key_of(use.range), weights_.size()).second)
      weights_.push_back(use.range);
  }
  for (const WeightRange& range : orders_[kind].lookup)
    if (!std::ranges::contains(lookup_, range)) lookup_.push_back(range);

  // Groups of uses with the same list; a layer of the cache is known by its first weight.
  std::vector<ExpertGroup>& groups = groups_[kind];
  groups.clear();
  for (const ExpertUse& use : orders_[kind].experts) {
    if (use.list_address == 0) continue;
    if (groups.empty() || groups.back().uses.front().list_address != use.list_address ||
        groups.back().uses.front().routed_by != use.routed_by)
      groups.emplace_back();
    groups.back().uses.push_back(use);
    if (!std::ranges::contains(expert_weights_, use.range)) expert_weights_.push_back(use.range);
  }
  for (ExpertGroup& group : groups) {
    const auto found = std::ranges::find(expert_weights_, group.uses.front().range);
    group.layer = static_cast<std::size_t>(found - expert_weights_.begin());
  }
  if (!planned_) return;
  // The plan is the same for a graph that reads the same weights at other ops.
  schedules_[kind].clear();
  scheduled_.reset();
}

std::uint64_t MemoryManager::Worker::resident() const {
  return pinned_resident_ + streamed_resident_ + (experts_ ? experts_->resident_bytes() : 0);
}

std::uint64_t MemoryManager::Worker::effective_budget(const MemoryLimit& limit) const {
  const std::uint64_t reserve = std::max(kMinReserve, limit.limit / 50);
  const std::uint64_t ours = std::min(limit.used, resident());
  const std::uint64_t others = std::min(limit.used - ours, limit.fixed + kOthersCache);
  const std::uint64_t available =
      limit.limit > reserve + others ? limit.limit - reserve - others : 0;
  return std::min(current_.budget, available);
}

void MemoryManager::Worker::check_limit() {
  const auto now = Clock::now();
  if (now < next_limit_ || current_.budget == MemoryOptions::kOff) return;
  next_limit_ = now + kLimitInterval;
  limit_ = limit_reader_.read();
  if (weights_.empty() && expert_weights_.empty()) return;
  const std::uint64_t budget = effective_budget(limit_);
  const std::uint64_t planned = published_.budget;
  const bool fits = plan_.kind == MemoryPlan::Kind::Fits && budget >= plan_.weights;
  if (!fits && budget + kShrinkBytes < planned) {
    ++reductions_;
    pressure_ = std::format(
        "{} are available for weights instead of {}: memory is needed elsewhere below the limit "
        "of {} ({}).",
        mebibytes(budget), mebibytes(planned), mebibytes(limit_.limit), limit_.source);
    replan();
  } else if (!fits && budget > planned + kGrowBytes && now - last_plan_ > kGrowAfter) {
    pressure_.clear();
    replan();
  }
}

void MemoryManager::Worker::replan() {
  last_plan_ = Clock::now();
  if (current_.budget == MemoryOptions::kOff || !(current_.pin || current_.prefetch)) {
    undo();
    const std::lock_guard lock(mutex_);
    published_ = {};
    return;
  }
  if (weights_.empty() && expert_weights_.empty()) return;
  limit_ = limit_reader_.read();
  PlanInput input{.weights = weights_,
                  .budget = effective_budget(limit_),
                  .pin = current_.pin,
                  .prefetch = current_.prefetch,
                  .disk_bytes_per_second =
                      disk_.bytes_per_second() > 0 ? disk_.bytes_per_second() : kAssumedDiskSpeed};
  for (const WeightRange& weight : expert_weights_) input.expert_bytes += weight.file.length;
  for (const ExpertUse& use : orders_[learned_[kGenerate] ? kGenerate : kPrompt].experts)
    input.expert_bytes_per_token += use.slice * std::min(use.per_token, use.experts);
  {
    const std::lock_guard lock(mutex_);
    input.compute_seconds = compute_seconds_;
    published_.budget = input.budget;
  }
  apply(plan_memory(input));
}

// Brings the pages from the old plan to the new one. What stays pinned stays untouched.
void MemoryManager::Worker::apply(MemoryPlan plan) {
  if (plan.kind != MemoryPlan::Kind::Act) {
    undo();
    plan_ = std::move(plan);
    return;
  }
  if (window_)
    for (const std::uint32_t range : window_->clear().release) release(range);
  expert_queue_.clear();
  // Folios of pages that were read before can extend over several ranges, and are dropped only
  // as a whole.
  if (!planned_) drop_all();
  std::map<std::uint64_t, PageRange> kept;
  for (const PlannedRange& range : plan.ranges) {
    const auto found = pinned_.find(range.pages.address);
    if (range.pinned && found != pinned_.end() && found->second == range.pages)
      kept.insert(pinned_.extract(found));
  }
  for (const auto& [address, pages] : pinned_) {  // no longer
    pages_.unlock(pages);
    pages_.release(pages);
    pinned_resident_ -= pages.length;
    locked_ -= std::min(locked_, pages.length);
  }
  pinned_ = std::move(kept);
  for (const WeightRange& weight : weights_)
    pages_.set_fault_around(pages_around(weight), !current_.prefetch);
  for (const auto& [address, pages] : pinned_) pages_.set_fault_around(pages, true);
  plan_ = std::move(plan);
  planned_ = true;
  acting_ = true;
  publish_ranges();
  lock_error_ = 0;

  first_range_.assign(weights_.size() + 1, static_cast<std::uint32_t>(plan_.ranges.size()));
  for (std::uint32_t i = static_cast<std::uint32_t>(plan_.ranges.size()); i-- > 0;)
    first_range_[plan_.ranges[i].weight] = i;
  std::vector<std::uint64_t> bytes;
  for (const PlannedRange& range : plan_.ranges) {
    const bool settled = is_pinned(range);
    bytes.push_back(settled ? 0 : range.pages.length);
    if (!range.pinned && current_.prefetch) pages_.release(range.pages);
  }
  window_.emplace(std::move(bytes));
  read_.assign(plan_.ranges.size(), false);
  streamed_resident_ = 0;
  settled_ = 0;
  for (auto& schedule : schedules_) schedule.clear();
  scheduled_.reset();
  if (!current_.prefetch) return;
  for (const WeightRange& range : lookup_) {
    if (weight_index_.contains(key_of(range))) continue;  // tied embeddings
    pages_.set_fault_around(pages_around(range), false);
    pages_.release(pages_within(range));
  }
  if (expert_weights_.empty()) return;
  std::vector<ExpertCache::Layer> layers(expert_weights_.size());
  std::size_t used = 0;
  for (const ExpertGroup& group : groups_[learned_[kGenerate] ? kGenerate : kPrompt]) {
    ExpertCache::Layer& layer = layers[group.layer];
    layer.experts = group.uses.front().experts;
    for (const ExpertUse& use : group.uses) layer.bytes += pages_around(slice_of(use, 0)).length;
    ++used;
  }
  // Layers are numbered by weights; only the first weight of a layer has one.
  experts_.emplace(layers, used == 0 ? 0 : plan_.expert_cache / used * layers.size());
  for (const WeightRange& range : expert_weights_) {
    pages_.set_fault_around(pages_around(range), false);
    pages_.release(pages_within(range));
  }
  expert_step_ = 0;
  expert_group_ = 0;
  expert_routed_ = false;
}

void MemoryManager::Worker::drop_all() {
  for (const auto* weights : {&weights_, &expert_weights_, &lookup_})
    for (const WeightRange& weight : *weights) pages_.release(pages_around(weight));
  pages_.release_files();
}

// Back to what the kernel does by itself.
void MemoryManager::Worker::undo() {
  acting_ = false;
  for (const auto& [address, pages] : pinned_) pages_.unlock(pages);
  for (const WeightRange& weight : weights_) pages_.set_fault_around(pages_around(weight), true);
  for (const WeightRange& range : lookup_) pages_.set_fault_around(pages_around(range), true);
  for (const WeightRange& range : expert_weights_)
    pages_.set_fault_around(pages_around(range), true);
  pinned_.clear();
  pinned_resident_ = streamed_resident_ = locked_ = 0;
  window_.reset();
  experts_.reset();
  expert_queue_.clear();
  plan_ = {};
  planned_ = false;
  publish_ranges();
}

void MemoryManager::Worker::publish_ranges() {
  std::vector<MemoryRange> ranges;
  for (const PlannedRange& range : plan_.ranges) {
    const PageRange& pages = range.pages;
    if (!ranges.empty() && ranges.back().file == pages.file &&
        ranges.back().pinned == range.pinned &&
        ranges.back().offset + ranges.back().length == pages.offset) {
      ranges.back().length += pages.length;
      continue;
    }
    ranges.push_back({.file = pages.file,
                      .offset = pages.offset,
                      .length = pages.length,
                      .pinned = range.pinned});
  }
  const bool empty = ranges.empty();
  auto shared = std::make_shared<const std::vector<MemoryRange>>(std::move(ranges));
  const std::lock_guard lock(mutex_);
  published_ranges_ = empty ? nullptr : std::move(shared);
}

MemoryManager::Worker::Position MemoryManager::Worker::position() const {
  for (;;) {
    Position at;
    at.window.step = step_.load();
    at.running = running_.load();
    at.kind = kind_.load();
    if (at.running) {
      // The last op that ended on the inference thread may still run on others.
      const std::uint32_t run = ops_run_.load(std::memory_order_acquire);
      at.window.ops_done = run - std::min<std::uint32_t>(run, 1);
    }
    if (step_.load() == at.window.step) return at;
  }
}

void MemoryManager::Worker::use_schedule(StepClass kind) {
  if (!learned_[kind]) kind = kind == kPrompt ? kGenerate : kPrompt;
  if (scheduled_ == kind) return;
  scheduled_ = kind;
  auto& schedule = schedules_[kind];
  if (schedule.empty()) {
    for (const WeightUse& use : orders_[kind].weights) {
      const std::uint32_t weight = weight_index_.at(key_of(use.range));
      for (std::uint32_t range = first_range_[weight];
           range < plan_.ranges.size() && plan_.ranges[range].weight == weight; ++range)
        schedule.push_back({.op = use.op.v, .range = range});
    }
  }
  window_->set_schedule(schedule);
}

// One step of reading or releasing. Returns whether there was anything to do.
bool MemoryManager::Worker::work() {
  if (!current_.prefetch) return settle_one();
  const Position at = position();
  use_schedule(at.kind);
  const ReadAheadWindow::Changes& changes = window_->advance(at.window, plan_.window);
  for (const std::uint32_t range : changes.release) release(range);
  for (const std::uint32_t range : changes.fetch) {
    const PageRange& pages = plan_.ranges[range].pages;
    pages_.submit(pages);
    bytes_submitted_ += pages.length;
    read_[range] = true;
    if (!plan_.ranges[range].pinned) streamed_resident_ += pages.length;
  }
  const bool routed = experts_ && follow_experts(at);
  // Experts of the running layer are needed first.
  if (!expert_queue_.empty()) {
    disk_.busy(true);
    pages_.wait(expert_queue_.front());
    expert_queue_.pop_front();
    return true;
  }
  if (ReadAheadWindow::Entry* entry = window_->next_unread()) {
    disk_.busy(true);
    return visit(*entry, at);
  }
  // What the steps so far have not reached is pinned between steps.
  if (!at.running && settle_one()) return true;
  disk_.busy(false);
  return routed || !changes.fetch.empty() || !changes.release.empty();
}

bool MemoryManager::Worker::visit(ReadAheadWindow::Entry& entry, const Position& at) {
  const std::uint32_t range = entry.use.range;
  if (at.running && entry.step == at.window.step && entry.use.op < ops_run_.load()) ++late_;
  entry.read = true;
  const PlannedRange& planned = plan_.ranges[range];
  if (planned.pinned && !is_pinned(planned)) {
    pin(range);
  } else {
    pages_.wait(planned.pages);  // also if it is only kept warm: the kernel may have dropped it
  }
  return true;
}

// Reads a range that stays, and locks it if that is allowed.
void MemoryManager::Worker::pin(std::uint32_t range) {
  const PlannedRange& planned = plan_.ranges[range];
  const PageRange& pages = planned.pages;
  const bool fits = locked_ + pages.length <= limit_.lock_limit;
  const int error = lock_error_ != 0 ? lock_error_ : fits ? pages_.lock(pages) : ENOMEM;
  if (error == 0) {
    locked_ += pages.length;
  } else {
    lock_error_ = error;
    pages_.wait(pages);
  }
  pages_.set_fault_around(pages, true);
  pinned_.emplace(pages.address, pages);
  pinned_resident_ += pages.length;
  window_->keep(range, /*visit=*/error != 0);
}

void MemoryManager::Worker::release(std::uint32_t range) {
  const PlannedRange& planned = plan_.ranges[range];
  if (!read_[range]) return;
  read_[range] = false;
  pages_.release(planned.pages);
  if (!planned.pinned) streamed_resident_ -= planned.pages.length;
}

// Pins the next range. Returns false when all are.
bool MemoryManager::Worker::settle_one() {
  while (settled_ < plan_.ranges.size()) {
    const std::uint32_t range = static_cast<std::uint32_t>(settled_++);
    const PlannedRange& planned = plan_.ranges[range];
    if (!planned.pinned || is_pinned(planned)) continue;
    disk_.busy(true);
    pages_.submit(planned.pages);
    bytes_submitted_ += planned.pages.length;
    pin(range);
    return true;
  }
  disk_.busy(false);
  return false;
}

// ---------------------------------------------------------------- experts

// Reads the list of each layer when the router has written it, and releases what does not stay
// when the layer has been evaluated. Returns whether something happened.
bool MemoryManager::Worker::follow_experts(const Position& at) {
  std::vector<ExpertGroup>& groups = groups_[learned_[at.kind] ? at.kind : 1 - at.kind];
  if (at.window.step != expert_step_) {
    // The rest of the former step has passed.
    if (std::exchange(expert_routed_, false) && expert_group_ < groups.size())
      release_experts(groups[expert_group_]);
    expert_step_ = at.window.step;
    expert_group_ = 0;
    expert_queue_.clear();
  }
  if (!at.running) return false;
  bool changed = false;
  while (expert_group_ < groups.size()) {
    ExpertGroup& group = groups[expert_group_];
    const ExpertUse& first = group.uses.front();
    const std::uint32_t run = ops_run_.load(std::memory_order_acquire);
    if (!expert_routed_ && run <= first.routed_by.v + 1) break;
    if (!expert_routed_ && run <= group.last_op()) {
      const auto experts = listed_experts(first);
      // Still the same layer of the same step: the list was not overwritten meanwhile.
      if (ops_run_.load(std::memory_order_acquire) > group.last_op() + 1 ||
          step_.load() != at.window.step)
        break;
      fetch_experts(group, experts);
      expert_routed_ = changed = true;
    }
    if (run <= group.last_op() + 1) break;
    if (std::exchange(expert_routed_, false)) release_experts(group);
    ++expert_group_;
    changed = true;
  }
  return changed;
}

void MemoryManager::Worker::fetch_experts(ExpertGroup& group,
                                          std::span<const std::uint32_t> experts) {
  const std::span<const std::uint32_t> missing = experts_->use(group.layer, experts);
  for (const ExpertUse& use : group.uses) {
    for (const std::uint32_t expert : missing) {
      const PageRange pages = pages_around(slice_of(use, expert));
      pages_.submit(pages);
      bytes_submitted_ += pages.length;
      expert_queue_.push_back(pages);
    }
  }
}

void MemoryManager::Worker::release_experts(ExpertGroup& group) {
  for (const std::uint32_t expert : experts_->trim(group.layer))
    for (const ExpertUse& use : group.uses)
      if (const PageRange pages = pages_within(slice_of(use, expert)); pages.length > 0)
        pages_.release(pages);
}

// ---------------------------------------------------------------- state

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
  if (weights_.empty() && expert_weights_.empty()) return;
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
  if (!pressure_.empty()) state.message += " " + pressure_;
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
  const auto rate = [&](double bytes) {
    const double speed = disk_.bytes_per_second();
    if (speed == 0 && bytes > 0) return 0.0;
    const double seconds = std::max(compute_seconds_, bytes > 0 ? bytes / speed : 0);
    return seconds > 0 ? 1 / seconds : 0;
  };
  state.predicted_bytes_per_token = plan_.bytes_per_token;
  state.predicted_tokens_per_second = rate(plan_.bytes_per_token);
  state.plain_bytes_per_token = plan_.plain_bytes_per_token;
  state.plain_tokens_per_second = rate(plan_.plain_bytes_per_token);
  state.bytes_read = bytes_submitted_;
  state.late_ranges = late_;
  state.expert_hits = experts_ ? experts_->hits() : 0;
  state.expert_misses = experts_ ? experts_->misses() : 0;
  state.reductions = reductions_;
}

// ---------------------------------------------------------------- MemoryManager

MemoryManager::MemoryManager(const Setup& setup) : worker_(std::make_unique<Worker>(setup)) {}
MemoryManager::~MemoryManager() = default;
void MemoryManager::set(const MemoryOptions& options) { worker_->set(options); }
MemoryState MemoryManager::state() const { return worker_->state(); }
std::shared_ptr<const std::vector<MemoryRange>> MemoryManager::ranges() const {
  return worker_->ranges();
}
std::vector<MemoryPrediction> MemoryManager::predict(std::span<const std::uint64_t> budgets,
                                                     bool& disk_measured) const {
  return worker_->predict(budgets, disk_measured);
}
void MemoryManager::begin_step(std::uint32_t tokens) { worker_->begin_step(tokens); }
void MemoryManager::end_step(const FinishedStep& step) { worker_->end_step(step); }
bool MemoryManager::wants_graph() const { return worker_->wants_graph(); }

}  // namespace tt
