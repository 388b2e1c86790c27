// Observes every graph that a context evaluates, through two callbacks of llama.cpp's public
// API: cb_eval lists the nodes of a graph before they run, abort_callback is called after
// each executed op (a tick; docs/llama-cpp.md).
//
// A known graph is recognised node by node while it is listed. Then only numbers are written:
// an end time per tick, and slot values at the ops that read them. A new graph with the structure
// of a known one (other shapes or addresses: a prompt of another length) has its op boundaries,
// and runs in the same way; its template is built when it has run. Any other new graph is learned
// in the step in which it appears: it is split after every op to observe which nodes run as one
// op; a prefix shared with a known graph keeps its known op boundaries. The number of ticks
// of every step is compared with the template. A graph with a mismatch is timed exactly from
// then on, and the mismatch is recorded. If the structure had been taken from another graph, it is
// learned when it is used again, as is every new graph from then on.
//
// A step with an observer (op_observer.h) is learned each time, with one op per node.
//
// Everything except request_cancel() runs on the inference thread. Between the first and the
// last op of a step there are no locks, and no allocations unless the graph is new.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/probe/ggml_graph.h"
#include "tracer/probe/graph_instance.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/probe/op_clock.h"
#include "tracer/probe/op_observer.h"
#include "tracer/probe/step_buffer.h"
#include "tracer/probe/value_capture.h"

struct llama_context_params;

namespace tt {

struct ProbeMode {
  bool exact = false;                               // split after every op, not only in new graphs
  std::shared_ptr<const NamePattern> stats_filter;  // VERBOSE: value statistics of matching outputs
  std::shared_ptr<ValueCapture> capture;            // null: it wants no outputs of this step
  OpObserver* observer = nullptr;                   // null: nobody watches single ops
  std::chrono::steady_clock::time_point epoch;      // the session's Ns{0}
};

class Probe {
 public:
  explicit Probe(const ModelLayout& layout);

  // Sets the callbacks. The probe must outlive the context.
  void attach(llama_context_params& params);

  // Call before and after one llama_decode or llama_encode. With a null buffer nothing is
  // recorded, but cancelling works. end_step() fills the buffer's graph, addresses, times and
  // slots, and keeps the caller's header. It returns whether the graph ran completely. (llama.cpp
  // also reports success for a graph that was stopped at a split point.)
  void begin_step(StepBuffer* buffer, const ProbeMode& mode);
  bool end_step(bool aborted);

  // Stops the graph in flight after the current op. Any thread.
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }
  void reset_cancel() { cancel_.store(false, std::memory_order_relaxed); }
  std::atomic<bool>& cancel() { return cancel_; }  // true: as request_cancel()
  bool cancel_requested() const { return cancel_.load(std::memory_order_relaxed); }

  // The step in flight for a live view (any thread); null between steps. See StepBuffer.
  const StepBuffer* in_flight() const { return in_flight_.load(std::memory_order_acquire); }

  // Number of ops of the running step, or of the last one, whose work on the calling thread has
  // ended; all work of the ops before these. Counts in every mode, also without a buffer. Any
  // thread; an acquire load also shows what these ops have written.
  const std::atomic<std::uint32_t>& ops_run() const { return ticks_; }

  // When the graph of the last step could run; nullopt: llama.cpp did not begin to run one.
  std::optional<std::chrono::steady_clock::time_point> graph_ready() const { return graph_ready_; }

  const OffsetCoverage& coverage() const { return coverage_; }       // of the largest graph so far
  const BufferSizes& buffer_sizes() const { return buffer_sizes_; }  // the largest so far
  std::size_t memory_bytes() const;                                  // estimate, all instances
  std::size_t known_graphs() const { return instances_.size(); }

 private:
  enum class Mode : std::uint8_t { Idle, Matching, Following, Learning };
  // What is read of an op, at its last node, when it has run.
  struct Wanted {
    const CaptureForm* values = nullptr;  // the output, in this form
    bool stats = false, attention = false, lens = false;
    bool next_sources = false;  // the sources of the next op, which are complete then
    bool any() const { return values != nullptr || stats || attention || lens || next_sources; }
    std::uint64_t captured() const { return std::uint64_t{values != nullptr} + attention + lens; }
  };
  // `second`: the name of the second source; empty: there is none.
  Wanted wanted_of(std::string_view operation, const std::string& name,
                   const std::string& second) const;

  static bool on_eval(ggml_tensor* tensor, bool ask, void* self);
  static bool on_tick(void* self);
  bool node_listed(const ggml_tensor* tensor);
  bool node_computed(ggml_tensor* tensor);
  bool tick();

