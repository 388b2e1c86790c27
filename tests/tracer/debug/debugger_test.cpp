// Stepping shows what llama.cpp's own llama-eval-callback prints, and stops end in every way.
#include "tracer/debug/debugger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <format>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/eval_callback.h"
#include "tests/tracer/debug/debugged_run.h"
#include "tracer/debug/change.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;
using Until = RunUntil;

constexpr const char* kText = "the old sea and the wind";
const DebugOptions kNoLimit{.breakpoints = {}, .hold_ms = std::nullopt};

// ---------------------------------------------------------------- what a stop shows

std::vector<float> printed_elements(const TensorValues& of) {
  constexpr std::uint64_t kEdge = 3;
  const auto places = [](std::uint64_t n) {
    std::vector<std::uint64_t> at;
    for (std::uint64_t i = 0; i < n; ++i)
      if (n <= 2 * kEdge || i < kEdge || i >= n - kEdge) at.push_back(i);
    return at;
  };
  std::vector<float> elements;
  for (const std::uint64_t i3 : places(of.ne[3]))
    for (const std::uint64_t i2 : places(of.ne[2]))
      for (const std::uint64_t i1 : places(of.ne[1]))
        for (const std::uint64_t i0 : places(of.ne[0]))
          elements.push_back(of.values[((i3 * of.ne[2] + i2) * of.ne[1] + i1) * of.ne[0] + i0]);
  return elements;
}

class Stepping : public ::testing::TestWithParam<const char*> {};

void expect_printed(const TensorValues& ours, const EvalCallbackRun::Values& theirs) {
  const std::vector<float> elements = printed_elements(ours);
  ASSERT_EQ(elements.size(), theirs.printed.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float value = theirs.printed[i];
    if (std::isfinite(value)) {
      ASSERT_NEAR(elements[i], value, 0.00005001F + 2e-7F * std::abs(value)) << i;
    } else {
      ASSERT_TRUE(elements[i] == value || (std::isnan(elements[i]) && std::isnan(value))) << i;
    }
  }
}

