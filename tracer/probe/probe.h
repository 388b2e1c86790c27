// Watches every graph that a context evaluates, from the public API of an
// unmodified llama.cpp: cb_eval lists the nodes of a graph before they run,
// abort_callback ticks after each executed op (docs/llama-cpp.md).
//
// A graph that was seen before is recognised node by node while it is listed,
// and then only numbers are written: an end time per tick, slot values at the
// ops that read them. A new graph is learned in the step in which it appears:
// cut after every op, so that what really ran as one op is observed; the part
// that equals a known graph keeps its known boundaries. Every step's count of
// ticks is compared with its template's; a graph that differs is timed exactly
// from then on and says so.
//
// Everything but request_cancel() runs on the inference thread. Between the
// first and the last op of a step nothing is locked, and nothing is allocated
// unless the graph is new.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracer/probe/graph_instance.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/probe/op_clock.h"
#include "tracer/probe/step_buffer.h"
#include "tracer/probe/template_builder.h"

struct llama_context_params;

namespace tt {

struct ProbeMode {
  bool exact = false;                           // cut after every op, not only in new graphs
  std::shared_ptr<const NamePattern> stats_of;  // VERBOSE: value statistics of outputs so named
  std::chrono::steady_clock::time_point epoch;  // the session's Ns{0}
};

class Probe {
 public:
  explicit Probe(const ModelLayout& layout);

  // Sets the callbacks. The probe outlives the context.
  void attach(llama_context_params& params);

  // Around one llama_decode or llama_encode. With a null buffer nothing is
  // recorded and only cancelling works. end_step() fills the buffer's graph,
  // addresses, times and slots; its header keeps what the caller put there. It
  // answers whether the graph ran whole: llama.cpp says so, too, when it was
  // stopped between two ops that were cut apart.
  void begin_step(StepBuffer* buffer, const ProbeMode& mode);
  bool end_step(bool aborted);

  // Stops the graph in flight after the current op. Any thread.
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }
  void reset_cancel() { cancel_.store(false, std::memory_order_relaxed); }
  bool cancel_requested() const { return cancel_.load(std::memory_order_relaxed); }

  // The step in flight for a live view (any thread); null between steps. See StepBuffer.
  const StepBuffer* in_flight() const { return in_flight_.load(std::memory_order_acquire); }

  const OffsetCoverage& coverage() const { return coverage_; }  // of the largest graph so far
  std::size_t memory_bytes() const;                             // about, of all instances

 private:
  enum class Mode : std::uint8_t { Idle, Matching, Learning };

  static bool on_eval(ggml_tensor* tensor, bool ask, void* self);
  static bool on_tick(void* self);
  bool ask(const ggml_tensor* tensor);
  bool computed(const ggml_tensor* tensor);
  bool tick();

  bool ask_known(std::uint32_t index);
  bool find_instance(std::uint32_t index, const ggml_tensor* tensor);
  void start_learning(std::uint32_t matched);
  bool ask_learning(const ggml_tensor* tensor);
  void learn_range(std::int64_t now);
  void capture_learning();
  void capture_known(std::uint32_t op);
  std::unique_ptr<GraphInstance> learned_beginning();
  std::unique_ptr<GraphInstance> learned_instance();
  void adopt_learned();
  void prepare_stats();
  void take_stats(std::uint32_t op, const ggml_tensor& tensor);
  void end_op(std::uint32_t op, std::int64_t ns);
  std::int64_t now() { return clock_.ns() - epoch_ns_; }

  const ModelLayout& layout_;
  std::vector<std::unique_ptr<GraphInstance>> instances_;
  OffsetCoverage coverage_;
  OpClock clock_;
  std::atomic<bool> cancel_{false};
  std::atomic<const StepBuffer*> in_flight_{nullptr};
  std::uint64_t use_counter_ = 0;

  // The step in flight.
  StepBuffer* buffer_ = nullptr;
  ProbeMode mode_options_;
  std::int64_t epoch_ns_ = 0;
  Mode mode_ = Mode::Idle;
  bool exact_step_ = false;            // known graph, cut after every op
  GraphInstance* instance_ = nullptr;  // being matched; while learning: what the prefix is of
  std::uint32_t asked_ = 0;            // nodes listed so far
  std::uint32_t uncut_ = 0;  // of a known graph, the nodes below it want nothing but a match
  std::uint32_t ticks_ = 0;
  std::size_t next_capture_ = 0;       // into instance_->captures()
  std::uint32_t next_capture_op_ = 0;  // no capture is due before this op ends
  std::uint32_t device_ops_ = 0;       // ops that ran without a tick
  bool stopped_ = false;  // cancelled at a cut: what is listed from here on does not count

  // Learning.
  std::vector<const ggml_tensor*> nodes_;
  std::vector<OpSpan> spans_;           // op boundaries observed, then predicted
  std::uint32_t prefix_ops_ = 0;        // spans_ inherited from instance_
  std::uint32_t range_first_span_ = 0;  // spans_ from here are predicted
  std::uint32_t range_first_node_ = 0;
  std::uint32_t range_first_tick_ = 0;
  std::uint32_t pending_norm_ = kNone;  // an RMS_NORM whose next node is not yet known
  bool learned_exact_only_ = false;
  std::vector<std::int64_t> tick_times_;
  std::vector<const ggml_tensor*> captured_from_;  // parallel to buffer_->captured

  // VERBOSE: which nodes of instance_ the pattern names.
  const GraphInstance* stats_of_instance_ = nullptr;
  std::shared_ptr<const NamePattern> stats_pattern_;  // kept: no later one has its address
  std::vector<bool> stats_nodes_;
  std::vector<float> stats_scratch_;
};

}  // namespace tt
