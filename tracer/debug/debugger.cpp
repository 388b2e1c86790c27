#include "tracer/debug/debugger.h"

#include <ggml.h>

#include <algorithm>
#include <format>
#include <utility>

#include "tracer/format/names/names.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

using namespace std::chrono_literals;

// A cancellation cannot wake the inference thread: a signal handler may request it.
constexpr auto kCancelPoll = 20ms;

// As assign_op_layers(), as far as one node shows: ggml calls a node without a name node_N.
LayerId layer_of_node(const ggml_tensor& node) {
  const LayerId own = layer_of(node.name);
  if (own != kNoLayer || !std::string_view(node.name).starts_with("node_")) return own;
  for (const ggml_tensor* source : node.src) {
    if (source == nullptr) break;
    if (const LayerId layer = layer_of(source->name); layer != kNoLayer) return layer;
  }
  return kNoLayer;
}

bool overlap(const ggml_tensor& a, const ggml_tensor& b) {
  const auto* a_begin = static_cast<const std::byte*>(a.data);
  const auto* b_begin = static_cast<const std::byte*>(b.data);
  return a_begin < b_begin + ggml_nbytes(&b) && b_begin < a_begin + ggml_nbytes(&a);
}

std::string source_label(std::size_t source) { return std::format("src{}", source); }

std::vector<StoppedTensor> tensors_at(const ggml_tensor& node, bool before) {
  std::vector<StoppedTensor> tensors;
  const auto add = [&](std::string label, const ggml_tensor& of, std::string unreadable) {
    tensors.push_back({.label = std::move(label),
                       .name = of.name,
                       .type = ggml_type_name(of.type),
                       .ne = shape_of(of),
                       .unreadable = std::move(unreadable)});
  };
  add("output", node, before ? "the op has not run" : unreadable_reason(node));
  for (std::size_t i = 0; i < std::size(node.src) && node.src[i] != nullptr; ++i) {
    const ggml_tensor& source = *node.src[i];
    add(source_label(i), source,
        !before && overlap(source, node) ? "the output has overwritten it"
                                         : unreadable_reason(source));
  }
  return tensors;
}

std::string too_many_changes() {
  return std::format("{} changes were made, which is the maximum.", Debugger::kMaxChanges);
}

std::unexpected<std::string> not_stopped() {
  return std::unexpected(std::string("The run is not stopped."));
}

}  // namespace

std::expected<std::shared_ptr<Debugger>, std::string> Debugger::make(
    const DebugOptions& options, std::uint32_t n_heads, std::function<void()> on_change) {
  auto breakpoints = parse_breakpoints(options.breakpoints);
  if (!breakpoints) return std::unexpected(breakpoints.error());
  std::shared_ptr<Debugger> debugger(new Debugger(options, n_heads, std::move(on_change)));
  for (Breakpoint& each : *breakpoints)
    debugger->breakpoints_.push_back(
        {.number = debugger->next_number_++, .breakpoint = std::move(each)});
  return debugger;
}

Debugger::Debugger(const DebugOptions& options, std::uint32_t n_heads,
                   std::function<void()> on_change)
    : n_heads_(n_heads),
      hold_(options.hold_ms),
      on_change_(std::move(on_change)),
      interrupted_(options.stop_at_first_op) {}

// ---------------------------------------------------------------- any thread

std::expected<std::uint32_t, std::string> Debugger::add(const std::string& text) {
  auto made = Breakpoint::parse(text);
  if (!made) return std::unexpected(made.error());
  const std::lock_guard lock(mutex_);
  if (breakpoints_.size() == kMaxBreakpoints) {
    return std::unexpected(std::format(
        "There are {} breakpoints, which is the maximum. Delete one.", kMaxBreakpoints));
  }
  breakpoints_.push_back({.number = next_number_, .breakpoint = *std::move(made)});
  return next_number_++;
}

bool Debugger::remove(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(breakpoints_, [&](const Set& set) { return set.number == number; }) > 0;
}

std::vector<NumberedBreakpoint> Debugger::breakpoints() const {
  const std::lock_guard lock(mutex_);
  std::vector<NumberedBreakpoint> all;
  for (const Set& set : breakpoints_)
    all.push_back({.number = set.number, .text = set.breakpoint.text(), .hits = set.hits});
  return all;
}

std::optional<DebugStop> Debugger::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

std::optional<std::chrono::milliseconds> Debugger::time_left() const {
  const std::lock_guard lock(mutex_);
  if (!stop_ || !until_) return std::nullopt;
  const auto left = *until_ - std::chrono::steady_clock::now();
  return std::max(0ms, std::chrono::duration_cast<std::chrono::milliseconds>(left));
}

