// From the inference thread to the file: takes whole steps in pre-allocated
// buffers, turns them into rows on its own thread, commits them together every
// few milliseconds: waking up for each would take more from inference than the
// recording itself.
//
// begin(), tokens(), acquire(), submit() and finish() belong to the inference
// thread, between steps. Page faults come from the kernel, on the writer thread: those
// between a step's begin and end are the step's. When the disk is full, the recording of that
// session ends with a message and generation goes on. Every loss is counted.
//
// At most kMostWaiting steps are not yet in the file, kBuffers of them with
// their times: all that a killed process loses, but for the step in flight. When
// the writer cannot keep up, further evaluations lose their times, not their
// tokens, and are joined into the last step that waits: it then is `dropped` and
// stands for all of them, one after the other. No more than kMostJoined of those
// can wait: two in a batch that is being written and one that came meanwhile,
// and one more whenever the phase changes (twice in a session).
#pragma once

#include <chrono>
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

#include "tracer/format/file/session_writer.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/recorder/page_faults.h"
#include "tracer/recorder/step_pool.h"
#include "tracer/request/generation.h"

namespace tt {

// Called on the writer thread, after the step is committed to the file (or
// counted as lost). `graph` is null when the step has no template.
using StepListener =
    std::function<void(const std::string& session, const Step& step, const KnownGraphPtr& graph)>;

class Recorder {
 public:
  // A quick model makes 1,400 steps a second, and a busy disk or machine may hold the writer
  // up for 80 ms. A buffer takes 8 bytes for each op that a graph may have (6,656 at 22
  // layers), touched or not.
  static constexpr std::size_t kMostWaiting = 128;
  static constexpr std::size_t kMostJoined = 5;
  static constexpr std::size_t kBuffers = kMostWaiting - kMostJoined;

  // `faults` outlives the recorder, which alone takes from it; null: none are recorded.
  Recorder(std::size_t max_ops, std::size_t slot_bytes, StepListener listener,
           PageFaults* faults = nullptr);
  ~Recorder();

  // Waits until the file is there: no step has to wait for that. Then is the session's
  // Ns{0}, which `info` is told of.
  void begin(SessionInfo& info, const std::filesystem::path& file);
  std::chrono::steady_clock::time_point epoch() const { return epoch_; }
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
    std::chrono::steady_clock::time_point epoch;
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
    KnownGraphPtr graph;       // null: no template
    StepBuffer* buffer{};      // null: none was free
    std::uint64_t faults = 0;  // that were counted
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
  StepFaults faults_of(const Step& step, std::uint64_t counted);
  void set_open(bool open);
  void fail(const TraceError& error);
  bool writing() const;

  StepPool pool_;
  StepListener listener_;
  PageFaults* const faults_;
  // Inference thread only.
  StepId next_step_{};
  std::chrono::steady_clock::time_point epoch_;
  std::uint64_t faults_before_ = 0;  // of the process, when the buffer was acquired

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
  std::vector<PageFault> new_faults_;  // taken and not yet of a step; ns of the steady clock
  std::int64_t epoch_ns_ = 0;
  std::uint64_t faults_lost_before_ = 0;  // the session
  LossCounters losses_;
  std::uint64_t steps_written_ = 0;
  std::string error_;  // the first; nothing is written after it
  std::thread thread_;
};

// What the inference thread wrote, as a value.
Step step_from(const StepBuffer& buffer);

}  // namespace tt
