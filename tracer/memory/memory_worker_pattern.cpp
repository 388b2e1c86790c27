#include <algorithm>
#include <format>
#include <utility>

#include "tracer/memory/memory_worker.h"

namespace tt {

void MemoryManager::Worker::set_pattern_note(std::string note) {
  const std::lock_guard lock(mutex_);
  pattern_note_ = std::move(note);
}

// Before the first step: the order of the last start.
void MemoryManager::Worker::load_pattern() {
  {
    const std::lock_guard lock(mutex_);
    if (given_pattern_) return;  // instead
  }
  if (pattern_file_.empty()) return;
  auto stored = read_pattern(pattern_file_, files_);
  if (!stored) return;
  if (!*stored) {
    set_pattern_note(std::format("The access pattern of the last start ({}) {}. It is not used.",
                                 pattern_file_.string(), stored->error()));
    return;
  }
  adopt_pattern(**std::move(stored));
}

void MemoryManager::Worker::adopt_pattern(StoredPattern pattern) {
  if (!address_of_) return;
  bool mapped = true;
  const auto locate = [&](WeightRange& range) {
    const auto address = address_of_(range.file);
    mapped = mapped && address.has_value();
    range.address = address.value_or(0);
  };
  for (WeightOrder& order : pattern.orders) {
    for (WeightUse& use : order.weights) locate(use.range);
    for (ExpertUse& use : order.experts) locate(use.range);
    for (WeightRange& range : order.lookup) locate(range);
  }
  if (!mapped) return;  // the weights were loaded in another way
  bool adopted = false;
  for (const StepClass kind : {kGenerate, kPrompt}) {
    if (pattern.orders[kind] == WeightOrder{} || learned_[kind]) continue;
    adopt(kind, std::move(pattern.orders[kind]));
    from_pattern_[kind] = adopted = true;
  }
  if (!adopted) return;
  if (pattern.window_seconds > 0)
    first_window_seconds_ = std::clamp(pattern.window_seconds, kWindowSeconds, kMaxWindowSeconds);
  stored_disk_speed_ = pattern.disk_bytes_per_second;
  const std::lock_guard lock(mutex_);
  if (pattern.fault_bytes_per_second > 0)
    faults_ = {.bytes = faults_.bytes,
               .bytes_per_second = pattern.fault_bytes_per_second,
               .with_computing = true};
}

void MemoryManager::Worker::save_pattern(bool always) {
  if (pattern_file_.empty() || !learned_[kGenerate] || from_pattern_[kGenerate]) return;
  StoredPattern pattern{.window_seconds = window_seconds_,
                        .disk_bytes_per_second = disk_.bytes_per_second() > 0
                                                     ? disk_.bytes_per_second()
                                                     : stored_disk_speed_,
                        .fault_bytes_per_second = faults().bytes_per_second,
                        .orders = orders_};
  // Without what differs from start to start.
  for (WeightOrder& order : pattern.orders) {
    for (WeightUse& use : order.weights) use.range.address = 0;
    for (WeightRange& range : order.lookup) range.address = 0;
    for (ExpertUse& use : order.experts) {
      use.range.address = use.list_address = use.token_stride = 0;
      use.routed_by = {};
      use.list = kNoSlot;
    }
  }
  if (!always && pattern.orders == stored_.orders &&
      pattern.window_seconds == stored_.window_seconds)
    return;
  if (write_pattern(pattern_file_, pattern_text(pattern, files_))) {
    stored_ = std::move(pattern);
  } else {
    set_pattern_note(
        std::format("The access pattern cannot be stored in {}: it is learned again "
                    "after the next start.",
                    pattern_file_.string()));
  }
}

}  // namespace tt
