// Cost of recording per op on the inference thread. Budget: 40 ns.
//
// One iteration replays the callbacks of a real decode into the probe: all calls of both
// callbacks that llama.cpp made, with the original tensors, including fused pairs, routed
// experts, cache positions and attention masks, and with acquiring and releasing a buffer. The
// graphs are those of the named shapes, op for op. The tensors are narrow. That does not change
// the result: the probe reads tensor data only in slots, and their size depends only on layers,
// experts and cache cells (here 300 of 512).
// No kernel runs between the callbacks, so CPU caches are warmer than in a real step;
// token_bench measures real steps.
#include <benchmark/benchmark.h>
#include <ggml.h>
#include <llama.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/budget.h"
#include "tracer/engine/backends.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/modelgen/model_writer.h"
#include "tracer/probe/op_clock.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/step_pool.h"

namespace {

constexpr double kBudgetNs = 40;
constexpr int kPrompt = 300;
constexpr const char* kPerOp = "s/op";
constexpr const char* kReadClock = "ReadSteadyClock";

// Intercepts the callbacks between llama.cpp and the probe: records the calls and replays them
// in the same order.
class Tape {
 public:
  void attach(llama_context_params& params) {
    eval_ = params.cb_eval;
    tick_ = params.abort_callback;
    probe_ = params.cb_eval_user_data;
    params.cb_eval = [](ggml_tensor* node, bool ask, void* self) {
      auto& tape = *static_cast<Tape*>(self);
      tape.calls_.push_back({.node = node, .ask = ask});
      return tape.eval_(node, ask, tape.probe_);
    };
    params.abort_callback = [](void* self) {
      auto& tape = *static_cast<Tape*>(self);
      tape.calls_.push_back({});
      return tape.tick_(tape.probe_);
    };
    params.cb_eval_user_data = params.abort_callback_data = this;
  }
  void clear() { calls_.clear(); }
  void play() const {
    for (const Call& call : calls_) {
      if (call.node == nullptr) {
        tick_(probe_);
      } else {
        eval_(call.node, call.ask, probe_);
      }
    }
  }

 private:
  struct Call {
    ggml_tensor* node = nullptr;  // null: a call of abort_callback
    bool ask = false;
  };
  std::vector<Call> calls_;
  ggml_backend_sched_eval_callback eval_ = nullptr;
  ggml_abort_callback tick_ = nullptr;
  void* probe_ = nullptr;
};

// A model and its last decode, whose graph was recognized and timed in fast mode.
class RecordedDecode {
 public:
  explicit RecordedDecode(const std::filesystem::path& file)
      : index_(*tt::GgufIndex::open(file)), model_(load(file)), pool_(2, 8192, 1U << 20) {
    layout_.emplace(tt::ModelLayout{index_, tt::MappedFiles::of_this_process(index_.files())});
    probe_ = std::make_unique<tt::Probe>(*layout_);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 1024;
    params.n_batch = params.n_ubatch = 512;
    params.n_threads = params.n_threads_batch = 1;
    probe_->attach(params);
    tape_.attach(params);
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_) fail("no context");
    decode(kPrompt);
    for (int i = 0; i < 3; ++i) decode(1);
    real_ = step([this] { decode_tokens(1); });
    if (!real_.fast) fail("the graph of the last decode was not recognized");
    if (play() != real_) fail("the replay differs from the recorded decode");
  }

  struct StepFacts {
    bool fast = false;
    std::uint32_t ops = 0;
    std::size_t slots = 0, slot_bytes = 0;
    friend bool operator==(const StepFacts&, const StepFacts&) = default;
  };
  StepFacts play() {
    return step([this] { tape_.play(); });
  }
  const StepFacts& real() const { return real_; }

