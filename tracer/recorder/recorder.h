// Transfers steps from the inference thread to the file. Takes complete steps in
// pre-allocated buffers, converts them to rows on its own writer thread, and commits batches
// every few milliseconds. (Waking up for every step would slow down inference more than the
// recording itself.)
//
// Call begin(), tokens(), open_step(), close_step() and finish() on the inference thread, between
// graphs. Page faults are read from the kernel on the writer thread; faults between a step's
// begin and end are assigned to the step. When the disk is full, the recording of the session
// ends with an error message and generation continues. Every loss is counted.
//
// A writer thread that gets no processor for some seconds, or waits for a busy disk, costs nothing:
// steps wait as buffers while some are free, and as copies of what they hold afterwards, up to
// kMaxWaitingBytes. (Copied between graphs. The times of one step are small; a buffer is as large
// as the largest step could be.) Beyond this limit, further evaluations lose their times, not
// their tokens, and are merged into the last waiting step, which is marked `dropped` and represents
// all of them in sequence. The inference thread never waits for the writer instead: a writer that
// is so far behind does not catch up soon, and waiting would slow down what is measured. A killed
// process loses what waits and the step in flight.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tracer/format/file/session_writer.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/recorder/machine_state.h"
#include "tracer/recorder/page_faults.h"
#include "tracer/recorder/recording_options.h"
#include "tracer/recorder/step_pool.h"
#include "tracer/request/generation.h"

namespace tt {

// Called on the writer thread after the step was committed or counted as lost. `graph` is null
// if the step has no template.
using StepListener =
    std::function<void(const std::string& session, const Step& step, const KnownGraphPtr& graph)>;

class Recorder {
 public:
  // Two batches of the writer. The pages of a buffer that no step needs are never touched.
  static constexpr std::size_t kBuffers = 16;
  // The smallest models run 4,000 steps of 2 KB per second: for these, 8 s.
  static constexpr std::size_t kMaxWaitingBytes = 64U << 20;

  // `faults` and `machine` must outlive the recorder, their only user; null: faults or conditions
  // are not recorded.
  Recorder(std::size_t max_ops, std::size_t slot_bytes, StepListener listener,
           PageFaults* faults = nullptr, MachineState* machine = nullptr,
           std::size_t max_waiting_bytes = kMaxWaitingBytes);
  ~Recorder();

  // Waits until the file has been created, so that no step is delayed by it: a disk may take 0.1 s.
  // The session begins then: Ns{0} and info.start_utc_ns. Adds a fact about residency if asked for.
  void begin(SessionInfo& info, const std::filesystem::path& file, RecordingOptions options = {});
  std::chrono::steady_clock::time_point epoch() const { return epoch_; }
  void tokens(std::vector<Token> tokens);
  StepId next_step() const { return next_step_; }  // id of the next step, unless it is merged

  // A step that is evaluated, from open_step() to close_step().
  struct OpenStep {
    StepBuffer* buffer = nullptr;  // for the probe; null: the step has no times
    Step untimed;                  // its header if there is no buffer
    Step& header() { return buffer != nullptr ? buffer->header : untimed; }
  };
  // The step begins now. `header`: phase, tokens and threads. `timed`: false at level MINIMAL.
  OpenStep open_step(Step header, bool timed);
  // The step ends now. `complete`: false if it was cancelled or failed.
  void close_step(OpenStep step, bool complete);
  // Values of a closed step that were not known when it was closed. It had none, and has no more.
  void values(StepValues values);
  // The same in parts, for callers that fill the buffer themselves.
  StepBuffer* acquire();  // null: too much waits; record the step without times
  void submit(StepBuffer* buffer);
  void submit_without_times(Step step);  // MINIMAL, or too much waited
  // Waits until everything so far has been written, for measurements.
  void flush();
  // Waits until everything has been written. `info` is the final metadata.
  RecordingResult finish(const SessionInfo& info);

