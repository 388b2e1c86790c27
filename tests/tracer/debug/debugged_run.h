// A run of a real model that a test stops, through the queue that the server uses.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/wait.h"
#include "tracer/debug/debugger.h"
#include "tracer/engine/generation_queue.h"

namespace tt::test {

struct SilentListener final : SessionListener {
  void on_state(const JobStatus&) override {}
  void on_progress(const JobStatus&) override {}
  void on_token(const std::string&, const Token&, std::string_view) override {}
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}
};

class DebuggedModel {
 public:
  explicit DebuggedModel(const std::filesystem::path& model,
                         ContextOptions context = TracedModel::small_context(),
                         bool repack = true) {
    ensure_backends_loaded();
    queue_ = std::make_unique<GenerationQueue>(
        GenerationQueue::Options{.model = {.path = model, .repack = repack},
                                 .context = context,
                                 .data_dir = folder_.path()},
        listener_);
    EXPECT_TRUE(
        wait_until([&] { return queue_->load_state().phase != LoadState::Phase::Loading; }));
  }

  // Begins a run and returns its debugger. The run stops before its first op, so that the test sees
  // all of it.
  std::shared_ptr<Debugger> begin(GenerationRequest request, DebugOptions options) {
    options.stop_at_first_op = true;
    request.debug = std::move(options);
    request.reuse_prefix = false;
    const auto status = queue_->submit(std::move(request));
    if (!status) {
      ADD_FAILURE() << status.error().message;
      return nullptr;
    }
    id_ = status->id;
    auto debugger = queue_->debugger(id_);
    // With a short DebugOptions::hold_ms, the run can end before this thread sees a stop.
    EXPECT_TRUE(wait_until([&] { return debugger->stop().has_value() || ended(); }));
    return debugger;
  }
  // Goes on; returns the next stop, or nullopt when the run has ended.
  std::optional<DebugStop> resume(Debugger& debugger, RunUntil until, std::uint32_t count = 1) {
    EXPECT_TRUE(debugger.resume(until, count));
    return next_stop(debugger);
  }
  std::optional<DebugStop> next_stop(Debugger& debugger) {
    std::optional<DebugStop> stop;
    EXPECT_TRUE(wait_until([&] { return (stop = debugger.stop()) || ended(); }));
    return stop;
  }
  bool ended() { return has_ended(queue_->status(id_)->state); }
  JobStatus status() { return *queue_->status(id_); }
  GenerationQueue& queue() { return *queue_; }
  const std::string& id() const { return id_; }
  // Of a run that has ended.
  std::filesystem::path file() const { return folder_.path() / (id_ + ".ttrace"); }
  SessionReader session() {
    EXPECT_TRUE(wait_until([&] { return ended(); }));
    return SessionReader::open(file()).value();
  }

 private:
  TempFolder folder_;
  SilentListener listener_;
  std::unique_ptr<GenerationQueue> queue_;
  std::string id_;
};

}  // namespace tt::test
