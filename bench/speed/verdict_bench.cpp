// Does `tt bench-model` tell equal models from slower ones? Budget: of 20 pairs of equal
// measurements at least 19 have no significant difference, neither as a whole nor in an op kind;
// and of 20 pairs in which the ops of one kind take 5 % longer, at least 19 are called slower, and
// this kind, and no other one, is named.
//
// Every measurement is a whole one, as of two runs of the program: it loads the model in each
// round. With --turns, the rounds of the sides alternate, as those of --against: a machine whose
// speed changes within minutes is then the same for all. The slow op is planted behind the real
// kernel, in the contexts with and without recording.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <format>
#include <print>
#include <string>
#include <string_view>
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
  tt::SpeedOrder order = tt::SpeedOrder::Separate;
  std::string folder = std::filesystem::temp_directory_path() / "tt-verdict-bench";
};

void add_round(tt::SpeedTest& test, const tt::BenchSetup& setup, tt::BenchWatch& watch,
               std::uint32_t number) {
  const auto round = tt::measure_round(setup, watch, number);
  if (!round) {
    std::println(stderr, "{}", round.error().message);
    std::exit(1);
  }
  const auto reader = tt::SessionReader::open(round->session);
  const auto added = reader.and_then(
      [&](const auto& session) { return tt::add_round(test, round->tests.at(0), session); });
  if (!added) {
    std::println(stderr, "{}", added.error().message);
    std::exit(1);
  }
}

std::string judged_ops(const tt::ComparedTest& test) {
  std::string names;
  for (const tt::ComparedOp& op : test.ops) {
    if (op.change && op.change->verdict != tt::SpeedVerdict::Equal)
      names += std::format(" {} {:.3f}", op.op, op.change->ratio);
  }
  return names;
}

bool is_equal(const tt::ComparedTest& test) {
  return test.change.verdict == tt::SpeedVerdict::Equal && judged_ops(test).empty();
}

// The test is slower, and so is the op kind, and no other one.
bool is_found(const tt::ComparedTest& test, std::string_view kind) {
  for (const tt::ComparedOp& op : test.ops) {
    const bool slower = op.change && op.change->verdict == tt::SpeedVerdict::Slower;
    if (slower != (op.op == kind)) return false;
  }
  return test.change.verdict == tt::SpeedVerdict::Slower;
}

void print_pair(std::uint32_t pair, const char* what, const tt::ComparedTest& test) {
  const tt::SpeedChange& change = test.change;
  std::println("{:3} {:<14} {:.4f} [{:.4f}, {:.4f}]  noise {:.4f}  {}{}", pair + 1, what,
               change.ratio, change.low.value_or(0), change.high.value_or(0), change.noise,
               to_text(change.verdict), judged_ops(test));
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
  app.add_option("-t,--threads", options.threads, "Threads; 0: one per processor")
      ->capture_default_str();
  app.add_option("--block-ms", options.block_ms, "Least time of a block")->capture_default_str();
  app.add_flag_callback(
      "--turns", [&] { options.order = tt::SpeedOrder::InTurns; },
      "Measure the sides in turns, as bench-model --against does, instead of one after the other");
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
  std::uint32_t equal = 0, found = 0;
  const std::array hooks = {not_slow.hook(), not_slow.hook(), slow.hook()};
  for (std::uint32_t pair = 0; pair < options.pairs; ++pair) {
    std::array<tt::SpeedTest, 3> sides;  // two equal ones, a slow one
    const auto measure = [&](std::size_t side, std::uint32_t round) {
      setup.hook = hooks[side];
      add_round(sides[side], setup, watch, round);
    };
    if (options.order == tt::SpeedOrder::InTurns) {
      for (std::uint32_t round = 0; round < options.rounds; ++round)
        for (std::size_t i = 0; i < sides.size(); ++i) measure((i + round) % sides.size(), round);
    } else {
      for (std::size_t side = 0; side < sides.size(); ++side)
        for (std::uint32_t round = 0; round < options.rounds; ++round) measure(side, round);
    }
    const tt::ComparedTest same = tt::compare_speed({sides[0]}, {sides[1]}, options.order).at(0);
    const tt::ComparedTest other = tt::compare_speed({sides[1]}, {sides[2]}, options.order).at(0);
    print_pair(pair, "equal", same);
    print_pair(pair, "slow op", other);
    equal += is_equal(same) ? 1U : 0U;
    found += is_found(other, options.kind) ? 1U : 0U;
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
