#include <algorithm>
#include <format>
#include <span>
#include <utility>

#include "tracer/memory/limits/mebibytes.h"
#include "tracer/memory/memory_worker.h"
#include "tracer/memory/plan/compute_time.h"
#include "tracer/memory/plan/fault_replay.h"

namespace tt {

namespace {

using namespace std::chrono_literals;

// The budget grows only after it was stable for this time.
constexpr auto kGrowAfter = 3s;
constexpr std::uint64_t kShrinkBytes = 4U << 20, kGrowBytes = 32U << 20;

}  // namespace

bool MemoryWorker::learn(StepClass kind, const MemoryExchange::Graph& graph) {
  bool forgot = false;
  WeightOrder order = weight_order(graph.graph->graph, graph.graph->accesses, *graph.addresses);
  if (std::exchange(from_pattern_[kind], false) && kind == kGenerateStep &&
      !std::ranges::equal(order.weights, orders_[kind].weights, {}, &WeightUse::range,
                          &WeightUse::range)) {
    // The model was started with other options: some of the weights may be elsewhere now.
    weights_.clear();
    weight_index_.clear();
    lookup_.clear();
    learned_ = from_pattern_ = {};
    forgot = true;
    for (auto& schedule : schedules_) schedule.clear();
  }
  if (kind == kGenerateStep) {
    exchange_.set_pattern_note("");
    exchange_.set_weight_bytes(weight_bytes_of_ops(order, graph.graph->graph.ops.size()));
  }
  adopt(kind, std::move(order));
  pattern_changed_ = true;
  layers_[kind] = experts_.layers_of(orders_[kind].experts);
  if (planned_) {
    // The plan is the same for a graph that reads the same weights at other ops.
    schedules_[kind].clear();
    scheduled_.reset();
  }
  return forgot;
}

void MemoryWorker::adopt(StepClass kind, WeightOrder order) {
  orders_[kind] = std::move(order);
  learned_[kind] = true;
  for (const WeightUse& use : orders_[kind].weights) {
    if (weight_index_.emplace(key_of(use.range), weights_.size()).second)
      weights_.push_back(use.range);
  }
  for (const WeightRange& range : orders_[kind].lookup)
    if (!std::ranges::contains(lookup_, range)) lookup_.push_back(range);
}

std::uint64_t MemoryWorker::resident() const {
  return pinned_resident_ + streamed_resident_ + experts_.resident_bytes();
}

std::uint64_t MemoryWorker::effective_budget(const MemoryLimit& limit) const {
  return std::min(current_.budget, free_for_weights(limit, resident()));
}

void MemoryWorker::check_limit() {
  const auto now = Clock::now();
  if (now < next_limit_ || current_.budget == MemoryOptions::kOff) return;
  next_limit_ = now + kLimitInterval;
  limit_ = limit_reader_.read();
  if (now >= next_others_) {
    next_others_ = now + kOthersInterval;
    others_ = other_locks(system_root_);
  }
  if (weights_.empty() && experts_.weights().empty()) return;
  const std::uint64_t budget = effective_budget(limit_);
  const std::uint64_t planned = state_.budget;
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

void MemoryWorker::judge_window_anew() {
  visits_ = 0;
  late_before_ = late_;
  reading_ = idle_ = {};
}

void MemoryWorker::count_time(bool running, bool reading) {
  const auto now = Clock::now();
  if (running) (was_reading_ ? reading_ : idle_) += now - worked_;
  worked_ = now;
  was_reading_ = reading;
}

// Reads further ahead if too many ranges were not in memory when their op ran although the disk
// was idle before, for example because some ops read much more than others, or because this thread
// had to wait for a processor. Where the disk is always busy, a larger window only takes memory.
void MemoryWorker::check_lateness() {
  constexpr std::uint64_t kJudged = 1000;
  constexpr double kLateShare = 0.02, kIdleShare = 0.1;
  if (visits_ < kJudged) return;
  const bool judged = !std::exchange(starting_, false);
  const bool too_late =
      static_cast<double>(late_ - late_before_) > kLateShare * static_cast<double>(visits_);
  const bool idle = static_cast<double>(idle_.count()) >
                    kIdleShare * static_cast<double>((idle_ + reading_).count());
  const bool may_grow = window_seconds_ < kMaxWindowSeconds && plan_.window < state_.budget / 5;
  judge_window_anew();
  if (!judged || !too_late || !idle || !may_grow) return;
  window_seconds_ *= 2;
  pattern_changed_ = true;
  replan();
}

void MemoryWorker::replan() {
  last_plan_ = Clock::now();
  next_publish_ = {};  // at once
  starting_ = true;
  judge_window_anew();
  if (current_.budget == MemoryOptions::kOff || !(current_.pin || current_.prefetch)) {
    undo();
    state_ = {};
    return;
  }
  if (weights_.empty() && experts_.weights().empty()) return;
  limit_ = limit_reader_.read();
  PlanInput input{.weights = weights_,
                  .budget = effective_budget(limit_),
                  .pin = current_.pin,
                  .prefetch = current_.prefetch,
                  .speeds = {.blocks = disk_.bytes_per_second() > 0 ? disk_.bytes_per_second()
                                       : stored_disk_speed_ > 0     ? stored_disk_speed_
                                                                    : kAssumedDiskSpeed,
                             .faults = exchange_.faults()}};
  input.window_seconds = window_seconds_;
  input.block = block_bytes();
  std::vector<WeightRange> expert_weights = experts_.weights();
  // Of the last start: which experts are chosen is only readable in a graph of this one.
  if (from_pattern_[kGenerateStep])
    for (const ExpertUse& use : orders_[kGenerateStep].experts)
      if (!std::ranges::contains(expert_weights, use.range)) expert_weights.push_back(use.range);
  for (const WeightRange& weight : expert_weights) input.expert_bytes += weight.file.length;
  for (const ExpertUse& use :
       orders_[learned_[kGenerateStep] ? kGenerateStep : kPromptStep].experts)
    input.expert_bytes_per_token += use.slice * std::min(use.per_token, use.experts);
  expert_bytes_per_token_ = input.expert_bytes_per_token;
  input.compute_seconds = exchange_.compute_seconds();
  state_.budget = input.budget;
  const FaultReplay replay(orders_[learned_[kGenerateStep] ? kGenerateStep : kPromptStep]);
  input.faulted = [&](std::uint64_t room, std::span<const FileRange> kept) {
    return replay.bytes_per_token(static_cast<std::uint64_t>(input.speeds.faults.bytes), room,
                                  kept);
  };
  apply(plan_memory(input));
}

// Brings the pages from the old plan to the new one. What stays pinned stays untouched.
void MemoryWorker::apply(MemoryPlan plan) {
  if (plan.kind != MemoryPlan::Kind::Act) {
    undo();
    plan_ = std::move(plan);
    return;
  }
  if (window_)
    for (const std::uint32_t range : window_->clear().release) release(range);
  experts_.stop();
  // Folios of pages that were read before can extend over several ranges, and are dropped only
  // as a whole.
  if (!planned_) drop_all();
  std::map<std::uint64_t, MappedPages> kept;
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
  for (const auto& [address, pages] : pinned_)
    if (!pages_.is_block(pages)) pages_.set_fault_around(pages, true);
  if (current_.prefetch && block_bytes() > 0) {
    for (const PlannedRange& range : plan.ranges)
      if (range.pages.length == block_bytes()) pages_.use_blocks(range.pages);
  } else {
    pages_.forget_blocks();
  }
  plan_ = std::move(plan);
  planned_ = true;
  exchange_.set_acting(true);
  publish_ranges();
  lock_error_ = 0;

  const std::size_t groups =
      plan_.group_of.empty() ? 0 : std::size_t{std::ranges::max(plan_.group_of)} + 1;
  first_range_.assign(groups + 1, static_cast<std::uint32_t>(plan_.ranges.size()));
  for (std::uint32_t i = static_cast<std::uint32_t>(plan_.ranges.size()); i-- > 0;)
    first_range_[plan_.ranges[i].group] = i;
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
  for (const WeightRange& range : lookup_)
    if (!weight_index_.contains(key_of(range))) pages_.set_fault_around(pages_around(range), false);
  release_lookups();
  lookups_released_ = false;
  // Of a graph that was seen: a pattern does not say where the lists of experts are.
  if (!experts_.weights().empty())
    experts_.start(layers_[layers_[kGenerateStep].empty() ? kPromptStep : kGenerateStep],
                   plan_.expert_cache, current_.predict);
}

// Of tensors of which an op reads some rows, such as the token embeddings.
void MemoryWorker::release_lookups() {
  for (const WeightRange& range : lookup_)
    if (!weight_index_.contains(key_of(range))) pages_.release(pages_within(range));  // not tied
}

void MemoryWorker::drop_all() {
  for (const auto* weights :
       {&std::as_const(weights_), &experts_.weights(), &std::as_const(lookup_)})
    for (const WeightRange& weight : *weights) pages_.release(pages_around(weight));
  pages_.release_files();
}

// Back to what the kernel does by itself.
void MemoryWorker::undo() {
  exchange_.set_acting(false);
  for (const auto& [address, pages] : pinned_) pages_.unlock(pages);
  for (const WeightRange& weight : weights_) pages_.set_fault_around(pages_around(weight), true);
  for (const WeightRange& range : lookup_) pages_.set_fault_around(pages_around(range), true);
  experts_.stop();
  pages_.forget_blocks();
  pinned_.clear();
  pinned_resident_ = streamed_resident_ = locked_ = 0;
  window_.reset();
  plan_ = {};
  planned_ = false;
  publish_ranges();
}

void MemoryWorker::publish_ranges() {
  std::vector<MemoryRange> ranges;
  for (const PlannedRange& range : plan_.ranges) {
    const MappedPages& pages = range.pages;
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
  exchange_.publish(empty ? nullptr : std::move(shared));
}

}  // namespace tt