 private:
  static tt::LlamaModel load(const std::filesystem::path& file) {
    llama_model_params params = llama_model_default_params();
    std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
    params.devices = no_devices.data();
    return tt::LlamaModel(llama_model_load_from_file(file.c_str(), params));
  }
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "record_bench: %s\n", why);
    std::exit(1);
  }
  void decode(int tokens) {
    step([&] { decode_tokens(tokens); });
  }
  void decode_tokens(int count) {
    tape_.clear();
    std::vector<llama_token> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 1);
    if (llama_decode(context_.get(), llama_batch_get_one(tokens.data(), count)) != 0) {
      fail("a decode failed");
    }
  }
  template <class Run>
  StepFacts step(Run run) {
    tt::StepBuffer* buffer = pool_.try_acquire();
    probe_->begin_step(buffer,
                       {.exact = false, .stats_filter = nullptr, .capture = nullptr, .epoch = {}});
    run();
    probe_->end_step(false);
    const StepFacts seen{
        .fast = buffer->header.timing == tt::Timing::Fast && !buffer->count_mismatch,
        .ops = buffer->ops_done.load(),
        .slots = buffer->captured.size(),
        .slot_bytes = buffer->arena_used};
    pool_.release(buffer);
    return seen;
  }

  tt::GgufIndex index_;
  tt::LlamaModel model_;
  std::optional<tt::ModelLayout> layout_;
  std::unique_ptr<tt::Probe> probe_;
  Tape tape_;
  tt::LlamaContext context_;
  tt::StepPool pool_;
  StepFacts real_;
};

// Writes a model of the named shape with all layers and experts but few MB.
std::filesystem::path narrow_model(const std::string& shape) {
  tt::modelgen::ModelSpec spec;
  spec.shape = shape;
  spec.dims.embd = 256;
  spec.dims.heads = 4;
  spec.dims.kv_heads = 2;
  spec.dims.ff = 256;
  spec.dims.vocab = 1024;
  const auto file = std::filesystem::temp_directory_path() / ("tt-record-bench-" + shape + ".gguf");
  if (const auto written = tt::modelgen::write_model(spec, file); !written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    std::exit(1);
  }
  return file;
}

void record_one_step(benchmark::State& state, RecordedDecode& decoded) {
  for (auto _ : state) benchmark::DoNotOptimize(decoded.play());
  if (decoded.play() != decoded.real()) state.SkipWithError("the graph was not recognized");
  const double ops = decoded.real().ops;
  state.counters[kPerOp] = benchmark::Counter(
      ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetLabel(std::format("{} ops, {} slots of {} bytes", ops, decoded.real().slots,
                             decoded.real().slot_bytes));
}

// Reading the clock is most of the cost per op. Its speed makes results of different machines,
// or of one machine at different times, comparable.
void read_steady_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}

void read_op_clock(benchmark::State& state) {
  tt::OpClock clock;
  for (auto _ : state) benchmark::DoNotOptimize(clock.ns());
}

// The default table, with the comparison with the budget after each median.
class BudgetReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      const auto each = run.counters.find(kPerOp);
      if (run.run_name.function_name == kReadClock) clock_ns_ = run.GetAdjustedRealTime();
      if (each == run.counters.end()) continue;
      const double ns = each->second.value * 1e9;
      const auto readings = clock_ns_ == 0  // filtered out
                                ? std::string()
                                : std::format(", {:.2f} readings of steady_clock", ns / clock_ns_);
      GetOutputStream() << std::format(
          "{:.1f} ns per op{}; {}\n", ns, readings,
          tt::bench::compare_with_budget(ns, tt::bench::Bound::AtMost, kBudgetNs));
    }
  }

 private:
  double clock_ns_ = 0;  // per reading of steady_clock
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  tt::load_backends({});
  benchmark::RegisterBenchmark(kReadClock, read_steady_clock)
      ->Repetitions(5)
      ->ReportAggregatesOnly();
  benchmark::RegisterBenchmark("ReadOpClock", read_op_clock)
      ->Repetitions(5)
      ->ReportAggregatesOnly();
  std::vector<std::unique_ptr<RecordedDecode>> models;
  for (const char* shape : {"tinyllama-1.1b", "small", "moe"}) {
    const auto file = narrow_model(shape);
    RecordedDecode& decoded = *models.emplace_back(std::make_unique<RecordedDecode>(file));
    std::filesystem::remove(file);  // the model remains mapped
    benchmark::RegisterBenchmark(
        std::string("RecordOneStep/") + shape,
        [&decoded](benchmark::State& state) { record_one_step(state, decoded); })
        ->Repetitions(5)
        ->ReportAggregatesOnly();
  }
  BudgetReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return tt::bench::exit_code();
}
