// One round of `tt bench-model`: loads the model and measures each test in three contexts, two
// without callbacks (equal: what they differ by is noise) and one that records.
//
// Each context measures one block, then all of them again in the opposite order: A B R R B A. So a
// machine that becomes faster or slower meanwhile changes the sums of all three alike. The next
// round begins with another context. It loads the model again, because a part of the difference
// between two runs of a program comes from the addresses of its memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tracer/bench/bench_context.h"
#include "tracer/engine/engine.h"
#include "tracer/format/model/session.h"
#include "tracer/request/model_facts.h"
#include "tracer/request/model_options.h"

namespace tt {

// As in llama-bench: n_prompt tokens at once, then n_gen tokens one by one.
struct BenchTest {
  std::uint32_t n_prompt = 0, n_gen = 0;
  std::uint32_t tokens() const { return n_prompt + n_gen; }
  friend bool operator==(const BenchTest&, const BenchTest&) = default;
};

struct BenchSetup {
  ModelOptions model;
  ContextOptions context;  // its size is that of the largest test
  std::vector<BenchTest> tests;
  // A block repeats its test until it has this many tokens and takes this long, so that what the
  // recorder writes at its end does not count more than it does in a session.
  std::uint32_t block_tokens = 64;
  std::chrono::nanoseconds block_time = std::chrono::milliseconds(200);
  std::filesystem::path folder;  // for the recording of the round
  ContextHook hook{};            // called for each context; may be empty
  // What the recorded context captures, as GenerationRequest::capture, without a budget.
  std::vector<std::string> capture{};
};

struct BenchSteps {
  StepId first{}, end{};  // of a block, in the session of the round
};

// Nanoseconds of the steps of a block, in their order: of prompts, and of single tokens.
struct BenchStepTimes {
  std::vector<double> prompt_ns, token_ns;
};

// Times per run of the test, in nanoseconds, of the first and the second block.
struct BenchTestRound {
  BenchTest test;
  std::uint32_t runs = 1;  // per block
  std::array<double, 2> first_ns{}, second_ns{}, recorded_ns{};
  std::array<BenchStepTimes, 2> first_steps, second_steps;
  std::array<BenchSteps, 2> recorded_steps{};
};

struct BenchRound {
  ModelFacts facts;
  std::uint64_t n_params = 0;
  std::vector<BenchTestRound> tests;
  std::filesystem::path session;  // recording of the round
  LossCounters losses;
};

// Returns false to stop. Called between steps.
using BenchContinue = std::function<bool(const BenchTest&)>;

// `round`: decides the order of the contexts. Call load_backends() before.
std::expected<BenchRound, EngineError> measure_round(const BenchSetup& setup, BenchWatch& watch,
                                                     std::uint32_t round,
                                                     const BenchContinue& keep_going = {});

}  // namespace tt