// Also of the first nodes of pairs that ggml otherwise fuses.
TEST_P(Stepping, ShowsTheOpsAndValuesOfEvalCallback) {
  const std::string shape = GetParam();
  const auto path = is_arch_model(shape) ? arch_model_with_letters(shape)
                                         : generated_model({.shape = shape, .dims = {.layers = 3}});
  const EvalCallbackRun theirs = run_eval_callback(path, kText, TracedModel::small_context());
  DebuggedModel model(path);
  const auto debugger = model.begin(text_request(kText, 1), {});
  std::size_t node = 0, ops = 0, empty = 0;
  while (const auto stop = model.resume(*debugger, Until::Op)) {
    // Nodes between two ops compute nothing: they are views, or llama.cpp does not run them.
    static const std::set<std::string> views = {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"};
    while (node < theirs.nodes.size() && theirs.nodes[node].name != trimmed(stop->place.name)) {
      const bool is_view = views.contains(theirs.nodes[node].op);
      EXPECT_TRUE(is_view || theirs.values[node].sum == 0) << theirs.nodes[node];
      ++node;
    }
    while (node < theirs.nodes.size() && views.contains(theirs.nodes[node].op)) ++node;
    ASSERT_LT(node, theirs.nodes.size()) << stop->place.name;
    SCOPED_TRACE(std::format("node {}: {}", node, theirs.nodes[node].name));
    EXPECT_EQ(trimmed(stop->place.name), theirs.nodes[node].name);
    EXPECT_EQ(stop->place.operation, theirs.nodes[node].op);
    EXPECT_EQ(stop->place.op.v, ops++);
    EXPECT_EQ(stop->place.n_tokens, theirs.tokens.size());
    const auto read = debugger->read("", {});
    const EvalCallbackRun::Values& printed = theirs.values[node++];
    if (printed.printed.empty()) {  // the state of sequences that the step does not evaluate
      ASSERT_FALSE(read.has_value());
      EXPECT_TRUE(read.error().ends_with("cannot be read: it has no elements.")) << read.error();
      const auto changed = debugger->change(*Change::parse("zero head 0"));
      ASSERT_FALSE(changed.has_value());
      EXPECT_TRUE(changed.error().ends_with("it has no elements.")) << changed.error();
      ++empty;
      continue;
    }
    ASSERT_TRUE(read.has_value()) << read.error();
    expect_printed(*read, printed);
    if (HasFailure()) return;
  }
  EXPECT_EQ(node, theirs.nodes.size());
  EXPECT_GT(ops, 30U);
  EXPECT_EQ(model.status().state, JobState::Done);
  EXPECT_EQ(model.status().recording.losses, LossCounters{});
  std::printf("%s: %zu ops, %zu of them with an empty output\n", GetParam(), ops, empty);
}

// Dense, mixtures of experts, state space and linear attention, and hybrids of attention with both.
INSTANTIATE_TEST_SUITE_P(Shapes, Stepping,
                         ::testing::Values("small", "moe", "gpt-oss-like", "deepseek-like", "mamba",
                                           "rwkv", "jamba-dense", "falcon-h1-dense",
                                           "qwen3next-moe"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Whatever is looked at, the tokens are those of a run without a debugger.
TEST(Debugger, ChangesNothingUnlessAsked) {
  const auto path = generated_model({.shape = "small", .dims = {.layers = 3}});
  TracedModel plain(path);
  const auto expected = plain.run(text_request(kText, 6));
  DebuggedModel model(path);
  const auto debugger = model.begin(text_request(kText, 6), {.breakpoints = {"l_out layer 1"}});
  int stops = 0;
  auto stop = model.resume(*debugger, Until::Breakpoint);
  for (; stop; stop = model.resume(*debugger, Until::Breakpoint), ++stops) {
    EXPECT_EQ(stop->place.name, "l_out-1");
    EXPECT_EQ(stop->place.step.v, static_cast<std::uint32_t>(stops));
    EXPECT_TRUE(debugger->read("src0", {}).has_value() || debugger->read("src1", {}).has_value());
  }
  EXPECT_EQ(stops, 6);
  EXPECT_EQ(model.status().text, expected.result.text);
  // The recording is complete: decodes share one graph, in which each node is an op.
  const SessionReader session = model.session();
  EXPECT_TRUE(check_session(model.file()).value().empty());
  const Step first = session.step(StepId{1}).value(), last = session.step(StepId{5}).value();
  EXPECT_EQ(first.graph, last.graph);
  for (const Op& op : session.graph(first.graph).value()->ops) EXPECT_EQ(op.nodes, 1U);
  EXPECT_EQ(first.op_ends.size(), session.graph(first.graph).value()->ops.size());
  // Afterwards, a run without a debugger is recorded as before, with fused pairs.
  const auto status = model.queue().submit(text_request(kText, 3));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(wait_until([&] { return has_ended(model.queue().status(status->id)->state); }));
  EXPECT_EQ(model.queue().status(status->id)->recording.losses, LossCounters{});
}

TEST(Debugger, StopsByKindLayerTokenExpertAndCondition) {
  DebuggedModel model(generated_model({.shape = "moe", .dims = {.layers = 3}}));
  const auto places = [&](std::string breakpoint) {
    std::vector<OpPlace> all;
    const auto debugger = model.begin(greedy_tokens(4, 3), {.breakpoints = {breakpoint}});
    while (const auto stop = model.resume(*debugger, Until::Breakpoint)) {
      EXPECT_EQ(stop->breakpoints, std::vector<std::uint32_t>{1}) << breakpoint;
      all.push_back(stop->place);
    }
    return all;
  };
  // Steps 0 (tokens 0 to 3), 1 and 2 (tokens 4 and 5).
  const auto softmax = places("op SOFT_MAX layer 1");
  EXPECT_GE(softmax.size(), 3U);
  for (const OpPlace& place : softmax) EXPECT_EQ(place.operation, "SOFT_MAX");
  for (const OpPlace& place : places("layer 2 token 4")) {
    EXPECT_EQ(place.layer, LayerId{2});
    EXPECT_EQ(place.step, StepId{1});
  }
  EXPECT_EQ(places("^l_out layer 2 token 4-").size(), 2U);
  EXPECT_EQ(places("^l_out layer 0 token 2").size(), 1U);
  EXPECT_EQ(places("^result_output$ step 1-").size(), 2U);
  EXPECT_TRUE(places("no_such_name").empty());
  EXPECT_TRUE(places("if nan").empty());
  EXPECT_EQ(places("^l_out if norm > 0").size(), 9U);
  EXPECT_TRUE(places("^l_out if norm > 1e30").empty());
}

// The routing that the recording has of the same run is the independent list.
TEST(Debugger, StopsWhereATokenIsRoutedToAnExpert) {
  DebuggedModel model(generated_model({.shape = "moe", .dims = {.layers = 3}}));
  std::set<std::pair<std::uint32_t, std::uint32_t>> stopped, expected;  // step, op
  const auto debugger = model.begin(greedy_tokens(2, 4), {.breakpoints = {"expert 1"}});
  while (const auto stop = model.resume(*debugger, Until::Breakpoint))
    stopped.emplace(stop->place.step.v, stop->place.op.v);
  const SessionReader session = model.session();
  for (std::uint32_t i = 0; i < session.step_count().value(); ++i) {
    const Step step = session.step(StepId{i}).value();
    const auto graph = session.graph(step.graph).value();
    for (std::uint32_t op = 0; op < graph->ops.size(); ++op) {
      const Node& node = graph->node(graph->ops[op].last());
      if (node.op != "MUL_MAT_ID") continue;
      for (std::size_t s = 0; s < graph->slots.size(); ++s)
        if (graph->root(graph->slots[s].tensor) == graph->root(node.src[2]) &&
            std::ranges::contains(step.slots[s].ints, 1))
          expected.emplace(i, op);
    }
  }
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(stopped, expected);
}

TEST(Debugger, StepsToAnotherLayerAndToTheNextToken) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(greedy_tokens(3, 3), {});
  std::vector<std::int32_t> layers;
  for (int i = 0; i < 3; ++i)
    layers.push_back(model.resume(*debugger, Until::Layer)->place.layer.v);
  EXPECT_EQ(layers, (std::vector<std::int32_t>{0, 1, 2}));
  const auto next = model.resume(*debugger, Until::Step);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->place.step, StepId{1});
  EXPECT_EQ(next->place.op, OpId{0});
  EXPECT_EQ(next->place.first_token, 3U);
  EXPECT_EQ(model.resume(*debugger, Until::Layer, 2)->place.layer, LayerId{1});
  EXPECT_EQ(model.resume(*debugger, Until::Op, 5)->place.step, StepId{1});
  EXPECT_EQ(model.resume(*debugger, Until::Step, 1)->place.step, StepId{2});
  EXPECT_FALSE(model.resume(*debugger, Until::Step).has_value());
}

TEST(Debugger, BeforeAnOpItsSourcesAreComplete) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(
      greedy_tokens(3, 1), {.breakpoints = {"^norm$|^result_norm$", "before ^result_output$"}});
  auto stop = model.resume(*debugger, Until::Breakpoint);
  std::vector<float> norm;
  for (; stop && !stop->is_before; stop = model.resume(*debugger, Until::Breakpoint))
    norm = debugger->read("output", {})->values;
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(debugger->read("result_norm", {})->values, norm);
  EXPECT_EQ(debugger->read("src1", {})->values, norm);
  EXPECT_EQ(debugger->read("src1", *Selection::parse("0-1"))->values,
            std::vector<float>(norm.begin(), norm.begin() + 2));
  EXPECT_TRUE(debugger->read("output", {}).error().contains("the op has not run"));
  EXPECT_TRUE(debugger->read("Qcur-0", {}).error().contains("src0 (output.weight)"));
  EXPECT_TRUE(debugger->change(*Change::parse("zero")).error().contains("Step once"));
  const auto after = model.resume(*debugger, Until::Op);
  EXPECT_EQ(after->place.op, stop->place.op);
  EXPECT_FALSE(after->is_before);
}