bool Debugger::resume(RunUntil until, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  if (!stop_) return false;
  goal_ = until;
  goal_count_ = std::max(count, 1U);
  left_ = stop_->place;
  stop_.reset();
  resumed_.notify_all();
  return true;
}

void Debugger::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  abandoned_ = false;
}

std::expected<TensorValues, std::string> Debugger::read(std::string_view tensor,
                                                        const Selection& selection) const {
  const std::lock_guard lock(mutex_);
  if (!stop_) return not_stopped();
  renew();
  std::size_t found = stop_->is_before ? 1 : 0;
  if (!tensor.empty()) {
    found = 0;
    while (found < stop_->tensors.size() && stop_->tensors[found].label != tensor &&
           stop_->tensors[found].name != tensor)
      ++found;
  }
  if (found >= stop_->tensors.size()) {
    return std::unexpected(std::format("{} cannot be read here. These can: {}.", tensor,
                                       join(stop_->tensors, [](const StoppedTensor& of) {
                                         return of.label + " (" + of.name + ")";
                                       })));
  }
  const StoppedTensor& of = stop_->tensors[found];
  if (!of.unreadable.empty())
    return std::unexpected(std::format("{} cannot be read: {}.", of.name, of.unreadable));
  return read_values(found == 0 ? *stopped_at_ : *stopped_at_->src[found - 1], selection);
}

std::expected<MadeChange, std::string> Debugger::change(const Change& change, bool keep) {
  const std::lock_guard lock(mutex_);
  if (!stop_) return not_stopped();
  renew();
  if (output_ == nullptr) {
    return std::unexpected("Only the output of an op that has run can be changed. Step once.");
  }
  if (changes_.size() == kMaxChanges) return std::unexpected(too_many_changes());
  const auto elements = change.apply(*output_, n_heads_);
  if (!elements) return std::unexpected(elements.error());
  changes_.push_back({.place = stop_->place,
                      .text = change.text(),
                      .elements = *elements,
                      .last_step = stop_->place.step,
                      .kept = keep ? next_kept_ : 0});
  if (keep) {
    kept_.push_back({.state = {.number = next_kept_++,
                               .place = stop_->place,
                               .text = change.text(),
                               .steps = 1,
                               .problem = {}},
                     .change = change,
                     .op = key_,
                     .record = changes_.size() - 1});
  }
  return changes_.back();
}

std::vector<KeptChange> Debugger::kept() const {
  const std::lock_guard lock(mutex_);
  std::vector<KeptChange> all;
  for (const Kept& kept : kept_) all.push_back(kept.state);
  return all;
}

bool Debugger::release(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(kept_, [&](const Kept& kept) { return kept.state.number == number; }) > 0;
}

std::vector<MadeChange> Debugger::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

WatchedPage Debugger::watched(std::uint64_t from, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = watched_dropped_ + watched_.size();
  WatchedPage page{.first = std::clamp(from, watched_dropped_, end), .rows = {}};
  const auto begin = watched_.begin() + static_cast<std::ptrdiff_t>(page.first - watched_dropped_);
  const auto count = std::min<std::uint64_t>(limit, end - page.first);
  page.rows.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  return page;
}

void Debugger::renew() const {
  if (hold_) until_ = std::chrono::steady_clock::now() + *hold_;
}

// ---------------------------------------------------------------- inference thread

void Debugger::begin_run(const std::atomic<bool>& cancelled) { cancelled_ = &cancelled; }

void Debugger::end_run() { cancelled_ = nullptr; }

void Debugger::begin_step(const Step& step) {
  place_.step = step.id;
  place_.first_token = step.first_token;
  place_.n_tokens = step.n_tokens;
  counts_.clear();
}

void Debugger::before_op(OpId op, const ggml_tensor& node) {
  place_.op = op;
  place_.layer = layer_of_node(node);
  place_.operation = ggml_op_desc(&node);
  place_.name = node.name;
  key_ = key_of(node);
  if (is_cancelled()) return;
  std::unique_lock lock(mutex_);
  auto numbers = hits(node, /*before=*/true);
  if (!std::exchange(interrupted_, false) && (numbers.empty() || abandoned_)) return;
  hold(lock, node, /*before=*/true, std::move(numbers));
}

