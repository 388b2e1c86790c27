// Does `tt bench-model` tell equal models from slower ones? Budget: of 20 pairs of equal
// measurements at least 19 are not to be told apart, and of 20 pairs in which the ops of one kind
// take 5 % longer at least 19 are found and the kind is named.
//
// Every measurement is a whole one, as of two runs of the program: it loads the model in each
// round. The slow op is planted behind the real kernel, in the contexts with and without recording.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <format>
#include <print>
#include <string>
#include <vector>

#include "analysis/speed/speed_comparison.h"
#include "analysis/speed/speed_rounds.h"
#include "bench/budget.h"
#include "bench/speed/slow_op.h"
#include "tracer/bench/bench_round.h"
#include "tracer/engine/backends.h"
#include "tracer/modelgen/model_writer.h"

namespace {

struct Options {
  std::string shape = "small", model;
  std::string kind = "MUL_MAT";
  double slower = 0.05;
  std::uint32_t pairs = 20, rounds = 10, n_prompt = 0, n_gen = 64;
  std::int32_t threads = 0;
  std::uint32_t block_ms = 200;
  std::string folder = std::filesystem::temp_directory_path() / "tt-verdict-bench";
};

tt::SpeedTest measure(const tt::BenchSetup& setup, tt::BenchWatch& watch, std::uint32_t rounds) {
  tt::SpeedTest test;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const auto round = tt::measure_round(setup, watch, i);
    if (!round) {
      std::println(stderr, "{}", round.error().message);
      std::exit(1);
    }
    const auto reader = tt::SessionReader::open(round->session);
    if (!reader || !tt::add_round(test, round->tests.at(0), *reader)) std::exit(1);
  }
  return test;
}

std::string slower_ops(const tt::ComparedTest& test) {
  std::string names;
  for (const tt::ComparedOp& op : test.ops) {
    if (op.change && op.change->verdict == tt::SpeedVerdict::Slower)
      names += std::format(" {} {:.3f}", op.op, op.change->ratio);
  }
  return names;
}

void print_pair(std::uint32_t pair, const char* what, const tt::ComparedTest& test) {
  const tt::SpeedChange& change = test.change;
  std::println("{:3} {:<14} {:.4f} [{:.4f}, {:.4f}]  noise {:.4f}  {}{}", pair + 1, what,
               change.ratio, change.low.value_or(0), change.high.value_or(0), change.noise,
               to_text(change.verdict), slower_ops(test));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Tells equal measurements of a model from those with a slow op.");
  app.add_option("--shape", options.shape, "Model shape (tt model --list)")->capture_default_str();
  app.add_option("--model", options.model, "Model, instead of a shape")->check(CLI::ExistingFile);
  app.add_option("--op", options.kind, "Op kind to slow down")->capture_default_str();
  app.add_option("--slower", options.slower, "By this share of its time")->capture_default_str();
  app.add_option("--pairs", options.pairs, "Number of pairs")->capture_default_str();
  app.add_option("-r,--rounds", options.rounds, "Rounds of each measurement")
      ->capture_default_str();
  app.add_option("-p,--n-prompt", options.n_prompt, "Prompt tokens")->capture_default_str();
  app.add_option("-n,--n-gen", options.n_gen, "Generated tokens")->capture_default_str();
  app.add_option("-t,--threads", options.threads, "Threads; 0: one per core")
      ->capture_default_str();
  app.add_option("--block-ms", options.block_ms, "Least time of a block")->capture_default_str();
  app.add_option("--folder", options.folder, "Folder for models and recordings")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tt::BenchWatch watch;
  tt::load_backends({});
  std::filesystem::create_directories(options.folder);
  tt::BenchSetup setup;
  setup.model.path = options.model;
  if (options.model.empty()) {
    setup.model.path = std::filesystem::path(options.folder) / (options.shape + ".gguf");
    tt::modelgen::ModelSpec spec;
    spec.shape = options.shape;
    if (!std::filesystem::exists(setup.model.path) &&
        !tt::modelgen::write_model(spec, setup.model.path))
      return 1;
  }
  setup.context.threads = options.threads;
  setup.tests = {{options.n_prompt, options.n_gen}};
  setup.block_time = std::chrono::milliseconds(options.block_ms);
  setup.folder = options.folder;

  tt::bench::SlowOp slow(tt::bench::ops_of_kind(setup, watch, options.kind), options.slower);
  // The wrapped callback alone costs time, most of all beside short ops: equal sides have it, too.
  tt::bench::SlowOp not_slow(std::vector<bool>(slow.ops().size()), 0);
  setup.hook = not_slow.hook();
  std::uint32_t equal = 0, found = 0;
  tt::SpeedTest before = measure(setup, watch, options.rounds);
  for (std::uint32_t pair = 0; pair < options.pairs; ++pair) {
    setup.hook = not_slow.hook();
    const tt::SpeedTest again = measure(setup, watch, options.rounds);
    setup.hook = slow.hook();
    const tt::SpeedTest slowed = measure(setup, watch, options.rounds);
    const tt::ComparedTest same = tt::compare_speed({before}, {again}).at(0);
    const tt::ComparedTest other = tt::compare_speed({again}, {slowed}).at(0);
    print_pair(pair, "equal", same);
    print_pair(pair, "slow op", other);
    equal += same.change.verdict == tt::SpeedVerdict::Equal ? 1U : 0U;
    found +=
        other.change.verdict == tt::SpeedVerdict::Slower && slower_ops(other).contains(options.kind)
            ? 1U
            : 0U;
    before = again;
  }
  const double wanted = 19.0 / 20;
  const auto share = [&](std::uint32_t count) {
    return static_cast<double>(count) / std::max(options.pairs, 1U);
  };
  std::println("equal: {} of {}; {}", equal, options.pairs,
               tt::bench::compare_with_budget(share(equal), tt::bench::Bound::AtLeast, wanted));
  std::println("found and named: {} of {}; {}", found, options.pairs,
               tt::bench::compare_with_budget(share(found), tt::bench::Bound::AtLeast, wanted));
  return tt::bench::exit_code();
}
