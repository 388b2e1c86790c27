// Requests in order, one at a time, each its own session file. Owns the
// inference thread, which loads the model first.
//
// The model's files are mapped: when one is truncated while a step runs, the
// kernel ends the process (SIGBUS), which nothing here can prevent. So before
// each request is taken and before it runs its files are looked at (size, time,
// inode), and it is refused when they are not those that were loaded.
//
// Every public function may be called from any thread.
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

#include "tracer/engine/engine.h"
#include "tracer/probe/known_graph.h"
#include "tracer/request/generation.h"
#include "tracer/request/job.h"

namespace tt {

// What happens to sessions, as it happens. Must not block, nor submit or cancel:
// implementations copy and queue. States of a session come in order. Threads: on_state any;
// on_progress, on_token and on_text the inference thread; on_step the writer thread, after the step
// is in the file.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void on_state(const JobStatus& status) = 0;
  virtual void on_progress(const JobStatus& status) = 0;  // its `text` is empty
  virtual void on_token(const std::string& session, const Token& token, std::string_view piece) = 0;
  // The rest of the text, which was held back and belongs to no new token.
  virtual void on_text(const std::string& /*session*/, std::string_view /*rest*/) {}
  virtual void on_step(const std::string& session, const Step& step,
                       const KnownGraphPtr& graph) = 0;
};

// A look at the step that runs now. Copies what is there; empty between steps.
struct StepInFlight {
  std::string session;
  StepId step;
  Ns first_op;
  std::uint32_t first = 0;  // index of ends[0]
  std::vector<Ns> ends;     // of ops first, first + 1, ...
};

class GenerationQueue {
 public:
  static constexpr std::size_t kMostQueued = 64;
  struct Options {
    std::string name{};  // of the model, in every status
    ModelOptions model;
    ContextOptions context;
    std::filesystem::path data_dir;            // session files: data_dir/<id>.ttrace
    std::filesystem::path checker{};           // tt-check-model; empty: load without trying first
    std::filesystem::path self_check_model{};  // the bundled one; empty: trust the library
    std::size_t max_queued = kMostQueued;
    // Loading has ended, well or not. On the inference thread; must not block.
    std::function<void(const LoadState&)> on_load{};
  };
  // `listener` outlives the queue.
  GenerationQueue(Options options, SessionListener& listener);
  ~GenerationQueue();  // stop()

  LoadState load_state() const;
  std::optional<ModelFacts> facts() const;  // once loaded
  const ModelOptions& model_options() const;
  // What happened to the files of the loaded model since, and what to do; none: nothing.
  std::optional<std::string> changed() const;

  std::expected<JobStatus, SubmitError> submit(GenerationRequest request);
  std::optional<JobStatus> status(const std::string& id) const;  // of this queue's requests
  std::vector<JobStatus> statuses() const;  // all that are remembered, in no order
  bool cancel(const std::string& id);       // false: no such request
  // Of the session `id`; empty also when another one runs.
  std::optional<StepInFlight> in_flight(const std::string& id, std::uint32_t from_op) const;

  // Since when nothing waits or runs; none while something does, or the model loads.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const;
  // Takes no more requests from now on. False, and nothing changes, when one waits or runs.
  bool retire();
  // Cancels everything, finishes the running session's file, joins. Idempotent.
  void stop();

 private:
  struct Job;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
