#include "tracer/memory/pages/read_ahead_window.h"

#include <algorithm>
#include <utility>

namespace tt {

ReadAheadWindow::ReadAheadWindow(std::vector<std::uint64_t> bytes)
    : bytes_(std::move(bytes)), visit_(bytes_.size(), false), uses_in_window_(bytes_.size(), 0) {}

void ReadAheadWindow::set_schedule(std::span<const Use> uses) {
  stale_.insert(stale_.end(), window_.begin(), window_.end());
  window_.clear();
  schedule_ = uses;
  next_ = 0;
  next_step_ = 0;
  first_unread_ = 0;
  bytes_ahead_ = 0;
}

void ReadAheadWindow::keep(std::uint32_t range, bool visit) {
  for (const Entry& entry : window_)
    if (entry.use.range == range) bytes_ahead_ -= bytes_[range];
  bytes_[range] = 0;
  visit_[range] = visit;
}

bool ReadAheadWindow::passed(const Entry& entry, Position position) const {
  return entry.step < position.step ||
         (entry.step == position.step && entry.use.op < position.ops_done);
}

// Keeps the capacity: no allocation while inference runs.
void ReadAheadWindow::start_changes() {
  changes_.fetch.clear();
  changes_.release.clear();
  changes_.skipped.clear();
}

void ReadAheadWindow::leave(const Entry& entry) {
  const std::uint32_t range = entry.use.range;
  if (--uses_in_window_[range] == 0 && bytes_[range] > 0) changes_.release.push_back(range);
}

// Uses that were passed before they entered the window are skipped.
void ReadAheadWindow::skip_passed(Position position) {
  const auto skip = [&] { changes_.skipped.push_back(schedule_[next_++].range); };
  if (next_step_ < position.step) {
    if (next_step_ + 1 < position.step) next_ = 0;  // a whole step was passed
    while (next_ < schedule_.size()) skip();
    next_step_ = position.step;
    next_ = 0;
  }
  if (next_step_ > position.step) return;
  while (next_ < schedule_.size() && schedule_[next_].op < position.ops_done) skip();
}

const ReadAheadWindow::Changes& ReadAheadWindow::advance(Position position,
                                                         std::uint64_t max_bytes) {
  start_changes();
  if (schedule_.empty()) return clear();
  skip_passed(position);
  while (!window_.empty() && passed(window_.front(), position)) {
    bytes_ahead_ -= bytes_[window_.front().use.range];
    leave(window_.front());
    window_.pop_front();
    first_unread_ -= std::min<std::size_t>(first_unread_, 1);
  }
  for (;;) {
    if (next_ == schedule_.size()) {
      if (next_step_ > position.step) break;  // at most one step ahead
      ++next_step_;
      next_ = 0;
    }
    const Use& use = schedule_[next_];
    if (next_step_ > position.step && use.op >= position.ops_done) break;  // a whole step ahead
    const bool due = next_step_ == position.step && use.op <= position.ops_done + 1;
    if (!due && bytes_ahead_ + bytes_[use.range] > max_bytes) break;
    window_.push_back({.use = use, .step = next_step_});
    bytes_ahead_ += bytes_[use.range];
    if (uses_in_window_[use.range]++ == 0 && bytes_[use.range] > 0)
      changes_.fetch.push_back(use.range);
    ++next_;
  }
  for (const Entry& entry : std::exchange(stale_, {})) leave(entry);
  std::erase_if(changes_.skipped, [&](std::uint32_t range) {
    return uses_in_window_[range] > 0 || bytes_[range] == 0;
  });
  return changes_;
}

ReadAheadWindow::Entry* ReadAheadWindow::next_unread() {
  while (first_unread_ < window_.size()) {
    Entry& entry = window_[first_unread_];
    if (!entry.read && (bytes_[entry.use.range] > 0 || visit_[entry.use.range])) return &entry;
    ++first_unread_;
  }
  return nullptr;
}

const ReadAheadWindow::Changes& ReadAheadWindow::clear() {
  start_changes();
  for (const Entry& entry : window_) leave(entry);
  for (const Entry& entry : std::exchange(stale_, {})) leave(entry);
  window_.clear();
  bytes_ahead_ = 0;
  first_unread_ = 0;
  next_ = 0;
  next_step_ = 0;
  return changes_;
}

}  // namespace tt
