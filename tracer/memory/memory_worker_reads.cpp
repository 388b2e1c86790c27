#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracer/memory/memory_worker.h"

namespace tt {

MemoryWorker::Position MemoryWorker::position() const {
  for (;;) {
    Position at;
    at.window.step = meter_.steps().load();
    at.running = meter_.running();
    at.kind = meter_.kind();
    if (at.running) {
      // The last op that ended on the inference thread may still run on others.
      const std::uint32_t run = meter_.ops_run().load(std::memory_order_acquire);
      at.window.ops_done = run - std::min<std::uint32_t>(run, 1);
    }
    if (meter_.steps().load() == at.window.step) return at;
  }
}

void MemoryWorker::use_schedule(StepClass kind) {
  if (!learned_[kind]) kind = kind == kPromptStep ? kGenerateStep : kPromptStep;
  if (scheduled_ == kind) return;
  scheduled_ = kind;
  auto& schedule = schedules_[kind];
  if (schedule.empty()) {
    for (const WeightUse& use : orders_[kind].weights) {
      const std::uint32_t group = plan_.group_of[weight_index_.at(key_of(use.range))];
      for (std::uint32_t range = first_range_[group];
           range < plan_.ranges.size() && plan_.ranges[range].group == group; ++range)
        schedule.push_back({.op = use.op.v, .range = range});
    }
  }
  window_->set_schedule(schedule);
}

// One step of reading or releasing. Returns whether there was anything to do.
bool MemoryWorker::work() {
  if (!current_.prefetch) return settle_one();
  const Position at = position();
  use_schedule(at.kind);
  const ReadAheadWindow::Changes& changes = window_->advance(at.window, plan_.window);
  for (const std::uint32_t range : changes.release) release(range);
  for (const std::uint32_t range : changes.skipped) pages_.release(plan_.ranges[range].pages);
  // Before the reads are submitted: they count from then on.
  if (!changes.fetch.empty() || (experts_.active() && at.running)) disk_.busy(true);
  for (const std::uint32_t range : changes.fetch) {
    const MappedPages& pages = plan_.ranges[range].pages;
    pages_.submit(pages);
    bytes_submitted_ += pages.length;
    read_[range] = true;
    if (!plan_.ranges[range].pinned) streamed_resident_ += pages.length;
  }
  const bool routed =
      experts_.active() && experts_.follow(layers_[learned_[at.kind] ? at.kind : 1 - at.kind],
                                           at.window.step, at.running);
  ReadAheadWindow::Entry* const unread = window_->next_unread();
  count_time(at.running, unread != nullptr);
  // Experts of the running layer are needed first.
  if (const auto pages = experts_.next_read()) {
    disk_.busy(true);
    pages_.wait(*pages);
    return true;
  }
  if (unread != nullptr) {
    disk_.busy(true);
    return visit(*unread, at);
  }
  // What the steps so far have not reached is pinned between steps.
  if (!at.running && settle_one()) return true;
  // The kernel does not drop pages that it is still reading: its readahead of the steps before the
  // plan may have been under way when these were released.
  if (!at.running && !std::exchange(lookups_released_, true)) release_lookups();
  disk_.busy(false);
  return routed || !changes.fetch.empty() || !changes.release.empty();
}

bool MemoryWorker::visit(ReadAheadWindow::Entry& entry, const Position& at) {
  const std::uint32_t range = entry.use.range;
  if (at.running && entry.step == at.window.step && entry.use.op < meter_.ops_run().load()) ++late_;
  ++visits_;
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
void MemoryWorker::pin(std::uint32_t range) {
  const PlannedRange& planned = plan_.ranges[range];
  const MappedPages& pages = planned.pages;
  const bool fits = locked_ + pages.length <= limit_.lock_limit;
  const int error = lock_error_ != 0 ? lock_error_ : fits ? pages_.lock(pages) : ENOMEM;
  if (error == 0) {
    locked_ += pages.length;
  } else {
    lock_error_ = error;
    pages_.wait(pages);
  }
  // A fault in a block would read the next one, too.
  if (!pages_.is_block(pages)) pages_.set_fault_around(pages, true);
  pinned_.emplace(pages.address, pages);
  pinned_resident_ += pages.length;
  window_->keep(range, /*visit=*/error != 0);
}

void MemoryWorker::release(std::uint32_t range) {
  const PlannedRange& planned = plan_.ranges[range];
  if (!read_[range]) return;
  read_[range] = false;
  pages_.release(planned.pages);
  if (!planned.pinned) streamed_resident_ -= planned.pages.length;
}

// Pins the next range. Returns false when all are.
bool MemoryWorker::settle_one() {
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

}  // namespace tt
