// Stops a run at breakpoints, and lets other threads look at the values of the op at which it is
// stopped, change its output, and say how it goes on. One run; created before it begins.
//
// A stop blocks the inference thread inside a callback of llama.cpp. It ends when a client says so,
// when the request is cancelled, or when nobody has looked at it for DebugOptions::hold_ms: then
// the run goes on to its end without stopping again. The times of ops do not include the stops.
//
// Any thread may call any function, except those of OpObserver, begin_run(), begin_step() and
// end_run(), which the inference thread calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/debug/breakpoint.h"
#include "tracer/debug/change.h"
#include "tracer/debug/tensor_values.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/op_observer.h"
#include "tracer/request/debug_options.h"
#include "tracer/request/debug_state.h"

namespace tt {

class Debugger final : public OpObserver {
 public:
  static constexpr std::size_t kMaxWatched = 10'000;  // outputs; older ones are dropped
  static constexpr std::size_t kMaxChanges = 1000;    // that are recorded

  // `on_change` is called when a stop begins or has ended, by the inference thread without locks;
  // it must not block. The error text is a sentence.
  static std::expected<std::shared_ptr<Debugger>, std::string> make(
      const DebugOptions& options, std::uint32_t n_heads, std::function<void()> on_change = {});

  // Breakpoints have numbers from 1, which are not used again. The error text is a sentence.
  std::expected<std::uint32_t, std::string> add(const std::string& text);
  bool remove(std::uint32_t number);  // false: there is none
  std::vector<NumberedBreakpoint> breakpoints() const;

  std::optional<DebugStop> stop() const;  // nullopt: the run is not stopped
  // How long the stop lasts if nobody looks at it; nullopt: not stopped, or no limit.
  std::optional<std::chrono::milliseconds> time_left() const;

  // Returns false if it is not stopped. `count`: ops, layers or steps, at least 1.
  bool resume(RunUntil until, std::uint32_t count = 1);
  // Stops before the next op.
  void interrupt();

  // `tensor`: a label or a name of the stop; empty: the output, or before the op has run, its first
  // source. Renews the time limit. The error text is a sentence.
  std::expected<TensorValues, std::string> read(std::string_view tensor,
                                                const Selection& selection) const;
  // `keep`: also at the same op of each later step, until release(). A step in which the change
  // does not fit, such as a row that only a prompt has, stays as it is. A kept change ends when it
  // would need one record more than kMaxChanges; its last record says so.
  std::expected<MadeChange, std::string> change(const Change& change, bool keep = false);
  std::vector<MadeChange> changes() const;
  std::vector<KeptChange> kept() const;
  bool release(std::uint32_t number);  // false: there is none
  // What was watched, from number `from` on, at most `limit` rows.
  WatchedPage watched(std::uint64_t from, std::size_t limit) const;

  // `cancelled`: when it becomes true, a stop ends.
  void begin_run(const std::atomic<bool>& cancelled);
  void begin_step(const Step& step);
  void end_run();
  void before_op(OpId op, const ggml_tensor& node) override;
  void after_op(OpId op, ggml_tensor& node) override;

 private:
  struct Set {
    std::uint32_t number = 0;
    Breakpoint breakpoint;
    std::uint64_t hits = 0;
  };
  // Which op of every step. Nodes without a name are called node_N: N depends on the graph.
  struct OpKey {
    std::string operation, name;  // no name: empty
    LayerId layer;
    std::uint32_t nth = 0;  // of the ops of a step with equal texts and layer
    friend auto operator<=>(const OpKey&, const OpKey&) = default;
  };
  struct Kept {
    KeptChange state;
    Change change;
    OpKey op;
    std::size_t record = 0;  // its last one in changes_
  };
  Debugger(const DebugOptions& options, std::uint32_t n_heads, std::function<void()> on_change);

  bool is_cancelled() const {
    return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
  }
  std::vector<std::uint32_t> hits(const ggml_tensor& node, bool before);
  bool reaches_goal();
  OpKey key_of(const ggml_tensor& node);
  void make_kept(ggml_tensor& node);
  void hold(std::unique_lock<std::mutex>& lock, const ggml_tensor& node, bool before,
            std::vector<std::uint32_t> breakpoints);
  void renew() const;

  const std::uint32_t n_heads_;
  const std::optional<std::chrono::milliseconds> hold_;
  const std::function<void()> on_change_;

  mutable std::mutex mutex_;
  std::condition_variable resumed_;
  std::vector<Set> breakpoints_;
  std::uint32_t next_number_ = 1;
  std::uint64_t stops_ = 0;
  std::optional<DebugStop> stop_;
  const ggml_tensor* stopped_at_ = nullptr;                             // its node
  ggml_tensor* output_ = nullptr;                                       // the same, if it has run
  mutable std::optional<std::chrono::steady_clock::time_point> until_;  // end of the stop
  bool interrupted_ = false;
  bool abandoned_ = false;  // a stop has lasted until its limit
  RunUntil goal_ = RunUntil::Breakpoint;
  std::uint32_t goal_count_ = 0;
  OpPlace left_;  // where the last stop was
  std::deque<WatchedOutput> watched_;
  std::uint64_t watched_dropped_ = 0;  // number of the first one in watched_
  std::vector<MadeChange> changes_;
  std::vector<Kept> kept_;
  std::uint32_t next_kept_ = 1;

  // Inference thread.
  const std::atomic<bool>* cancelled_ = nullptr;
  OpPlace place_;
  OpKey key_;                              // of the op at place_
  std::map<OpKey, std::uint32_t> counts_;  // ops of the step so far, by keys with nth 0
  std::vector<std::byte> scratch_;
};

}  // namespace tt