TEST(Debugger, ReportsWhatIsWatchedWithoutStopping) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(greedy_tokens(3, 3), {.breakpoints = {"watch ^l_out"}});
  EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
  const WatchedPage watched = debugger->watched(0, 100);
  ASSERT_EQ(watched.rows.size(), 9U);
  EXPECT_EQ(watched.first, 0U);
  for (const WatchedOutput& of : watched.rows) EXPECT_GT(of.statistics->norm, 0);
  const WatchedPage middle = debugger->watched(3, 2);
  EXPECT_EQ(middle.first, 3U);
  ASSERT_EQ(middle.rows.size(), 2U);
  EXPECT_EQ(middle.rows[0].place.step, StepId{1});
  EXPECT_TRUE(debugger->watched(99, 5).rows.empty());
  EXPECT_EQ(debugger->breakpoints().at(0).hits, 9U);
}

// ---------------------------------------------------------------- how stops end

TEST(Debugger, CancellingEndsAStop) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  for (const bool before : {true, false}) {
    const auto debugger = model.begin(greedy_tokens(3, 3), kNoLimit);
    if (!before) {
      ASSERT_TRUE(model.resume(*debugger, Until::Op, 9).has_value());
    }
    EXPECT_TRUE(model.queue().cancel(model.id()));
    EXPECT_TRUE(wait_until([&] { return model.ended(); }));
    EXPECT_EQ(model.status().state, JobState::Cancelled);
    EXPECT_FALSE(debugger->stop().has_value());
    EXPECT_FALSE(debugger->resume(Until::Op));
    EXPECT_TRUE(debugger->read("", {}).error().contains("not stopped"));
    EXPECT_TRUE(check_session(model.file()).value().empty());
  }
}

