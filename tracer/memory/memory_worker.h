// The thread of MemoryManager: its data, and the functions of all threads. Private to
// MemoryManager.
//
// memory_worker.cpp        what other threads call, the loop of the worker, the state
// memory_worker_plan.cpp   learning the order, planning, pinning and releasing as planned
// memory_worker_reads.cpp  reading ahead of the running op
// memory_worker_pattern.cpp  keeping the order between starts
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tracer/memory/disk_speed.h"
#include "tracer/memory/fault_replay.h"
#include "tracer/memory/memory_limit.h"
#include "tracer/memory/memory_manager.h"
#include "tracer/memory/memory_plan.h"
#include "tracer/memory/model_pages.h"
#include "tracer/memory/other_locks.h"
#include "tracer/memory/read_ahead_window.h"
#include "tracer/memory/routed_experts.h"
#include "tracer/memory/stored_pattern.h"
#include "tracer/memory/weight_order.h"

namespace tt {

class MemoryManager::Worker {
 public:
  explicit Worker(const Setup& setup)
      : files_(setup.files.begin(), setup.files.end()),
        ops_run_(setup.ops_run),
        unavailable_(setup.unavailable),
        pattern_file_(setup.pattern),
        address_of_(setup.address_of),
        given_pattern_(setup.given_pattern),
        system_root_(setup.system_root.empty() ? "/" : setup.system_root),
        limit_reader_(setup.system_root),
        pages_(files_) {
    if (!files_.empty()) faults_.bytes = static_cast<double>(fault_bytes(files_.front().path));
  }
  ~Worker();

  void set(const MemoryOptions& options);
  MemoryState state() const;
  std::shared_ptr<const std::vector<MemoryRange>> ranges() const;
  std::vector<MemoryPrediction> predict(std::span<const std::uint64_t> budgets,
                                        bool& disk_measured) const;
  void use_pattern(StoredPattern pattern);
  void begin_step(std::uint32_t tokens);
  void end_step(const FinishedStep& step);
  bool wants_graph() const { return wants_graph_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  // Identifies the part of a weight.
  using WeightKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
  static WeightKey key_of(const WeightRange& weight) {
    return {weight.file.file, weight.file.offset, weight.file.length};
  }
  static constexpr std::chrono::milliseconds kLimitInterval{200}, kOthersInterval{5000};
  static constexpr double kAssumedDiskSpeed = 1e9;  // before it is measured

  enum StepClass : std::uint8_t { kGenerate, kPrompt, kClasses };
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
  // Returns whether all that was known of the weights was forgotten: the plan is for other ones.
  bool learn(StepClass kind, const Graph& graph);
  void adopt(StepClass kind, WeightOrder order);
  void load_pattern();
  void adopt_pattern(StoredPattern pattern);
  // If it differs from what was stored last, or `always`: the disk's speed is not compared.
  void save_pattern(bool always = false);
  void set_pattern_note(std::string note);
  void replan();
  FaultReads faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
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
  void publish_ranges();
  double bytes_per_token();
  std::uint64_t resident() const;
  std::string routing_text() const;
  std::string prediction_text() const;

  const std::vector<ModelFile> files_;
  const std::atomic<std::uint32_t>& ops_run_;
  const std::string unavailable_;
  const std::filesystem::path pattern_file_;  // empty: the order is not kept
  const std::function<std::optional<std::uint64_t>(const FileRange&)> address_of_;

  // Written by the inference thread.
  std::atomic<std::uint64_t> step_{0};
  std::atomic<bool> running_{false};
  std::atomic<StepClass> kind_{kGenerate};
  std::atomic<bool> wants_graph_{false};
  std::atomic<bool> acting_{false};
  std::vector<std::int64_t> op_ns_;  // least duration of each op of a generated token
  std::int64_t least_step_ns_ = std::numeric_limits<std::int64_t>::max();  // of a generated token
  std::uint64_t read_before_ = bytes_read_from_disk();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  MemoryOptions options_;
  bool options_changed_ = false, stopping_ = false;
  std::array<Graph, kClasses> graphs_;
  std::array<bool, kClasses> graph_changed_{};
  std::deque<double> recent_seconds_, recent_bytes_, unread_seconds_;
  double compute_seconds_ = 0;
  std::vector<std::uint64_t> weight_bytes_;  // of each op of a generated token; empty: not known
  MemoryState published_;
  std::shared_ptr<const std::vector<MemoryRange>> published_ranges_;
  double published_disk_speed_ = 0;
  FaultReads faults_;                           // of steps without a plan
  std::optional<StoredPattern> given_pattern_;  // to be adopted
  std::string pattern_note_;  // why the stored order is not used, or cannot be stored

  // Of predict(): what was replayed for a graph, by bytes of a fault and of memory. The page asks
  // every second.
  struct Replayed {
    KnownGraphPtr graph;
    FaultReplay replay;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> bytes;
  };
  mutable std::mutex replayed_mutex_;
  mutable Replayed replayed_;

  // Worker thread only.
  const std::filesystem::path system_root_;
  MemoryLimitReader limit_reader_;
  OtherLocks others_;  // of other servers; every 5 s
  ModelPages pages_;
  MemoryOptions current_;
  std::array<WeightOrder, kClasses> orders_;
  std::array<bool, kClasses> learned_{};
  std::array<bool, kClasses> from_pattern_{};  // of an access pattern, not seen in a step yet
  bool pattern_changed_ = false;               // to be stored
  StoredPattern stored_;                       // last, by this process
  double first_window_seconds_ = kWindowSeconds, stored_disk_speed_ = 0;
  std::vector<WeightRange> weights_;  // of all orders, in the order of their first use
  std::map<WeightKey, std::uint32_t> weight_index_;
  std::vector<WeightRange> lookup_;
  MemoryPlan plan_;
  bool planned_ = false;
  std::map<std::uint64_t, MappedPages> pinned_;  // by address
  std::vector<std::uint32_t> first_range_;       // per group of the plan, and one more
  std::array<std::vector<ReadAheadWindow::Use>, kClasses> schedules_;
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

  RoutedExperts experts_{pages_, ops_run_, step_};
  std::array<std::vector<RoutedExperts::Layer>, kClasses> layers_;  // with routed experts

  std::thread thread_;
};

}  // namespace tt
