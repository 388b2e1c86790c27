// From the inference thread to the file: takes whole steps in pre-allocated
// buffers, turns them into rows on its own thread, commits them together every
// few milliseconds: waking up for each would take more from inference than the
// recording itself.
//
// begin(), tokens(), acquire(), submit() and finish() belong to the inference
// thread, between steps. When the disk cannot keep up, steps lose their times,
// not their tokens; when it is full, the recording of that session ends with a
// message and generation goes on. Every loss is counted.
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
  Recorder(std::size_t max_ops, std::size_t slot_bytes, StepListener listener);
  ~Recorder();

  // Waits until the file is there: no step has to wait for that.
  void begin(const SessionInfo& info, const std::filesystem::path& file);
  void tokens(std::vector<Token> tokens);
  StepBuffer* acquire();  // null: record the step without times
  void submit(StepBuffer* buffer);
  void submit_without_times(Step step);  // MINIMAL, or no buffer was free
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
  using Message = std::variant<Begin, std::vector<Token>, StepBuffer*, Step, Finish, Quit>;

  void post(Message message);
  static bool is_urgent(const Message& message);
  void run();
  void commit();
  void handle(Begin& begin);
  void handle(std::vector<Token>& tokens);
  void handle(StepBuffer* buffer);
  void handle(Step& step);
  void handle(Finish& finish);
  void write(Step step, const KnownGraphPtr& graph);
  void set_open(bool open);
  void fail(const TraceError& error);
  bool writing() const;

  StepPool pool_;
  StepListener listener_;

  std::mutex mutex_;
  std::condition_variable wake_;    // something came
  std::condition_variable urgent_;  // it cannot wait for more to come
  std::vector<Message> messages_;
  std::size_t steps_queued_ = 0;
  bool urgent_queued_ = false;
  std::condition_variable settled_;  // session_open_ changed
  bool session_open_ = false;
  RecordingResult result_;

  // Writer thread only.
  std::unique_ptr<SessionWriter> writer_;
  std::string session_;
  std::unordered_map<KnownGraphPtr, TemplateId> templates_;
  std::unordered_map<AddressesPtr, AllocationId> allocations_;
  std::vector<std::pair<Step, KnownGraphPtr>> uncommitted_;
  LossCounters losses_;
  std::uint64_t steps_written_ = 0;
  std::string error_;  // the first; nothing is written after it
  std::thread thread_;
};

// What the inference thread wrote, as a value.
Step step_from(const StepBuffer& buffer);

}  // namespace tt
