// What the threads of MemoryManager tell each other. Any thread: everything here is guarded by its
// mutex, or atomic. Nothing here acts; waiting is for the worker thread alone.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tracer/memory/plan/memory_plan.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/probe/known_graph.h"
#include "tracer/request/memory.h"

namespace tt {

// Steps of one token generate, others are prompts: they have graphs of their own.
enum StepClass : std::uint8_t { kGenerateStep, kPromptStep, kStepClasses };

class MemoryExchange {
 public:
  struct Graph {
    KnownGraphPtr graph;
    AddressesPtr addresses;
  };
  using Graphs = std::array<Graph, kStepClasses>;

  // `unavailable`: why nothing can be done; empty: it can. `fault_bytes`: of one page fault.
  MemoryExchange(std::string unavailable, double fault_bytes,
                 std::optional<StoredPattern> given_pattern);

  // ---- what users want
  // Returns whether the worker has to run from now on.
  bool set(const MemoryOptions& options);
  void use_pattern(StoredPattern pattern);
  void stop();  // the worker

  // ---- what users see
  MemoryState state() const;
  std::shared_ptr<const std::vector<MemoryRange>> ranges() const;

  // ---- what is known of the model
  struct Known {
    Graph graph;  // of a generated token, or else of a prompt; without graph: none was observed
    double compute_seconds = 0;
    ReadSpeeds speeds;  // blocks: 0 until it is measured
  };
  Known known() const;
  FaultReads faults() const;
  double compute_seconds() const;
  // Whether the order is still to be learned from the graph of the next step.
  bool wants_graph() const { return wants_graph_.load(std::memory_order_relaxed); }
  // Of each op of a generated token; null: not known.
  std::shared_ptr<const std::vector<std::uint64_t>> weight_bytes() const;

  // ---- what the inference thread measured (step_meter.h)
  struct Step {
    StepClass kind = kGenerateStep;
    double seconds = 0, bytes_read = 0;
    double compute_seconds = 0;       // of a generated token
    double fault_bytes_per_second{};  // 0: not measured
    Graph graph;                      // without graph: not known
  };
  void add(Step step);
  // A step begins: the worker looks at once if it has a plan.
  void step_begins();
  // Whether a plan is followed.
  bool acting() const { return acting_.load(std::memory_order_relaxed); }

  // ---- what the worker found
  struct Changes {
    MemoryOptions options;
    bool options_changed = false;
    std::optional<StoredPattern> pattern;
    Graphs graphs;
    std::array<bool, kStepClasses> graph_changed{};
  };
  // Since the last call; nullopt: none.
  std::optional<Changes> take_changes();
  bool stopping() const;
  bool has_given_pattern() const;
  // Until there are changes, `moved` holds, the worker is to stop, or the time is over. `moved` is
  // called with the mutex locked.
  void wait(std::chrono::milliseconds at_most, const std::function<bool()>& moved);
  struct Findings {
    MemoryState state;
    double disk_bytes_per_second = 0;  // 0: not measured
    std::string other_locks;           // a sentence, or empty
  };
  void publish(Findings findings);
  void publish(std::shared_ptr<const std::vector<MemoryRange>> ranges);
  void set_acting(bool acting) { acting_ = acting; }
  void set_weight_bytes(std::vector<std::uint64_t> bytes);
  void set_fault_speed(double bytes_per_second);  // of an earlier start
  // Why the stored order is not used, or cannot be stored.
  void set_pattern_note(std::string note);

 private:
  bool changed() const;  // the mutex is locked
  void set_fault_speed_locked(double bytes_per_second);

  const std::string unavailable_;
  std::atomic<bool> wants_graph_{false}, acting_{false};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  MemoryOptions options_;
  bool options_changed_ = false, stopping_ = false, started_ = false;
  Graphs graphs_;
  std::array<bool, kStepClasses> graph_changed_{};
  std::deque<double> recent_seconds_, recent_bytes_;
  double compute_seconds_ = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> weight_bytes_;
  Findings findings_;
  std::shared_ptr<const std::vector<MemoryRange>> ranges_;
  FaultReads faults_;                           // of steps without a plan
  std::optional<StoredPattern> given_pattern_;  // to be adopted
  std::string pattern_note_;
};

}  // namespace tt
