// A request that a verb runs in this process: waiting for its model, and its events.
#pragma once

#include <condition_variable>
#include <expected>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal/status_line.h"
#include "tracer/engine/generation_queue.h"

namespace tt::cli {

// Passes events from the inference thread to the main thread, which prints them, so that a
// blocked pager does not block the model.
class RunEvents final : public SessionListener {
 public:
  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus& status) override;
  void on_token(const std::string&, const Token&, std::string_view piece) override;
  void on_text(const std::string&, std::string_view rest) override;
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}

  struct Update {
    std::string text;
    std::optional<JobStatus> progress, ended;  // `ended`: of the last request
  };
  // Events since the last call; waits up to 50 ms for one.
  Update update();
  // Before the next request.
  void begin();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string text_;
  bool state_changed_ = false;
  std::optional<JobStatus> progress_, ended_;
};

// Waits until the model is loaded. The error contains the reason of a failure.
std::expected<void, std::string> wait_for_model(const GenerationQueue& queue, StatusLine& line);

}  // namespace tt::cli
