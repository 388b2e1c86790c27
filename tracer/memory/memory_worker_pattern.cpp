#include <algorithm>
#include <format>
#include <utility>

#include "tracer/memory/memory_worker.h"

namespace tt {

// Before the first step: the order of the last start.
void MemoryWorker::load_pattern() {
  if (pattern_file_.empty() || exchange_.has_given_pattern()) return;  // which is used instead
  auto stored = read_pattern(pattern_file_, files_);
  if (!stored) return;
  if (!*stored) {
    exchange_.set_pattern_note(
        std::format("The access pattern of the last start ({}) {}. It is not used.",
                    pattern_file_.string(), stored->error()));
    return;
  }
  adopt_pattern(**std::move(stored));
}

void MemoryWorker::adopt_pattern(StoredPattern pattern) {
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
  for (const StepClass kind : {kGenerateStep, kPromptStep}) {
    if (pattern.orders[kind] == WeightOrder{} || learned_[kind]) continue;
    adopt(kind, std::move(pattern.orders[kind]));
    from_pattern_[kind] = adopted = true;
  }
  if (!adopted) return;
  if (pattern.window_seconds > 0)
    first_window_seconds_ = std::clamp(pattern.window_seconds, kWindowSeconds, kMaxWindowSeconds);
  stored_disk_speed_ = pattern.disk_bytes_per_second;
  if (pattern.fault_bytes_per_second > 0) exchange_.set_fault_speed(pattern.fault_bytes_per_second);
}

void MemoryWorker::save_pattern(bool always) {
  if (pattern_file_.empty() || !learned_[kGenerateStep] || from_pattern_[kGenerateStep]) return;
  StoredPattern pattern{.window_seconds = window_seconds_,
                        .disk_bytes_per_second = disk_.bytes_per_second() > 0
                                                     ? disk_.bytes_per_second()
                                                     : stored_disk_speed_,
                        .fault_bytes_per_second = exchange_.faults().bytes_per_second,
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
    exchange_.set_pattern_note(
        std::format("The access pattern cannot be stored in {}: it is learned again "
                    "after the next start.",
                    pattern_file_.string()));
  }
}

}  // namespace tt
