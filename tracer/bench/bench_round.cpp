#include "tracer/bench/bench_round.h"

#include <algorithm>
#include <format>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "tracer/engine/engine_state.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;

// The same tokens for all contexts and rounds, because routed experts depend on them.
std::vector<llama_token> tokens_for(const llama_vocab* vocab, std::uint32_t count) {
  std::mt19937 random(1);
  std::uniform_int_distribution<llama_token> any(0, std::max(llama_vocab_n_tokens(vocab) - 1, 0));
  std::vector<llama_token> tokens(count);
  std::ranges::generate(tokens, [&] { return any(random); });
  const llama_token begin = llama_vocab_bos(vocab);
  if (!tokens.empty() && begin != LLAMA_TOKEN_NULL && llama_vocab_get_add_bos(vocab))
    tokens.front() = begin;
  return tokens;
}

// The metadata of a session of this model. Nothing is requested or sampled: in place of the facts
// about a request there is one about the tests.
SessionInfo session_info(const Engine& engine, std::span<const BenchTest> tests) {
  const std::string text = join(tests, [](const BenchTest& test) {
    std::string name = test.n_prompt > 0 ? std::format("pp{}", test.n_prompt) : "";
    if (test.n_gen > 0) name += std::format("{}tg{}", name.empty() ? "" : "+", test.n_gen);
    return name;
  });
  SessionInfo info = engine.describe({});
  info.title = "bench-model: " + text;
  std::erase_if(info.facts, [](const auto& fact) { return fact.first.starts_with("request."); });
  info.facts.emplace_back("request.tests", text);
  return info;
}

class Measurement {
 public:
  Measurement(const BenchTest& test, std::span<const llama_token> tokens,
              const BenchContinue& keep_going)
      : test_(test), tokens_(tokens), keep_going_(keep_going) {}

  struct Block {
    double ns = 0;  // per run
    BenchStepTimes steps;
  };
  // A block of `runs`; nullopt: it failed or was stopped.
  std::optional<Block> block(BenchContext& context, std::uint32_t runs) {
    Clock::duration time{};
    steps_ = {};
    for (std::uint32_t run = 0; run < runs; ++run) {
      context.clear();
      const auto begin = Clock::now();
      if (!run_once(context)) return std::nullopt;
      time += Clock::now() - begin;
    }
    const auto begin = Clock::now();
    context.finish();
    time += Clock::now() - begin;
    return Block{.ns = nanoseconds(time) / runs, .steps = std::move(steps_)};
  }
  bool stopped() const { return stopped_; }

 private:
  bool run_once(BenchContext& context) {
    if (test_.n_prompt > 0 && !part(context, tokens_.first(test_.n_prompt), steps_.prompt_ns))
      return false;
    for (std::uint32_t i = 0; i < test_.n_gen; ++i)
      if (!part(context, tokens_.subspan(test_.n_prompt + i, 1), steps_.token_ns)) return false;
    return true;
  }
  bool part(BenchContext& context, std::span<const llama_token> tokens,
            std::vector<double>& times) {
    stopped_ = keep_going_ && !keep_going_(test_);
    if (stopped_) return false;
    const auto begin = Clock::now();
    const bool evaluated = context.evaluate(tokens);
    times.push_back(nanoseconds(Clock::now() - begin));
    return evaluated;
  }
  static double nanoseconds(Clock::duration time) {
    return std::chrono::duration<double, std::nano>(time).count();
  }

  const BenchTest test_;
  const std::span<const llama_token> tokens_;
  const BenchContinue& keep_going_;
  bool stopped_ = false;
  BenchStepTimes steps_;  // of the running block
};

EngineError failure(const Measurement& measurement, const BenchTest& test) {
  if (measurement.stopped())
    return {.kind = EngineError::Kind::Cancelled, .message = "The measurement was stopped."};
  return {
      .kind = EngineError::Kind::Unsupported,
      .message = std::format(
          "llama.cpp could not evaluate {} prompt tokens and {} generated ones with these "
          "settings; --verbose shows its messages. A smaller batch (-b, -ub) needs less memory.",
          test.n_prompt, test.n_gen)};
}

}  // namespace

