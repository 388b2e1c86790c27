#include "tracer/memory/memory_manager.h"

#include <utility>

#include "tracer/memory/memory_worker.h"

namespace tt {

MemoryManager::MemoryManager(const Setup& setup) : worker_(std::make_unique<Worker>(setup)) {}
MemoryManager::~MemoryManager() = default;
void MemoryManager::set(const MemoryOptions& options) { worker_->set(options); }
MemoryState MemoryManager::state() const { return worker_->state(); }
std::shared_ptr<const std::vector<MemoryRange>> MemoryManager::ranges() const {
  return worker_->ranges();
}
std::vector<MemoryPrediction> MemoryManager::predict(std::span<const std::uint64_t> budgets,
                                                     bool& disk_measured) const {
  return worker_->predict(budgets, disk_measured);
}
void MemoryManager::use_pattern(StoredPattern pattern) { worker_->use_pattern(std::move(pattern)); }
void MemoryManager::begin_step(std::uint32_t tokens) { worker_->begin_step(tokens); }
void MemoryManager::end_step(const FinishedStep& step) { worker_->end_step(step); }
bool MemoryManager::wants_graph() const { return worker_->wants_graph(); }

}  // namespace tt
