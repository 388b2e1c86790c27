// Models whose layers attend to a window: their KV cache is that of llama-server, a reused prefix
// never changes the output, and what a session says about the cache holds with reused cells.
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "analysis/attention/kv_use.h"
#include "tests/analysis/weights/weight_check.h"
#include "tests/server/support/program.h"
#include "tests/support/models/arch_model.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/wait.h"
#include "tracer/engine/engine_state.h"

namespace tt::test {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::uint32_t kWindow = 128;  // of gpt-oss-like

// 256 cells for layers with a window (128, and 64 of one step, rounded up), 1024 for the others.
ContextOptions context_of_1024() {
  ContextOptions context = TracedModel::small_context();
  context.context = 1024;
  return context;
}

GenerationRequest request_of(Ids ids, std::uint32_t generate, bool reuse) {
  GenerationRequest request = greedy_tokens(1, generate);
  request.prompt = std::move(ids);
  request.reuse_prefix = reuse;
  return request;
}

Ids ids(std::size_t count, std::int32_t first = 1) {
  Ids list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(1 + (first + static_cast<std::int32_t>(i * i % 61)) % 60);
  return list;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ids generated_ids(const TracedModel::Run& run) {
  Ids list;
  for (const Token& token : run.captured.tokens)
    if (token.generated) list.push_back(token.id);
  return list;
}

// ---------------------------------------------------------------- prefixes

// Steps begin at multiples of 64 in both runs, because results round differently otherwise.
TEST(SlidingWindow, PrefixNeverChangesOutput) {
  const std::filesystem::path models[] = {two_layer_model("gpt-oss-like"),
                                          arch_model("gemma3-dense")};
  const Ids base = ids(704);
  const auto start = [&](std::size_t count) {
    return Ids(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(count));
  };
  struct Case {
    const char* name;
    Ids prompt;
    bool kept;  // some of the prefix, at least
  };
  const Case cases[] = {
      {"shorter than the window", start(64), false},
      {"grows beyond the window", start(192), true},
      {"grows beyond the cache of the window", base, true},
      {"the cells of the window remain", joined(start(640), ids(20, 7)), true},
      {"the cells of the window are gone", joined(start(256), ids(40, 11)), false},
      {"shorter than what remains", joined(start(256), ids(60, 17)), true},
      {"nothing in common", ids(90, 23), false},
  };
  for (const auto& model : models) {
    SCOPED_TRACE(model.filename());
    TracedModel traced(model, context_of_1024());
    TracedModel fresh(model, context_of_1024());
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      const auto with = traced.run(request_of(c.prompt, 8, true));
      const auto without = fresh.run(request_of(c.prompt, 8, false));
      ASSERT_EQ(with.result.reason, StopReason::Length) << with.result.error;
      EXPECT_EQ(generated_ids(with), generated_ids(without));
      EXPECT_EQ(without.result.reused_tokens, 0U);
      if (model == models[0]) {
        EXPECT_EQ(with.result.reused_tokens > 0, c.kept);
      }
    }
  }
}

std::vector<float> last_logits(TracedModel& model) {
  const Engine::Impl& state = model.engine().state();
  const float* logits = llama_get_logits_ith(state.context.get(), -1);
  return {logits, logits + state.facts.n_vocab};
}

// The length of the difference, relative to the length of `b`.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / length);
}

// Each turn contains the earlier ones and their answers, until the cache of the window has been
// filled more than twice. The logits are those of a model that evaluates the whole prompt with
// cells for all of it. (Not exactly: results round differently for other steps and another order
// of cells, and random weights then soon give other tokens.)
TEST(SlidingWindow, ConversationReusesEveryTurn) {
  ContextOptions full = context_of_1024();
  full.swa_full = true;
  TracedModel traced(two_layer_model("gpt-oss-like"), context_of_1024());
  TracedModel fresh(two_layer_model("gpt-oss-like"), full);
  Ids conversation;
  for (int turn = 0; turn < 7; ++turn) {
    SCOPED_TRACE(turn);
    const std::size_t before = conversation.size();
    conversation = joined(std::move(conversation), ids(50, turn));
    const auto first = traced.run(request_of(conversation, 1, true));
    // The last token of an answer was not evaluated.
    EXPECT_EQ(first.result.reused_tokens, before == 0 ? 0 : before - 1);
    fresh.run(request_of(conversation, 1, false));
    const double rounding = distance(last_logits(traced), last_logits(fresh));
    // Up to 0.03 with AVX2, 0.07 with AVX-512: each processor rounds differently, and a token for
    // which two experts have nearly equal scores may get the other one.
    EXPECT_LT(rounding, 0.1);

    // Other tokens in the window make a much larger difference.
    Ids other = conversation;
    std::fill_n(other.end() - 40, 20, 61);
    fresh.run(request_of(other, 1, false));
    EXPECT_GT(distance(last_logits(traced), last_logits(fresh)), 4 * rounding);

    const auto answer = traced.run(request_of(conversation, 40, true));
    conversation = joined(std::move(conversation), generated_ids(answer));
  }
  EXPECT_GT(conversation.size(), 512U);
}

