// Limits how many operations of one kind run at a time. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace tt {

class ConcurrencyLimit {
 public:
  explicit ConcurrencyLimit(int max) : max_(max) {}

  // One running operation. The slot is released by the destructor, also after the end of the limit.
  class Slot {
   public:
    Slot(Slot&& other) noexcept = default;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (running_) running_->fetch_sub(1);
    }

   private:
    friend class ConcurrencyLimit;
    explicit Slot(std::shared_ptr<std::atomic<int>> running) : running_(std::move(running)) {}
    std::shared_ptr<std::atomic<int>> running_;
  };

  // nullopt: the maximum number of operations is running.
  std::optional<Slot> take() {
    if (running_->fetch_add(1) < max_) return Slot(running_);
    running_->fetch_sub(1);
    return std::nullopt;
  }

 private:
  const int max_;
  const std::shared_ptr<std::atomic<int>> running_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tt
