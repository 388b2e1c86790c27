// The library ticks differently than when the graph was learned, so times would be assigned to
// the wrong ops. The step reports the mismatch, and the graph is timed exactly from then on.
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/recorder.h"
#include "tracer/recorder/step_pool.h"

namespace tt::test {
namespace {

// Interposed between llama.cpp and the probe: withholds or doubles ticks as configured.
class TickFilter {
 public:
  void attach(llama_context_params& params) {
    tick_ = params.abort_callback;
    data_ = params.abort_callback_data;
    params.abort_callback = [](void* self) { return static_cast<TickFilter*>(self)->pass_on(); };
    params.abort_callback_data = this;
  }
  int withheld = 0, doubled = 0;  // counts of next ticks

 private:
  bool pass_on() {
    if (withheld > 0) {
      --withheld;
      return false;
    }
    bool stop = tick_(data_);
    if (doubled > 0) {
      --doubled;
      stop = tick_(data_) || stop;
    }
    return stop;
  }
  ggml_abort_callback tick_ = nullptr;
  void* data_ = nullptr;
};

class Cadence : public ::testing::Test {
 protected:
  void SetUp() override {
    ensure_backends_loaded();
    llama_model_params of_model = llama_model_default_params();
    std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
    of_model.devices = no_devices.data();
    model.reset(llama_model_load_from_file(kTestPaths.bundled_model, of_model));
    ASSERT_NE(model, nullptr);
    llama_context_params of_context = llama_context_default_params();
    of_context.n_ctx = 256;
    of_context.n_batch = of_context.n_ubatch = 32;
    of_context.n_threads = of_context.n_threads_batch = 1;
    probe.attach(of_context);
    ticks.attach(of_context);
    context.reset(llama_init_from_model(model.get(), of_context));
    ASSERT_NE(context, nullptr);
    ASSERT_EQ(decode(5).step.timing, Timing::Learned);
    ASSERT_EQ(decode(1).step.timing, Timing::Fast) << "new, with the structure of the first";
    const Seen fast = decode(1);
    ASSERT_EQ(fast.step.timing, Timing::Fast);
    ops = fast.step.op_ends.size();
    ASSERT_GT(ops, 50U);
  }

  struct Seen {
    Step step;
    bool mismatch = false;
  };
  Seen decode(int tokens) {
    std::vector<llama_token> batch(static_cast<std::size_t>(tokens), 5);
    StepBuffer* buffer = pool.try_acquire();
    probe.begin_step(buffer, {.exact = false,
                              .stats_filter = nullptr,
                              .capture = nullptr,
                              .epoch = std::chrono::steady_clock::now()});
    const int answer = llama_decode(context.get(), llama_batch_get_one(batch.data(), tokens));
    EXPECT_EQ(answer, 0);
    probe.end_step(answer != 0);
    Seen seen{.step = step_from(*buffer), .mismatch = buffer->count_mismatch};
    buffer->graph.reset();
    pool.release(buffer);
    return seen;
  }

  // Checks the step whose ticks differ, and the later steps of its graph.
  void expect_exact_from_now_on() {
    const Seen differing = decode(1);
    EXPECT_TRUE(differing.mismatch);
    EXPECT_TRUE(differing.step.op_ends.empty()) << "times of unknown ops";
    EXPECT_EQ(differing.step.timing, Timing::None);
    for (int i = 0; i < 3; ++i) {
      const Seen after = decode(1);
      EXPECT_FALSE(after.mismatch);
      EXPECT_EQ(after.step.timing, Timing::Exact);
      EXPECT_EQ(after.step.op_ends.size(), ops);
      EXPECT_TRUE(std::ranges::is_sorted(after.step.op_ends));
    }
    ticks.withheld = 0;
    const Seen other = decode(5);
    EXPECT_EQ(other.step.timing, Timing::Fast) << "another graph is not affected";
    EXPECT_FALSE(other.mismatch);
  }

  const GgufIndex index = *GgufIndex::open(kTestPaths.bundled_model);
  LlamaModel model;
  const ModelLayout layout{index, MappedFiles::of_this_process(index.files())};
  Probe probe{layout};
  TickFilter ticks;
  LlamaContext context;
  StepPool pool{1, 4096, 1U << 16};
  std::size_t ops = 0;
};

TEST_F(Cadence, DetectsMissingTick) {
  ticks.withheld = 1;
  expect_exact_from_now_on();
}

TEST_F(Cadence, DetectsExtraTick) {
  ticks.doubled = 1;
  expect_exact_from_now_on();
}

TEST_F(Cadence, WithoutTicksIsTimedExactly) {
  ticks.withheld = 1 << 20;
  expect_exact_from_now_on();
}

// A graph with the structure of a known one that runs with other ops: its step has no times, it is
// learned when it is used again, and so is every other new graph.
TEST_F(Cadence, LearnsGraphsOnceOneDiffersFromItsStructure) {
  EXPECT_EQ(decode(6).step.timing, Timing::Fast);
  ticks.withheld = 1;
  const Seen differing = decode(7);
  EXPECT_TRUE(differing.mismatch);
  EXPECT_TRUE(differing.step.op_ends.empty()) << "times of unknown ops";
  EXPECT_EQ(differing.step.timing, Timing::None);
  for (const SlotValues& values : differing.step.slots)
    EXPECT_TRUE(values.ints.empty() && values.floats.empty()) << "values of unknown ops";
  for (const int tokens : {7, 8}) {
    EXPECT_EQ(decode(tokens).step.timing, Timing::Learned);
    const Seen known = decode(tokens);
    EXPECT_EQ(known.step.timing, Timing::Fast);
    EXPECT_FALSE(known.mismatch);
    EXPECT_EQ(known.step.op_ends.size(), ops);
  }
}

}  // namespace
}  // namespace tt::test