// ---------------------------------------------------------------- size

// The sum of "CPU KV buffer size =     4.00 MiB" in llama-server's log.
double kv_mib_of_llama_server(const std::filesystem::path& model, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"-m", model.string(), "-t", "1",         "-np", "1", "-lv",
                                        "4",  "--port",       "0",  "--no-webui"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Program program(arguments, {}, "llama-server");
  const bool loaded =
      wait_until([&] { return program.stderr_text().contains("initializing, n_slots"); });
  const std::string log = program.stderr_text();
  EXPECT_TRUE(loaded) << log;
  const std::regex line(R"(KV buffer size = +([0-9.]+) MiB)");
  double sum = 0;
  for (std::sregex_iterator at(log.begin(), log.end(), line), end; at != end; ++at)
    sum += std::stod((*at)[1]);
  return sum;
}

TEST(SlidingWindow, CacheHasTheSizeOfLlamaServers) {
  struct Case {
    bool full;
    std::uint32_t context;
    const char* cells;
  };
  const Case cases[] = {{false, 4096, "4096 in 2 layers, 768 in 2 layers"},
                        {false, 8192, "8192 in 2 layers, 768 in 2 layers"},
                        {true, 4096, "4096 in 4 layers"}};
  const auto model = generated_model({.shape = "gpt-oss-like"});
  for (const Case& c : cases) {
    SCOPED_TRACE(c.cells);
    ContextOptions context;
    context.context = c.context;
    context.threads = 1;
    context.swa_full = c.full;
    const SessionInfo info =
        TracedModel(model, context).run(greedy_tokens(5, 2)).reader().info().value();
    EXPECT_EQ(info.fact("result.kv_cells"), c.cells);
    EXPECT_EQ(info.fact("context.swa_full"), c.full ? "on" : "off");
    std::vector<std::string> options = {"-c", std::to_string(c.context)};
    if (c.full) options.emplace_back("--swa-full");
    EXPECT_EQ(static_cast<double>(info.fact_number("result.kv_bytes").value_or(0)) / (1 << 20),
              kv_mib_of_llama_server(model, options));
  }
}

// ---------------------------------------------------------------- what a session says

// Also where cells have been used again for later tokens, and where they are of an earlier request.
TEST(SlidingWindow, KvUseCountsTheCellsOfTheWindow) {
  TracedModel traced(two_layer_model("gpt-oss-like"), context_of_1024());
  const auto first = traced.run(request_of(ids(500), 3, false));
  EXPECT_GT(expect_kv_use(first.reader()), 0);
  const auto reused = traced.run(request_of(joined(ids(500), ids(9, 5)), 3, true));
  EXPECT_EQ(reused.result.reused_tokens, 500U);
  EXPECT_GT(expect_kv_use(reused.reader()), 0);

  const auto steps = kv_use(first.reader(), kAllRows).value();
  std::uint32_t generated = 0;
  for (const KvStep& step : steps.rows) {
    if (step.phase != Phase::Generate) continue;
    ++generated;
    ASSERT_EQ(step.layers.size(), 2U);
    for (const KvLayer& layer : step.layers) {
      // The step writes one cell and attends to it.
      const std::uint64_t cell = layer.written.v;
      const std::uint64_t attended = layer.layer.v == 0 ? kWindow : step.first_token + 1;
      EXPECT_EQ(layer.fresh.v, cell);
      EXPECT_EQ(layer.cached.v, (attended - 1) * cell) << layer.layer.v;
      EXPECT_EQ(layer.other.v, 0U);
    }
  }
  EXPECT_EQ(generated, 2U);
}

}  // namespace
}  // namespace tt::test
