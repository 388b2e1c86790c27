#include "cli/commands/run_events.h"

#include <chrono>
#include <format>
#include <thread>
#include <utility>

#include "cli/terminal/interrupt_guard.h"

namespace tt::cli {

using namespace std::chrono_literals;

void RunEvents::on_state(const JobStatus& status) {
  const std::scoped_lock lock(mutex_);
  if (has_ended(status.state)) ended_ = status;
  state_changed_ = true;
  wake_.notify_all();
}

void RunEvents::on_progress(const JobStatus& status) {
  const std::scoped_lock lock(mutex_);
  progress_ = status;
  wake_.notify_all();
}

void RunEvents::on_token(const std::string&, const Token&, std::string_view piece) {
  const std::scoped_lock lock(mutex_);
  text_ += piece;
  wake_.notify_all();
}

void RunEvents::on_text(const std::string&, std::string_view rest) {
  const std::scoped_lock lock(mutex_);
  text_ += rest;
  wake_.notify_all();
}

RunEvents::Update RunEvents::update() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, 50ms,
                 [this] { return !text_.empty() || ended_ || progress_ || state_changed_; });
  state_changed_ = false;
  return {std::exchange(text_, {}), std::exchange(progress_, {}), ended_};
}

void RunEvents::begin() {
  const std::scoped_lock lock(mutex_);
  text_.clear();
  progress_.reset();
  ended_.reset();
}

std::expected<void, std::string> wait_for_model(const GenerationQueue& queue, StatusLine& line) {
  for (;;) {
    const LoadState load = queue.load_state();
    if (load.phase == LoadState::Phase::Ready) return {};
    if (load.phase == LoadState::Phase::Failed) return std::unexpected(load.error);
    if (was_interrupted()) return std::unexpected("interrupted while the model was loading");
    line.show(std::format("loading {:.0f} %", 100 * load.progress));
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace tt::cli
