// A graph on more than one device. The second device is llama.cpp's own RPC server on this
// machine, so no GPU is required. Its ops do not tick, so they are timed exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <format>
#include <map>
#include <string>
#include <thread>

#include "analysis/report/report.h"
#include "tests/analysis/report/report_check.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/rpc_server.h"
#include "tracer/engine/backends.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

// One server for all tests: a registered device persists until the process ends.
class Devices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server = std::make_unique<RpcServer>(); }
  static void TearDownTestSuite() { server.reset(); }

  static TracedModel on_rpc(const char* shape, int layers) {
    return TracedModel(generated_model({.shape = shape}), TracedModel::small_context(),
                       {.gpu_layers = layers, .rpc_servers = {server->endpoint()}});
  }
  static std::map<std::string, int> ops_by_device(const GraphTemplate& graph) {
    std::map<std::string, int> ops;
    for (const Op& op : graph.ops) ++ops[op.device];
    return ops;
  }
  static std::unique_ptr<RpcServer> server;
};
std::unique_ptr<RpcServer> Devices::server;

void expect_complete_recording(const TracedModel::Run& run, std::size_t steps) {
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  EXPECT_EQ(run.recording.losses, LossCounters{});
  EXPECT_TRUE(check_session(run.file).value().empty());
  ASSERT_EQ(run.steps().size(), steps);
  for (const Step& step : run.steps()) {
    SCOPED_TRACE(step.id.v);
    const auto graph = graph_of(run.reader(), step);
    EXPECT_TRUE(step.timing == Timing::Exact || step.timing == Timing::Learned)
        << to_text(step.timing);
    EXPECT_EQ(step.op_ends.size(), graph->ops.size());
    EXPECT_TRUE(std::ranges::is_sorted(step.op_ends));
    for (std::size_t i = 0; i < graph->slots.size(); ++i) {
      EXPECT_FALSE(step.slots[i].ints.empty() && step.slots[i].floats.empty())
          << to_text(graph->slots[i].kind) << " of " << graph->tensor(graph->slots[i].tensor).name;
    }
  }
}

TEST_F(Devices, RunsWholeModelOnAnotherDevice) {
  TracedModel traced = on_rpc("small", 99);
  TracedModel on_cpu(generated_model({.shape = "small"}));
  const auto request = greedy_tokens(20, 6);
  const auto run = traced.run(request);
  expect_complete_recording(run, 6);
  const auto graph = graph_of(run.reader(), run.steps().at(3));
  const auto ops = ops_by_device(*graph);
  int remote = 0;
  for (const auto& [device, count] : ops) {
    if (device.starts_with("RPC")) remote += count;
  }
  EXPECT_GT(remote, 150);
  // The weights' file offsets are known although their memory is on the other device.
  std::map<Source, int> sources;
  for (const Tensor& tensor : graph->tensors) {
    if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor) continue;
    ++sources[tensor.source];
    EXPECT_EQ(tensor.file, traced.engine().gguf().find(tensor.name)->file);
  }
  EXPECT_GT(sources[Source::Device], 100);
  // Both run the same kernels on the same numbers, but a repacked weight may round differently:
  // only the amounts of work are compared.
  const auto cpu = on_cpu.run(request);
  const auto cpu_graph = graph_of(cpu.reader(), cpu.steps().at(3));
  EXPECT_EQ(graph->nodes.size(), cpu_graph->nodes.size());
  EXPECT_EQ(run.result.generated, cpu.result.generated);
  for (const auto& [device, count] : ops)
    std::printf("whole: %d ops on %s\n", count, device.c_str());
}

TEST_F(Devices, SplitsModelOverTwoDevices) {
  TracedModel traced = on_rpc("small", 6);
  const auto run = traced.run(greedy_tokens(20, 6));
  expect_complete_recording(run, 6);
  const Step decode = run.steps().at(3);
  const auto graph = graph_of(run.reader(), decode);
  const auto ops = ops_by_device(*graph);
  ASSERT_TRUE(ops.contains("CPU"));
  EXPECT_EQ(ops.size(), 2U);
  for (const auto& [device, count] : ops) {
    EXPECT_GT(count, 50) << device;
    std::printf("spread: %d ops on %s\n", count, device.c_str());
  }
  // A layer runs on the device that has its weights.
  std::map<std::int32_t, std::string> device_of_layer;
  for (const Op& op : graph->ops) {
    if (op.layer != kNoLayer) device_of_layer[op.layer.v] = op.device;
  }
  EXPECT_EQ(device_of_layer[0], "CPU");
  EXPECT_TRUE(device_of_layer[11].starts_with("RPC")) << device_of_layer[11];
  // Positions match the step on whichever device they were read.
  for (std::size_t i = 0; i < graph->slots.size(); ++i) {
    if (graph->slots[i].kind != SlotKind::Positions) continue;
    EXPECT_EQ(decode.slots[i].ints, (std::vector<std::int64_t>{22}));
  }
}