  bool list_known(std::uint32_t index, const ggml_tensor* tensor);
  bool find_instance(std::uint32_t index, const ggml_tensor* tensor);
  void leave_known(std::uint32_t matched, const ggml_tensor* next);
  void take_listed(std::uint32_t matched);
  GraphInstance* find_structure(const ggml_tensor* next) const;
  bool list_following(const ggml_tensor* tensor);
  std::unique_ptr<GraphInstance> end_following(bool aborted);
  void inherit_ops();
  void start_learning();
  bool list_learning(const ggml_tensor* tensor);
  void learn_range(std::int64_t now);
  void capture_learning();
  void capture_known(std::uint32_t op);
  void capture_followed(std::uint32_t op);
  std::unique_ptr<GraphInstance> learned_prefix();
  std::unique_ptr<GraphInstance> learned_instance();
  void add_learned();
  void keep_observed(std::unique_ptr<GraphInstance> learned);
  template <class Call>
  void observe(Call call);
  bool takes_values() const {
    return mode_options_.stats_filter != nullptr || mode_options_.capture != nullptr;
  }
  void prepare_values();
  std::uint64_t hidden_outputs(const GraphTemplate& graph) const;
  void take_sources_known(std::uint32_t index, const ggml_tensor& tensor);
  void take_sources_learning(const ggml_tensor& output);
  void take_values(std::uint32_t op, const ggml_tensor& output, Wanted wanted);
  void end_op(std::uint32_t op, std::int64_t ns);
  OpId last_op() const { return OpId{static_cast<std::uint32_t>(spans_.size() - 1)}; }
  std::int64_t now() { return clock_.ns() - epoch_ns_; }

  const ModelLayout& layout_;
  std::vector<std::unique_ptr<GraphInstance>> instances_;
  // Of observed steps, oldest first: they are not recognised, but share their templates.
  std::vector<std::unique_ptr<GraphInstance>> observed_;
  OffsetCoverage coverage_;
  BufferSizes buffer_sizes_;
  OpClock clock_;
  std::atomic<bool> cancel_{false};
  std::atomic<const StepBuffer*> in_flight_{nullptr};
  std::uint64_t use_counter_ = 0;

  // The step in flight.
  StepBuffer* buffer_ = nullptr;
  ProbeMode mode_options_;
  std::int64_t epoch_ns_ = 0;
  Mode mode_ = Mode::Idle;
  bool exact_step_ = false;  // known graph, split after every op
  // Being matched. While learning: owner of the prefix. While following: has the structure.
  GraphInstance* instance_ = nullptr;
  std::uint32_t listed_ = 0;                                          // nodes listed so far
  std::optional<std::chrono::steady_clock::time_point> graph_ready_;  // when the first was listed
  std::uint32_t fast_match_end_ =
      0;  // nodes below this index of a known graph need only be compared
  std::atomic<std::uint32_t> ticks_{0};  // written by the inference thread only
  std::size_t next_capture_ = 0;         // into instance_->captures()
  std::uint32_t next_capture_op_ = 0;    // no capture is due before this op ends
  std::uint32_t device_ops_ = 0;         // ops that ran without a tick
  bool stopped_ = false;  // cancelled at a split point: ignore nodes listed afterwards

  // Following and learning.
  bool follows_ = true;  // no graph has had other ops than the one with its structure
  std::vector<const ggml_tensor*> nodes_;
  std::vector<OpSpan> spans_;           // op boundaries observed, then predicted
  std::uint32_t prefix_ops_ = 0;        // spans_ inherited from instance_
  std::uint32_t range_first_span_ = 0;  // spans_ from here are predicted
  std::uint32_t range_first_node_ = 0;
  std::uint32_t range_first_tick_ = 0;
  std::uint32_t pending_norm_ = kNone;  // an RMS_NORM whose next node is unknown
  bool learned_exact_only_ = false;
  std::vector<std::int64_t> tick_times_;
  std::vector<const ggml_tensor*> captured_from_;  // parallel to buffer_->captured

  // What of the nodes of instance_ is wanted.
  const GraphInstance* wanted_of_instance_ = nullptr;
  std::shared_ptr<const NamePattern> wanted_pattern_;  // keeps the address unique for comparison
  std::shared_ptr<const ValueCapture> wanted_capture_;
  std::vector<bool> wanted_rules_;  // of wanted_capture_
  std::vector<Wanted> wanted_;
  std::vector<std::uint32_t> ops_with_sources_;  // whose sources are wanted, in order
  std::size_t next_with_sources_ = 0;            // into ops_with_sources_
  std::uint64_t hidden_outputs_ = 0;             // of instance_
  std::vector<std::byte> stats_scratch_;
};

}  // namespace tt
