// The thread that acts: it follows the running step, plans, reads ahead, pins and releases. All its
// state is its own; what it shares with other threads is in MemoryExchange and StepMeter, which it
// is given.
//
// memory_worker.cpp          the loop, the position of the running step, the published state
// memory_worker_plan.cpp     learning the order, planning, pinning and releasing as planned
// memory_worker_reads.cpp    reading ahead of the running op
// memory_worker_pattern.cpp  keeping the order between starts
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tracer/memory/experts/routed_experts.h"
#include "tracer/memory/limits/memory_limit.h"
#include "tracer/memory/limits/other_locks.h"
#include "tracer/memory/memory_exchange.h"
#include "tracer/memory/memory_manager.h"
#include "tracer/memory/pages/disk_speed.h"
#include "tracer/memory/pages/model_pages.h"
#include "tracer/memory/pages/read_ahead_window.h"
#include "tracer/memory/plan/memory_plan.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/memory/plan/weight_order.h"
#include "tracer/memory/step_meter.h"

namespace tt {

class MemoryWorker {
 public:
  // Any thread. `exchange` and `meter` must outlive this object.
  MemoryWorker(const MemoryManager::Setup& setup, MemoryExchange& exchange, const StepMeter& meter);

  // Worker thread. Returns after MemoryExchange::stop(), with all pages as the kernel keeps them.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  // Identifies the part of a weight.
  using WeightKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
  static WeightKey key_of(const WeightRange& weight) {
    return {weight.file.file, weight.file.offset, weight.file.length};
  }
  static constexpr std::chrono::milliseconds kLimitInterval{200}, kOthersInterval{5000};

  struct Position {
    ReadAheadWindow::Position window;
    StepClass kind = kGenerateStep;
    bool running = false;
  };

  void take(MemoryExchange::Changes changes);
  // Returns whether all that was known of the weights was forgotten: the plan is for other ones.
  bool learn(StepClass kind, const MemoryExchange::Graph& graph);
  void adopt(StepClass kind, WeightOrder order);
  void load_pattern();
  void adopt_pattern(StoredPattern pattern);
  // If it differs from what was stored last, or `always`: the disk's speed is not compared.
  void save_pattern(bool always = false);
  void replan();
  void apply(MemoryPlan plan);
  void drop_all();
  void undo();
  std::uint64_t effective_budget(const MemoryLimit& limit) const;
  void check_limit();
  void check_lateness();
  void judge_window_anew();
  void count_time(bool running, bool reading);
  Position position() const;
  void use_schedule(StepClass kind);
  bool work();
  bool settle_one();
  bool is_pinned(const PlannedRange& range) const {
    return range.pinned && pinned_.contains(range.pages.address);
  }
  bool visit(ReadAheadWindow::Entry& entry, const Position& at);
  void pin(std::uint32_t range);
  void release(std::uint32_t range);
  void release_lookups();
  void publish();
  void fill_state(MemoryState& state);
  void publish_ranges();
  double bytes_per_token();
  std::uint64_t resident() const;
  std::string routing_text() const;
  std::string prediction_text() const;

  MemoryExchange& exchange_;
  const StepMeter& meter_;
  const std::vector<ModelFile> files_;
  const std::filesystem::path pattern_file_;  // empty: the order is not kept
  const std::function<std::optional<std::uint64_t>(const FileRange&)> address_of_;
  const std::filesystem::path system_root_;

  MemoryLimitReader limit_reader_;
  OtherLocks others_;  // of other servers; every 5 s
  ModelPages pages_;
  MemoryOptions current_;
  MemoryState state_;  // published last, but for `budget`, which is that of the plan
  std::array<WeightOrder, kStepClasses> orders_;
  std::array<bool, kStepClasses> learned_{};
  std::array<bool, kStepClasses> from_pattern_{};  // of an access pattern, not seen in a step yet
  bool pattern_changed_ = false;                   // to be stored
  StoredPattern stored_;                           // last, by this process
  double first_window_seconds_ = kWindowSeconds, stored_disk_speed_ = 0;
  std::vector<WeightRange> weights_;  // of all orders, in the order of their first use
  std::map<WeightKey, std::uint32_t> weight_index_;
  std::vector<WeightRange> lookup_;
  MemoryPlan plan_;
  bool planned_ = false;
  std::map<std::uint64_t, MappedPages> pinned_;  // by address
  std::vector<std::uint32_t> first_range_;       // per group of the plan, and one more
  std::array<std::vector<ReadAheadWindow::Use>, kStepClasses> schedules_;
  std::optional<StepClass> scheduled_;
  std::optional<ReadAheadWindow> window_;
  std::vector<bool> read_;        // per range: submitted and not released
  bool lookups_released_ = true;  // again, after the reads of the steps before the plan
  std::size_t settled_ = 0;       // ranges before it are pinned, if they are to be
  std::uint64_t streamed_resident_ = 0, pinned_resident_ = 0, locked_ = 0;
  int lock_error_ = 0;
  std::uint64_t bytes_submitted_ = 0, late_ = 0, reductions_ = 0;
  DiskSpeed disk_;
  MemoryLimit limit_;
  double window_seconds_ = kWindowSeconds;
  // Uses of experts at some times of late, and the share that was not in memory.
  struct ExpertUses {
    std::uint64_t uses = 0, misses = 0;
  };
  std::deque<ExpertUses> judged_;
  std::optional<double> miss_rate_;
  std::uint64_t expert_bytes_per_token_ = 0;
  // Since the window was last judged: ranges, and the time of steps in which reads were in flight,
  // or none because the window was full.
  std::uint64_t visits_ = 0, late_before_ = 0;
  Clock::duration reading_{}, idle_{};
  Clock::time_point worked_;  // last
  bool was_reading_ = false;
  bool starting_ = true;  // the first ranges of a plan are always late
  Clock::time_point next_limit_, next_others_, next_publish_, last_plan_;
  std::string pressure_;

  RoutedExperts experts_{pages_, meter_.ops_run(), meter_.steps()};
  std::array<std::vector<RoutedExperts::Layer>, kStepClasses> layers_;  // with routed experts
};

}  // namespace tt
