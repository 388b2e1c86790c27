#include "tracer/memory/memory_exchange.h"

#include <algorithm>
#include <utility>

namespace tt {

namespace {

constexpr std::size_t kRecentSteps = 16;

void add_recent(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kRecentSteps) values.pop_front();
}

double mean(const std::deque<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

MemoryExchange::MemoryExchange(std::string unavailable, double fault_bytes,
                               std::optional<StoredPattern> given_pattern)
    : unavailable_(std::move(unavailable)),
      faults_{.bytes = fault_bytes},
      given_pattern_(std::move(given_pattern)) {}

bool MemoryExchange::set(const MemoryOptions& options) {
  const std::lock_guard lock(mutex_);
  if (options == options_) return false;
  options_ = options;
  options_changed_ = true;
  recent_seconds_.clear();
  recent_bytes_.clear();
  const bool on = options.budget != MemoryOptions::kOff && unavailable_.empty();
  wants_graph_ = on && graphs_[kGenerateStep].graph == nullptr;
  wake_.notify_all();
  return on && !std::exchange(started_, true);
}

void MemoryExchange::use_pattern(StoredPattern pattern) {
  const std::lock_guard lock(mutex_);
  given_pattern_ = std::move(pattern);
  wake_.notify_all();
}

void MemoryExchange::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
}

MemoryState MemoryExchange::state() const {
  const std::lock_guard lock(mutex_);
  MemoryState state = findings_.state;
  state.options = options_;
  state.compute_seconds = compute_seconds_;
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
    if (!findings_.other_locks.empty()) state.message += " " + findings_.other_locks;
  } else if (!pattern_note_.empty()) {
    state.message += " " + pattern_note_;
  }
  return state;
}

std::shared_ptr<const std::vector<MemoryRange>> MemoryExchange::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

MemoryExchange::Known MemoryExchange::known() const {
  const std::lock_guard lock(mutex_);
  return {.graph = graphs_[graphs_[kGenerateStep].graph ? kGenerateStep : kPromptStep],
          .compute_seconds = compute_seconds_,
          .speeds = {.blocks = findings_.disk_bytes_per_second, .faults = faults_}};
}

FaultReads MemoryExchange::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

double MemoryExchange::compute_seconds() const {
  const std::lock_guard lock(mutex_);
  return compute_seconds_;
}

std::shared_ptr<const std::vector<std::uint64_t>> MemoryExchange::weight_bytes() const {
  const std::lock_guard lock(mutex_);
  return weight_bytes_;
}

void MemoryExchange::add(Step step) {
  const std::lock_guard lock(mutex_);
  if (step.fault_bytes_per_second > 0) set_fault_speed_locked(step.fault_bytes_per_second);
  if (step.kind == kGenerateStep) {
    add_recent(recent_seconds_, step.seconds);
    add_recent(recent_bytes_, step.bytes_read);
    compute_seconds_ = step.compute_seconds;
  }
  Graph& known = graphs_[step.kind];
  if (step.graph.graph == nullptr ||
      (known.graph == step.graph.graph && known.addresses == step.graph.addresses))
    return;
  known = std::move(step.graph);
  graph_changed_[step.kind] = true;
  if (step.kind == kGenerateStep) wants_graph_ = false;
  wake_.notify_one();
}

void MemoryExchange::step_begins() {
  if (!acting()) return;
  const std::lock_guard lock(mutex_);  // the worker may be about to wait
  wake_.notify_one();
}

bool MemoryExchange::changed() const {
  return options_changed_ || given_pattern_ || std::ranges::contains(graph_changed_, true);
}

std::optional<MemoryExchange::Changes> MemoryExchange::take_changes() {
  const std::lock_guard lock(mutex_);
  if (!changed()) return std::nullopt;
  return Changes{.options = options_,
                 .options_changed = std::exchange(options_changed_, false),
                 .pattern = std::exchange(given_pattern_, {}),
                 .graphs = graphs_,
                 .graph_changed = std::exchange(graph_changed_, {})};
}

bool MemoryExchange::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool MemoryExchange::has_given_pattern() const {
  const std::lock_guard lock(mutex_);
  return given_pattern_.has_value();
}

void MemoryExchange::wait(std::chrono::milliseconds at_most, const std::function<bool()>& moved) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, at_most, [&] { return stopping_ || changed() || moved(); });
}

void MemoryExchange::publish(Findings findings) {
  const std::lock_guard lock(mutex_);
  findings_ = std::move(findings);
}

void MemoryExchange::publish(std::shared_ptr<const std::vector<MemoryRange>> ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = std::move(ranges);
}

void MemoryExchange::set_weight_bytes(std::vector<std::uint64_t> bytes) {
  const std::lock_guard lock(mutex_);
  weight_bytes_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(bytes));
}

void MemoryExchange::set_fault_speed(double bytes_per_second) {
  const std::lock_guard lock(mutex_);
  set_fault_speed_locked(bytes_per_second);
}

void MemoryExchange::set_fault_speed_locked(double bytes_per_second) {
  faults_ = {.bytes = faults_.bytes, .bytes_per_second = bytes_per_second, .with_computing = true};
}

void MemoryExchange::set_pattern_note(std::string note) {
  const std::lock_guard lock(mutex_);
  pattern_note_ = std::move(note);
}

}  // namespace tt