// The report names the CPU's share beside the device's, or says that the device did no work.
TEST_F(Devices, ReportAdvisesByComputingDevice) {
  for (const int layers : {0, 6, 99}) {
    SCOPED_TRACE(layers);
    TracedModel traced = on_rpc("small", layers);
    const auto run = traced.run(greedy_tokens(20, 6));
    const auto reader = run.reader();
    EXPECT_TRUE(reader.info()->fact("host.devices").starts_with("RPC"));
    const auto index = SessionIndex::build(reader);
    ASSERT_TRUE(index.has_value());
    auto figures = gather_report_data(run.file, *index, reader);
    ASSERT_TRUE(figures.has_value()) << figures.error().message;
    expect_figures(*figures, reader);  // for any CPU share of the time
    EXPECT_EQ(figures->devices.size(), layers == 0 ? 1U : 2U);
    const auto advises = [&](AdviceKind kind) {
      return std::ranges::contains(advice_of(*figures), kind, &Advice::kind);
    };
    EXPECT_EQ(advises(AdviceKind::UseDevice), layers == 0);
    if (layers != 6) continue;
    // Measured times depend on the load of this machine, so these are set by the test.
    for (const double of_cpu : {0.0, 4.0, 6.0, 60.0}) {
      SCOPED_TRACE(of_cpu);
      for (DeviceTime& device : figures->devices)
        device.ns = device.name == "CPU" ? of_cpu : 100 - of_cpu;
      EXPECT_EQ(advises(AdviceKind::MoreLayersOnDevice), of_cpu >= 5);
    }
  }
}

TEST_F(Devices, ReadsRoutedExpertsFromOtherDevice) {
  TracedModel traced = on_rpc("moe", 99);
  const auto run = traced.run(greedy_tokens(9, 4));
  expect_complete_recording(run, 4);
  const Step decode = run.steps().at(2);
  const auto graph = graph_of(run.reader(), decode);
  std::map<SlotKind, int> slots;
  for (std::size_t i = 0; i < graph->slots.size(); ++i) {
    ++slots[graph->slots[i].kind];
    for (const std::int64_t expert : decode.slots[i].ints) {
      if (graph->slots[i].kind == SlotKind::Experts) {
        EXPECT_GE(expert, 0);
        EXPECT_LT(expert, 8);
      }
    }
  }
  EXPECT_EQ(slots[SlotKind::Experts], 8);
  EXPECT_EQ(slots[SlotKind::ExpertScores], 8);
}

TEST_F(Devices, EachServerIsAddedOnce) {
  TracedModel first = on_rpc("small", 99);
  const auto devices = offload_devices();
  TracedModel second = on_rpc("small", 99);
  EXPECT_EQ(offload_devices(), devices);
}

TEST_F(Devices, CancelsOnOtherDevice) {
  for (const int layers : {6, 99}) {
    SCOPED_TRACE(layers);
    TracedModel traced = on_rpc("small", layers);
    GenerationRequest request = greedy_tokens(20, 400);
    traced.run(greedy_tokens(20, 3));
    std::atomic<bool> done{false};
    std::thread canceller([&] {
      while (!done) {
        const StepBuffer* step = traced.engine().probe().in_flight();
        if (step != nullptr && step->step_id.load() > 3 && step->ops_done.load() > 40) {
          traced.engine().cancel();
          return;
        }
        std::this_thread::yield();
      }
    });
    const auto run = traced.run(request);
    done = true;
    canceller.join();
    EXPECT_EQ(run.result.reason, StopReason::Cancelled);
    EXPECT_LT(run.result.generated, 400U);
    EXPECT_TRUE(check_session(run.file).value().empty());

    GenerationRequest next = greedy_tokens(20, 5);
    next.reuse_prefix = true;
    const auto after = traced.run(next);
    TracedModel fresh = on_rpc("small", layers);
    EXPECT_EQ(after.captured.tokens.back().id, fresh.run(next).captured.tokens.back().id);
  }
}

TEST(DevicesErrors, NamesUnreachableServer) {
  ensure_backends_loaded();
  const std::string endpoint = std::format("127.0.0.1:{}", free_port());
  auto engine = Engine::load(
      {.path = generated_model({.shape = "small"}), .gpu_layers = 99, .rpc_servers = {endpoint}},
      TracedModel::small_context(), {});
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().kind, EngineError::Kind::BadOption);
  EXPECT_TRUE(engine.error().message.contains(endpoint)) << engine.error().message;
}

}  // namespace
}  // namespace tt::test