 private:
  struct Begin {
    SessionInfo info;
    std::filesystem::path file;
    bool minor_faults;
  };
  struct Started {
    std::chrono::steady_clock::time_point epoch;
    std::int64_t utc_ns;
  };
  struct Finish {
    SessionInfo info;
  };
  struct Flush {};
  struct Quit {};
  struct Untimed {
    Step step;
    std::uint32_t evaluations = 1;  // merged into this step
  };
  // What a StepBuffer holds.
  struct Recorded {
    Step step;
    KnownGraphPtr graph;
    AddressesPtr addresses;
    std::uint64_t faults = 0;  // if only counted
    std::uint32_t slots_lost = 0;
    bool count_mismatch = false;
    StepValues values{};
  };
  using Message = std::variant<Begin, Started, std::vector<Token>, StepResidency, StepBuffer*,
                               Recorded, StepValues, Untimed, Finish, Flush, Quit>;
  struct Uncommitted {
    Step step;
    KnownGraphPtr graph;  // null: no template
  };

  Ns now() const;
  void post(Message message);
  static bool is_step(const Message& message);
  static bool is_urgent(const Message& message);
  static std::size_t bytes_of(const Message& message);
  static std::size_t bytes_of(const std::vector<Token>& tokens);
  static std::size_t bytes_of(const StepValues& values);
  Recorded take_from(StepBuffer& buffer);
  bool merge(const Step& step);
  void take_conditions(Step& step);
  void take_residency();
  void run();
  void commit();
  void handle(Begin& begin);
  void handle(Started& started);
  void handle(std::vector<Token>& tokens);
  void handle(StepResidency& residency);
  void handle(StepBuffer* buffer);
  void handle(StepValues& values);
  void handle(Recorded& recorded);
  void handle(Untimed& untimed);
  void handle(Finish& finish);
  void handle(Flush& flush);
  // `faults`: if only counted.
  void write(Step step, KnownGraphPtr graph, std::uint64_t faults, StepValues values);
  void write_residency(const Step& step);
  void write_values(StepValues values);
  void write_faults(const Step& step, const StepFaults& faults, FaultKind kind);
  StepFaults assign_to(const Step& step, std::vector<PageFault>& faults);
  void set_open(bool open);
  void fail(const TraceError& error);
  bool writing() const;

  StepPool pool_;
  const std::size_t max_waiting_bytes_;
  StepListener listener_;
  PageFaults* const faults_;
  MachineState* const machine_;  // inference thread only
  // Inference thread only.
  StepId next_step_{};
  std::chrono::steady_clock::time_point epoch_;
  std::uint64_t faults_before_ = 0;         // process total when the buffer was acquired
  std::optional<FileResidency> residency_;  // nullopt: not asked for, or not known
  Ns residency_interval_{};
  std::optional<Ns> last_residency_;      // in this session
  StepConditions::Value resident_bytes_;  // then
  StepId last_residency_step_{};

  std::mutex mutex_;
  std::condition_variable wake_;    // messages_ is not empty
  std::condition_variable urgent_;  // write now, without collecting more
  std::deque<Message> messages_;
  std::size_t steps_queued_ = 0;   // in messages_
  std::size_t bytes_waiting_ = 0;  // of messages_, and of what was taken and is not yet committed
  bool urgent_queued_ = false;
  std::condition_variable session_changed_;  // session_open_ or flushed_ changed
  bool session_open_ = false;
  bool flushed_ = false;
  RecordingResult result_;

  // Writer thread only.
  std::unique_ptr<SessionWriter> writer_;
  std::string session_;
  std::unordered_map<KnownGraphPtr, TemplateId> templates_;
  std::unordered_map<AddressesPtr, AllocationId> allocations_;
  std::vector<Uncommitted> uncommitted_;
  std::size_t bytes_uncommitted_ = 0;
  // Not yet assigned to a step; steady_clock times.
  std::vector<PageFault> new_faults_, new_minor_faults_;
  std::optional<StepResidency> new_residency_;  // of the next step
  std::int64_t epoch_ns_ = 0;
  std::uint64_t faults_lost_before_ = 0;  // at the begin of the session
  LossCounters losses_;
  std::uint64_t steps_written_ = 0;
  std::string error_;  // the first error; nothing is written afterwards
  std::thread thread_;
};

// Converts the buffer to a Step. Any thread that owns the buffer.
Step step_from(const StepBuffer& buffer);

}  // namespace tt
