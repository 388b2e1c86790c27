// Runs requests in order, one at a time; each is recorded in its own session file. Owns the
// inference thread, which first loads the model.
//
// The model's files are mapped. They are checked (size, mtime, inode) when a request is submitted
// and before it runs, and the request is rejected if a file has changed since it was loaded. If one
// is truncated while a step runs, the request fails (tracer/format/file/mapping_guard.h).
//
// All public functions may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tracer/debug/debugger.h"
#include "tracer/engine/checked_models.h"
#include "tracer/engine/crash_marker.h"
#include "tracer/engine/engine.h"
#include "tracer/format/model/new_graph_op.h"
#include "tracer/probe/known_graph.h"
#include "tracer/request/generation.h"
#include "tracer/request/job.h"

namespace tt {

// Events of sessions. Implementations must not block and must not call submit() or cancel();
// they copy and queue. States of a session arrive in order, also when a stop begins or ends
// (JobStatus::stopped). Threads: on_state any; on_progress,
// on_token and on_text the inference thread; on_step the writer thread, after the step was
// written.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void on_state(const JobStatus& status) = 0;
  virtual void on_progress(const JobStatus& status) = 0;  // its `text` is empty
  virtual void on_token(const std::string& session, const Token& token, std::string_view piece) = 0;
  // The remaining text, which was held back, when no further token follows.
  virtual void on_text(const std::string& /*session*/, std::string_view /*rest*/) {}
  virtual void on_step(const std::string& session, const Step& step,
                       const KnownGraphPtr& graph) = 0;
};

// Snapshot of the running step.
struct StepInFlight {
  std::string session;
  StepId step;
  Ns first_op;
  std::uint32_t first = 0;  // index of ends[0]
  std::vector<Ns> ends;     // of ops first, first + 1, ...
  std::optional<NewGraphOp> new_op{};
  std::uint32_t graph_nodes = 0;  // of the largest graph; 0: unknown
};

class GenerationQueue {
 public:
  static constexpr std::size_t kMaxQueued = 64;
  struct Options {
    std::string name{};  // model name, for JobStatus::model
    ModelOptions model;
    ContextOptions context;
    std::filesystem::path data_dir;            // for session files: data_dir/<id>.ttrace
    std::filesystem::path self_check_model{};  // bundled model; empty: skip the self-check
    Sandbox* sandbox = nullptr;                // see Engine::load()
    bool check_model = false;                  // first in a child process of `sandbox`
    CheckedModels* checked_models = nullptr;   // not checked again; null: always check
    CrashMarker* crash_marker = nullptr;       // is informed of evaluations; null: none
    std::size_t max_queued = kMaxQueued;
    // Called when loading has ended or failed, on the inference thread; must not block.
    std::function<void(const LoadState&)> on_load{};
  };
  // `listener` must outlive the queue.
  GenerationQueue(Options options, SessionListener& listener);
  ~GenerationQueue();  // calls stop()

  LoadState load_state() const;
  std::optional<ModelFacts> facts() const;  // nullopt until loaded
  const ModelOptions& model_options() const;
  // Message if a file of the loaded model has changed; nullopt: unchanged.
  std::optional<std::string> changed() const;

  std::expected<JobStatus, SubmitError> submit(GenerationRequest request);
  std::optional<JobStatus> status(const std::string& id) const;  // requests of this queue
  std::vector<JobStatus> statuses() const;                       // in no particular order
  bool cancel(const std::string& id);                            // false: no such request
  // Stops the request; null: it has ended, or GenerationRequest::debug is not set.
  std::shared_ptr<Debugger> debugger(const std::string& id) const;
  // The running step of session `id`, ops from `from_op` on; nullopt between steps or if another
  // session runs.
  std::optional<StepInFlight> in_flight(const std::string& id, std::uint32_t from_op) const;

  // Memory budget of the loaded model (tracer/memory/memory_manager.h). While it loads,
  // set_memory() replaces the options that it is loaded with, and state() is that of no budget.
  void set_memory(const MemoryOptions& options);
  // The order in which the weights are read, if none was learned yet. No effect while the model
  // loads.
  void use_pattern(StoredPattern pattern);
  MemoryState memory_state() const;
  MemoryMap memory_map() const;  // empty while the model loads

  // Time since which no request waits or runs; nullopt while one does, or the model loads.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const;
  // Rejects requests from now on. Returns false, without effect, if a request waits or runs.
  bool close_if_idle();
  // Cancels all requests, finishes the running session's file and joins the thread. Idempotent.
  void stop();

 private:
  struct Job;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