std::expected<BenchRound, EngineError> measure_round(const BenchSetup& setup, BenchWatch& watch,
                                                     std::uint32_t round,
                                                     const BenchContinue& keep_going) {
  ContextOptions options = setup.context;
  options.context = 0;
  for (const BenchTest& test : setup.tests)
    options.context = std::max(options.context, test.tokens());
  const auto loading = [&](float) { return !keep_going || keep_going({}); };
  auto engine = Engine::load(setup.model, options, loading);
  if (!engine) return std::unexpected(engine.error());
  const Engine::Impl& loaded = (*engine)->state();

  BenchRound result;
  result.facts = loaded.facts;
  result.n_params = llama_model_n_params(loaded.model.get());
  if (loaded.facts.has_encoder) {
    return std::unexpected(
        EngineError{.kind = EngineError::Kind::BadOption,
                    .message = "A model with an encoder and a decoder cannot be measured: the "
                               "lengths of its two texts are not those of -p and -n."});
  }
  if (options.context > loaded.facts.context) {
    return std::unexpected(EngineError{
        .kind = EngineError::Kind::TooLong,
        .message = std::format("A test has {} tokens; the maximum of this model is {}. Use smaller "
                               "values of -p and -n.",
                               options.context, loaded.facts.context)});
  }

  const auto plain = [&] {
    llama_context_params params = loaded.params;
    if (setup.hook) setup.hook(params);
    return params;
  };
  result.session = setup.folder / std::format("round-{}.ttrace", round);
  std::filesystem::remove(result.session);
  Probe probe(*loaded.layout);
  GenerationRequest request;
  request.capture = setup.capture;
  auto rules = capture_rules(request);
  if (!rules)
    return std::unexpected(
        EngineError{.kind = EngineError::Kind::BadOption, .message = rules.error()});
  std::shared_ptr<ValueCapture> capture;
  if (!rules->empty()) capture = std::make_shared<ValueCapture>(*std::move(rules), UINT64_MAX);
  RecordedBenchContext recorded(loaded.model.get(), loaded.params, probe, watch,
                                (*engine)->recorder_size(), session_info(**engine, setup.tests),
                                result.session, setup.hook, std::move(capture));
  BenchContext first(loaded.model.get(), plain()), second(loaded.model.get(), plain());
  if (!recorded.usable() || !first.usable() || !second.usable()) {
    return std::unexpected(EngineError{
        .kind = EngineError::Kind::OutOfMemory,
        .message = "llama.cpp cannot create three contexts with these settings; --verbose shows "
                   "its messages. Smaller values of -p, -n and -ub need less memory."});
  }

  const std::array<BenchContext*, 3> contexts = {&first, &second, &recorded};
  for (const BenchTest& test : setup.tests) {
    if (loaded.facts.embedding_only && test.n_gen > 0) continue;
    const auto tokens = tokens_for(loaded.vocab(), test.tokens());
    Measurement measurement(test, tokens, keep_going);
    BenchTestRound& of = result.tests.emplace_back();
    of.test = test;
    // Warms up; the recorded context learns its graphs.
    double warm_ns = 0;
    for (BenchContext* context : contexts) {
      const auto warm = measurement.block(*context, 1);
      if (!warm) return std::unexpected(failure(measurement, test));
      if (context == &second) warm_ns = warm->ns;
    }
    const auto wanted = static_cast<double>(setup.block_time.count());
    of.runs =
        std::max({1U, (setup.block_tokens + test.tokens() - 1) / test.tokens(),
                  static_cast<std::uint32_t>(std::min(wanted / std::max(warm_ns, 1.0), 1e6))});

    std::array<std::size_t, 3> order = {0, 1, 2};
    for (std::uint32_t i = 0; i < round % 6; ++i) std::ranges::next_permutation(order);
    const std::array<std::array<double, 2>*, 3> times = {&of.first_ns, &of.second_ns,
                                                         &of.recorded_ns};
    const std::array<std::array<BenchStepTimes, 2>*, 3> steps = {
        &of.first_steps, &of.second_steps, nullptr};  // those of the recording are in the session
    for (const std::size_t block : {0UL, 1UL}) {
      for (const std::size_t which : order) {
        const StepId begin = recorded.next_step();
        auto measured = measurement.block(*contexts[which], of.runs);
        if (!measured) return std::unexpected(failure(measurement, test));
        (*times[which])[block] = measured->ns;
        if (steps[which] != nullptr) (*steps[which])[block] = std::move(measured->steps);
        if (contexts[which] == &recorded)
          of.recorded_steps[block] = {.first = begin, .end = recorded.next_step()};
      }
      std::ranges::reverse(order);
    }
  }
  const RecordingResult recording = recorded.end();
  if (!recording.error.empty()) {
    return std::unexpected(
        EngineError{.kind = EngineError::Kind::Unsupported,
                    .message = std::format("{}: {}", result.session.string(), recording.error)});
  }
  result.losses = recording.losses;
  return result;
}

}  // namespace tt
