// Keeps the weights of a model within a memory budget (docs/memory.md): learns in which order a
// step reads them, plans which part stays in memory (memory_plan.h), reads the rest ahead of the
// running op and releases it behind it (read_ahead_window.h), and caches routed experts
// (expert_cache.h).
//
// A thread of its own follows the number of executed ops, which the probe counts anyway: the
// inference thread does nothing for it while a graph runs. All that this thread does is advice to
// the kernel about mapped pages, so the output cannot depend on it, and inference never waits for
// it: a page that is not in memory when it is read is a page fault, as always.
//
// When the memory that is free for the weights shrinks (a smaller limit, other use of the group),
// the plan is made again with what is left.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/probe/known_graph.h"
#include "tracer/request/memory.h"

namespace tt {

class MemoryManager {
 public:
  struct Setup {
    std::span<const ModelFile> files;           // copied
    const std::atomic<std::uint32_t>& ops_run;  // Probe::ops_run(); must outlive this object
    std::string unavailable{};                  // why it cannot act on this model; empty: it can
    std::filesystem::path system_root{};        // see MemoryLimitReader
    // File that keeps the order of the reads between starts (stored_pattern.h); empty: none. And
    // the address of mapped bytes; nullopt: not mapped.
    std::filesystem::path pattern{};
    std::optional<StoredPattern> given_pattern{};  // instead of the one in the file
    std::function<std::optional<std::uint64_t>(const FileRange&)> address_of{};
  };
  explicit MemoryManager(const Setup& setup);
  ~MemoryManager();  // unlocks and stops
  MemoryManager(const MemoryManager&) = delete;
  MemoryManager& operator=(const MemoryManager&) = delete;

  // Any thread, at any time; takes effect within milliseconds, also while a step runs.
  void set(const MemoryOptions& options);
  MemoryState state() const;
  // The ranges of the plan, by weight in the order of first use; null: there is no plan.
  std::shared_ptr<const std::vector<MemoryRange>> ranges() const;
  // What each budget would give, from the graph of the last generated token (or prompt); empty:
  // none was observed. `disk_measured`: whether the speed of the disk is known or assumed.
  std::vector<MemoryPrediction> predict(std::span<const std::uint64_t> budgets,
                                        bool& disk_measured) const;

  // Any thread. Uses the order from now on if none was learned yet.
  void use_pattern(StoredPattern pattern);

  // Inference thread, between steps. A step of one token generates; others are prompts.
  void begin_step(std::uint32_t tokens);
  struct FinishedStep {
    std::uint32_t tokens = 0;
    bool complete = false;
    std::int64_t ns = 0;                    // duration
    KnownGraphPtr graph{};                  // null: not known
    AddressesPtr addresses{};               // of its tensors
    std::span<const std::int64_t> op_ns{};  // duration of each op; empty: not known
  };
  void end_step(const FinishedStep& step);
  // The order is still to be learned: the next step should be observed even if it is not recorded.
  bool wants_graph() const;

 private:
  struct Threads;  // the state of each thread, and the thread that acts
  std::unique_ptr<Threads> threads_;
};

}  // namespace tt
