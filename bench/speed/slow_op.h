// Plants a slow op: makes the ops of one kind take longer by a share of their time. It wraps the
// callback that llama.cpp calls after each op, in front of the probe's, so that the added time is
// that of the op, with and without recording.
#pragma once

#include <llama.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/bench/bench_context.h"
#include "tracer/bench/bench_round.h"

namespace tt::bench {

class SlowOp {
 public:
  // `slow`: for each op of the graph, whether it is of this kind. All graphs have these ops.
  SlowOp(std::vector<bool> slow, double share) : slow_(std::move(slow)), share_(share) {}

  const std::vector<bool>& ops() const { return slow_; }

  ContextHook hook() {
    return [this](llama_context_params& params) {
      Wrapped& of = *wrapped_.emplace_back(std::make_unique<Wrapped>(*this));
      of.tick = std::exchange(params.abort_callback, &Wrapped::on_tick);
      of.tick_data = std::exchange(params.abort_callback_data, &of);
      if (params.cb_eval == nullptr) return;
      of.list = std::exchange(params.cb_eval, &Wrapped::on_list);
      of.list_data = std::exchange(params.cb_eval_user_data, &of);
    };
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Wrapped {
    explicit Wrapped(const SlowOp& owner) : slow(owner) {}
    // Nodes are listed before a graph runs, and again before each part of a graph that is split.
    static bool on_list(ggml_tensor* node, bool ask, void* self) {
      auto& of = *static_cast<Wrapped*>(self);
      of.op = 0;
      return of.list(node, ask, of.list_data);
    }
    static bool on_tick(void* self) {
      auto& of = *static_cast<Wrapped*>(self);
      const std::size_t ops = of.slow.slow_.size();
      if (of.op == ops) of.op = 0;
      const auto now = Clock::now();
      if (of.op > 0 && of.slow.slow_[of.op]) {
        const auto added = std::chrono::duration<double>(now - of.last).count() * of.slow.share_;
        while (std::chrono::duration<double>(Clock::now() - now).count() < added) {
        }
      }
      ++of.op;
      const bool stop = of.tick != nullptr && of.tick(of.tick_data);
      of.last = Clock::now();
      return stop;
    }
    const SlowOp& slow;
    ggml_abort_callback tick = nullptr;
    void* tick_data = nullptr;
    ggml_backend_sched_eval_callback list = nullptr;
    void* list_data = nullptr;
    std::size_t op = 0;  // that ends next
    Clock::time_point last;
  };

  const std::vector<bool> slow_;
  const double share_;
  std::vector<std::unique_ptr<Wrapped>> wrapped_;
};

// Which ops of the first test's graph are of this kind: measures a round without a slow op.
std::vector<bool> ops_of_kind(const BenchSetup& setup, BenchWatch& watch, std::string_view kind);

}  // namespace tt::bench
