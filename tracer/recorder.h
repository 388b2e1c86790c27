// From the inference thread to the file: takes whole steps in pre-allocated
// buffers, turns them into rows on its own thread, commits them together every
// few milliseconds: waking up for each would take more from inference than the
// recording itself.
//
// begin(), tokens(), acquire(), submit() and finish() belong to the inference
// thread, between steps. When the disk is full, the recording of that session
// ends with a message and generation goes on. Every loss is counted.
//
// At most kMostWaiting steps are not yet in the file, kBuffers of them with
// their times: all that a killed process loses, but for the step in flight. When
// the writer cannot keep up, further evaluations lose their times, not their
// tokens, and are joined into the last step that waits: it then is `dropped` and
// stands for all of them, one after the other. No more than kMostJoined of those
// can wait: two in a batch that is being written and one that came meanwhile,
// and one more whenever the phase changes (twice in a session).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tracer/format/session.h"
#include "tracer/format/session_writer.h"
#include "tracer/format/step.h"
#include "tracer/generation.h"
#include "tracer/step_pool.h"

namespace tt {

// Called on the writer thread, after the step is committed to the file (or
// counted as lost). `graph` is null when the step has no template.
using StepListener =
    std::function<void(const std::string& session, const Step& step, const KnownGraphPtr& graph)>;

class Recorder {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::size_t kMostJoined = 5;
  static constexpr std::size_t kBuffers = kMostWaiting - kMostJoined;

  Recorder(std::size_t max_ops, std::size_t slot_bytes, StepListener listener);
  ~Recorder();

  // Waits until the file is there: no step has to wait for that.
  void begin(const SessionInfo& info, const std::filesystem::path& file);
  void tokens(std::vector<Token> tokens);
  StepId next_step() const { return next_step_; }  // that the next evaluation may become
  StepBuffer* acquire();                           // null: record the step without times
  void submit(StepBuffer* buffer);
  void submit_without_times(const Step& step);  // MINIMAL, or no buffer was free
  // Waits until everything is in the file. `info` is its final state.
  RecordingResult finish(const SessionInfo& info);

 private:
  struct Begin {
    SessionInfo info;
    std::filesystem::path file;
  };
  struct Finish {
    SessionInfo info;
  };
  struct Quit {};
  struct Untimed {
    Step step;
    std::uint32_t evaluations = 1;  // that it stands for
  };
  using Message = std::variant<Begin, std::vector<Token>, StepBuffer*, Untimed, Finish, Quit>;
  struct Uncommitted {
    Step step;
    KnownGraphPtr graph;   // null: no template
    StepBuffer* buffer{};  // null: none was free
  };

  void post(Message message);
  static bool is_step(const Message& message);
  static bool is_urgent(const Message& message);
  bool join(const Step& step);
  void run();
  void commit();
  void handle(Begin& begin);
  void handle(std::vector<Token>& tokens);
  void handle(StepBuffer* buffer);
  void handle(Untimed& untimed);
  void handle(Finish& finish);
  void write(Uncommitted step);
  void set_open(bool open);
  void fail(const TraceError& error);
  bool writing() const;

  StepPool pool_;
  StepListener listener_;
  StepId next_step_{};  // inference thread only

  std::mutex mutex_;
  std::condition_variable wake_;    // something came
  std::condition_variable urgent_;  // it cannot wait for more to come
  std::vector<Message> messages_;
  std::size_t steps_queued_ = 0;   // in messages_
  std::size_t steps_waiting_ = 0;  // in messages_, or taken and not yet committed
  bool urgent_queued_ = false;
  std::condition_variable settled_;  // session_open_ changed
  bool session_open_ = false;
  RecordingResult result_;

  // Writer thread only.
  std::unique_ptr<SessionWriter> writer_;
  std::string session_;
  std::unordered_map<KnownGraphPtr, TemplateId> templates_;
  std::unordered_map<AddressesPtr, AllocationId> allocations_;
  std::vector<Uncommitted> uncommitted_;
  LossCounters losses_;
  std::uint64_t steps_written_ = 0;
  std::string error_;  // the first; nothing is written after it
  std::thread thread_;
};

// What the inference thread wrote, as a value.
Step step_from(const StepBuffer& buffer);

}  // namespace tt
