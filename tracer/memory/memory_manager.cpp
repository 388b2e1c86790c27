#include "tracer/memory/memory_manager.h"

#include <thread>
#include <utility>

#include "tracer/memory/budget_curve.h"
#include "tracer/memory/memory_exchange.h"
#include "tracer/memory/memory_worker.h"
#include "tracer/memory/pages/disk_speed.h"
#include "tracer/memory/step_meter.h"

namespace tt {

struct MemoryManager::Threads {
  explicit Threads(const Setup& setup)
      : exchange(
            setup.unavailable,
            setup.files.empty() ? 0 : static_cast<double>(fault_bytes(setup.files.front().path)),
            setup.given_pattern),
        meter(setup.ops_run, exchange),
        worker(setup, exchange, meter) {}

  MemoryExchange exchange;  // any thread
  BudgetCurve curve;        // any thread
  StepMeter meter;          // the inference thread
  MemoryWorker worker;      // `thread`
  std::thread thread;       // runs from the first budget on
};

MemoryManager::MemoryManager(const Setup& setup) : threads_(std::make_unique<Threads>(setup)) {}

MemoryManager::~MemoryManager() {
  threads_->exchange.stop();
  if (threads_->thread.joinable()) threads_->thread.join();
}

void MemoryManager::set(const MemoryOptions& options) {
  if (threads_->exchange.set(options))
    threads_->thread = std::thread([this] { threads_->worker.run(); });
}

MemoryState MemoryManager::state() const { return threads_->exchange.state(); }

std::shared_ptr<const std::vector<MemoryRange>> MemoryManager::ranges() const {
  return threads_->exchange.ranges();
}

std::vector<MemoryPrediction> MemoryManager::predict(std::span<const std::uint64_t> budgets,
                                                     bool& disk_measured) const {
  const MemoryExchange::Known known = threads_->exchange.known();
  disk_measured = known.speeds.blocks > 0;
  return threads_->curve.predict(known, budgets);
}

void MemoryManager::use_pattern(StoredPattern pattern) {
  threads_->exchange.use_pattern(std::move(pattern));
}

void MemoryManager::begin_step(std::uint32_t tokens) { threads_->meter.begin_step(tokens); }
void MemoryManager::end_step(const FinishedStep& step) { threads_->meter.end_step(step); }
bool MemoryManager::wants_graph() const { return threads_->exchange.wants_graph(); }

}  // namespace tt