TEST(Debugger, AStopThatNobodyLooksAtGoesOnToTheEnd) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(greedy_tokens(3, 3), {.breakpoints = {"l_out"}, .hold_ms = 50});
  EXPECT_TRUE(wait_until([&] { return model.ended(); })) << "each l_out would stop it";
  EXPECT_EQ(model.status().state, JobState::Done);
  EXPECT_EQ(debugger->breakpoints().at(0).hits, 9U);
}

TEST(Debugger, EndsWithTheQueue) {
  auto model =
      std::make_unique<DebuggedModel>(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model->begin(greedy_tokens(3, 3), kNoLimit);
  model.reset();
  EXPECT_FALSE(debugger->stop().has_value());
}

// The stop lasts far longer than the ops, whose times do not contain it.
TEST(Debugger, TimesOfOpsDoNotContainStops) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(greedy_tokens(3, 1), {});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    const auto until = std::chrono::steady_clock::now() + 300ms;
    while (std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(model.resume(*debugger, Until::Op, 4).has_value());
  }
  const std::chrono::nanoseconds held = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
  const Step step = model.session().step(StepId{0}).value();
  EXPECT_LT((step.op_ends.back() - step.begin).v, held.count());
}

TEST(Debugger, RejectsWhatIsNotABreakpoint) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  GenerationRequest request = greedy_tokens(3, 1);
  request.debug = DebugOptions{.breakpoints = {"l_out", "layer x"}};
  const auto status = model.queue().submit(request);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, SubmitError::Kind::BadRequest);
  EXPECT_TRUE(status.error().message.contains("not a range"));
  const auto debugger = model.begin(greedy_tokens(3, 1), {});
  for (std::size_t i = 0; i < kMaxBreakpoints; ++i) EXPECT_TRUE(debugger->add("a").has_value());
  EXPECT_TRUE(debugger->add("a").error().contains("the maximum"));
  EXPECT_TRUE(debugger->remove(3));
  EXPECT_FALSE(debugger->remove(3));
  EXPECT_EQ(debugger->add("b").value(), kMaxBreakpoints + 1) << "numbers are not used again";
}

}  // namespace
}  // namespace tt::test
