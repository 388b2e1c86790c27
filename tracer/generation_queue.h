// Requests in order, one at a time, each its own session file. Owns the
// inference thread, which loads the model first.
//
// Every public function may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tracer/engine.h"
#include "tracer/generation.h"
#include "tracer/known_graph.h"

namespace tt {

enum class JobState : std::uint8_t { Queued, Running, Done, Cancelled, Failed };
const char* to_text(JobState);

struct JobStatus {
  std::string id;  // the session's
  JobState state = JobState::Queued;
  std::uint32_t position = 0;  // requests before it; 0: running or next
  std::uint32_t prompt_tokens = 0, prompt_done = 0, reused_tokens = 0;
  std::uint32_t generated = 0, max_tokens = 0;
  std::string text;  // so far
  StopReason stop_reason = StopReason::None;
  std::string error;
};

// What happens to sessions, as it happens. Must not block: implementations copy
// and queue. Threads: on_state any; on_progress and on_token the inference
// thread; on_step the writer thread, after the step is in the file.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void on_state(const JobStatus& status) = 0;
  virtual void on_progress(const JobStatus& status) = 0;  // its `text` is empty
  virtual void on_token(const std::string& session, const Token& token, std::string_view piece) = 0;
  virtual void on_step(const std::string& session, const Step& step,
                       const KnownGraphPtr& graph) = 0;
};

struct SubmitError {
  enum class Kind { NotReady, LoadFailed, Full, BadRequest, TooLong, Stopping };
  Kind kind;
  std::string message;
};

struct LoadState {
  enum class Phase : std::uint8_t { Loading, Ready, Failed } phase = Phase::Loading;
  float progress = 0;  // 0..1
  std::string error;
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
  struct Options {
    ModelOptions model;
    ContextOptions context;
    std::filesystem::path data_dir;  // session files: data_dir/<id>.ttrace
    std::size_t max_queued = 64;
  };
  // `listener` outlives the queue.
  GenerationQueue(Options options, SessionListener& listener);
  ~GenerationQueue();  // stop()

  LoadState load_state() const;
  std::optional<ModelFacts> facts() const;  // once loaded
  const ModelOptions& model_options() const;

  std::expected<JobStatus, SubmitError> submit(GenerationRequest request);
  std::optional<JobStatus> status(const std::string& id) const;  // of this process's requests
  bool cancel(const std::string& id);                            // false: no such request
  std::optional<StepInFlight> in_flight(std::uint32_t from_op) const;

  // Cancels everything, finishes the running session's file, joins. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