void Debugger::after_op(OpId, ggml_tensor& node) {
  std::unique_lock lock(mutex_);
  make_kept(node);
  if (is_cancelled()) return;
  auto numbers = hits(node, /*before=*/false);
  const bool reached = reaches_goal();
  if (abandoned_ || (numbers.empty() && !reached)) return;
  output_ = &node;
  hold(lock, node, /*before=*/false, std::move(numbers));
  output_ = nullptr;
}

Debugger::OpKey Debugger::key_of(const ggml_tensor& node) {
  const std::string_view name = node.name;
  OpKey key{.operation = place_.operation,
            .name = name.starts_with("node_") ? std::string() : std::string(name),
            .layer = place_.layer};
  key.nth = counts_[key]++;
  return key;
}

void Debugger::make_kept(ggml_tensor& node) {
  for (Kept& kept : kept_) {
    if (kept.op != key_ || kept.state.place.step == place_.step) continue;
    MadeChange& last = changes_[kept.record];
    auto elements = kept.change.count(node, n_heads_);
    const bool extends = last.place.op == place_.op && last.elements == elements &&
                         last.last_step.v + 1 == place_.step.v &&
                         last.place.n_tokens == place_.n_tokens;
    // A change that could not be recorded must not be made.
    if (elements && !extends && changes_.size() == kMaxChanges) {
      if (!last.ended) last.ended = place_.step;
      kept.state.problem =
          std::format("It ended at step {}. {}", last.ended->v, too_many_changes());
      continue;
    }
    if (elements) elements = kept.change.apply(node, n_heads_);
    kept.state.problem = elements ? std::string() : elements.error();
    if (!elements) continue;
    ++kept.state.steps;
    if (extends) {
      last.last_step = place_.step;
      continue;
    }
    kept.record = changes_.size();
    changes_.push_back({.place = place_,
                        .text = kept.state.text,
                        .elements = *elements,
                        .last_step = place_.step,
                        .kept = kept.state.number});
  }
}

// The numbers of the breakpoints that stop here. Reports what is watched.
std::vector<std::uint32_t> Debugger::hits(const ggml_tensor& node, bool before) {
  std::vector<std::uint32_t> numbers;
  std::optional<std::optional<OutputStatistics>> statistics;  // computed at most once
  const auto output = [&] {
    if (!statistics) statistics = statistics_of(node, scratch_);
    return *statistics;
  };
  for (Set& set : breakpoints_) {
    const Breakpoint& at = set.breakpoint;
    if (at.is_before() != before || !at.is_at(place_) ||
        (at.needs_experts() && !at.has_expert(routed_experts(node))))
      continue;
    if (at.needs_statistics()) {
      const auto of = output();
      if (!of || !at.holds(*of)) continue;
    }
    ++set.hits;
    if (!at.is_watch()) {
      numbers.push_back(set.number);
      continue;
    }
    if (watched_.size() == kMaxWatched) {
      watched_.pop_front();
      ++watched_dropped_;
    }
    watched_.push_back({.breakpoint = set.number, .place = place_, .statistics = output()});
  }
  return numbers;
}

// Whether a step that a client asked for ends at this op.
bool Debugger::reaches_goal() {
  switch (goal_) {
    case RunUntil::Breakpoint:
      return false;
    case RunUntil::Op:
      return --goal_count_ == 0;
    case RunUntil::Layer:
      if (place_.layer == kNoLayer || (place_.layer == left_.layer && place_.step == left_.step))
        return false;
      left_ = place_;
      return --goal_count_ == 0;
    case RunUntil::Step:
      if (place_.step == left_.step) return false;
      left_ = place_;
      return --goal_count_ == 0;
  }
  return false;
}

void Debugger::hold(std::unique_lock<std::mutex>& lock, const ggml_tensor& node, bool before,
                    std::vector<std::uint32_t> breakpoints) {
  const auto notify = [&] {
    if (!on_change_) return;
    lock.unlock();
    on_change_();
    lock.lock();
  };
  goal_ = RunUntil::Breakpoint;
  stopped_at_ = &node;
  stop_ = DebugStop{
      .number = ++stops_,
      .place = place_,
      .is_before = before,
      .breakpoints = std::move(breakpoints),
      .tensors = tensors_at(node, before),
      .changeable = before ? std::vector<std::string>() : changeable_parts(node, n_heads_)};
  renew();
  notify();
  while (stop_ && !is_cancelled()) {
    if (until_ && std::chrono::steady_clock::now() >= *until_) {
      abandoned_ = true;
      break;
    }
    resumed_.wait_for(lock, kCancelPoll);
  }
  stop_.reset();
  stopped_at_ = nullptr;
  notify();
}

}  // namespace tt
