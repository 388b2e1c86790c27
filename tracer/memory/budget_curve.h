// What each memory budget would give. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tracer/memory/memory_exchange.h"
#include "tracer/memory/plan/fault_replay.h"
#include "tracer/request/memory.h"

namespace tt {

class BudgetCurve {
 public:
  // See MemoryManager::predict().
  std::vector<MemoryPrediction> predict(const MemoryExchange::Known& known,
                                        std::span<const std::uint64_t> budgets);

 private:
  // What was replayed for a graph, by bytes of a fault and of memory: the page asks every second.
  std::mutex mutex_;
  KnownGraphPtr graph_;
  FaultReplay replay_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> bytes_;
};

}  // namespace tt
