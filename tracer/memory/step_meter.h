// Where the inference thread is, and how long its tokens compute. The inference thread writes;
// other threads read the position.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "tracer/memory/memory_exchange.h"
#include "tracer/memory/memory_manager.h"
#include "tracer/memory/pages/model_pages.h"

namespace tt {

class StepMeter {
 public:
  // `ops_run`: of the running step, Probe::ops_run().
  StepMeter(const std::atomic<std::uint32_t>& ops_run, MemoryExchange& exchange)
      : ops_run_(ops_run), exchange_(exchange) {}

  // Inference thread.
  void begin_step(std::uint32_t tokens);
  void end_step(const MemoryManager::FinishedStep& step);

  // Any thread.
  const std::atomic<std::uint32_t>& ops_run() const { return ops_run_; }
  const std::atomic<std::uint64_t>& steps() const { return steps_; }  // that ended
  bool running() const { return running_.load(); }
  StepClass kind() const { return kind_.load(); }  // of the running step, or of the last one

 private:
  // Of a generated token that ends now.
  double compute_seconds(const MemoryManager::FinishedStep& step, std::uint64_t read);

  const std::atomic<std::uint32_t>& ops_run_;
  MemoryExchange& exchange_;
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<bool> running_{false};
  std::atomic<StepClass> kind_{kGenerateStep};

  // Inference thread only.
  std::vector<std::int64_t> op_ns_;  // least duration of each op of a generated token
  std::int64_t least_step_ns_ = std::numeric_limits<std::int64_t>::max();  // of a generated token
  std::deque<double> unread_seconds_;  // of generated tokens that read nothing
  std::uint64_t read_before_ = bytes_read_from_disk();
};

}  // namespace tt
