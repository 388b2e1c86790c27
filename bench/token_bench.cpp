// Time of a recorded token relative to an unrecorded one. Budgets: ratio at most 1.01 on the
// tinyllama shape and 1.03 on `small`; at most 2 bytes of file per access over 512 tokens; at most
// 64 MB of memory in addition to model and context.
//
// Measures as `tt bench-model` does (tracer/bench/bench_round.h): in blocks of at least 64 tokens,
// in which a recorded block ends when the file has its steps. So it has paid for the recorder's
// thread. Token-by-token turns hid that: the thread wrote while another context computed. Each
// round loads the model again; two equal contexts without callbacks show the noise. Also measured:
// with the output of one op of each layer captured (`--capture ^l_out`), at most 1.10 on the
// tinyllama shape; and cb_eval on every node, as most tools do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <memory>
#include <print>
#include <string>
#include <utility>
#include <vector>

#include "analysis/speed/speed_comparison.h"
#include "analysis/speed/speed_rounds.h"
#include "bench/budget.h"
#include "tracer/bench/bench_round.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/engine_state.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/modelgen/model_writer.h"

namespace {

struct Options {
  std::vector<std::string> shapes = {"tinyllama-1.1b", "small"};
  std::vector<std::string> models;
  // Three runs are in the session of a round: more than the 512 tokens of the budget.
  std::uint32_t tokens = 192;
  std::uint32_t rounds = 7;
  std::int32_t threads = 2;
  std::string folder = std::filesystem::temp_directory_path() / "tt-token-bench";
};

// Maximum ratio. Other shapes have no budget.
constexpr std::array kMaxRatio = {std::pair{"tinyllama-1.1b", 1.01}, std::pair{"small", 1.03}};
constexpr std::array kMaxCaptureRatio = {std::pair{"tinyllama-1.1b", 1.10}};
constexpr const char* kCaptured = "^l_out";
constexpr double kMaxBytesPerAccess = 2;
constexpr std::uint64_t kBudgetTokens = 512;
constexpr double kMaxMb = 64;  // in addition to model and context

std::string at_most(double figure, double budget) {
  return tt::bench::compare_with_budget(figure, tt::bench::Bound::AtMost, budget);
}

template <class Budgets>
std::string ratio_budget_text(const Budgets& budgets, const std::string& shape, double ratio) {
  const auto known = std::ranges::find(budgets, shape, [](const auto& of) { return of.first; });
  return known == budgets.end() ? "no budget" : at_most(ratio, known->second);
}

[[noreturn]] void fail(const std::string& message) {
  std::println(stderr, "token_bench: {}", message);
  std::exit(1);
}

// Anonymous memory of this process, in MB.
double anonymous_mb() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

struct SizeReport {
  double bytes_per_access = 0;
  std::uint64_t accesses = 0, steps = 0, templates = 0;
};

SizeReport size_of(const std::filesystem::path& file) {
  SizeReport report;
  auto reader = tt::SessionReader::open(file);
  if (!reader) std::abort();
  const auto read = reader->for_each_step(tt::StepId{0}, ~0U, [&](const tt::Step& step) {
    const auto graph = reader->graph(step.graph);
    if (!graph) std::abort();
    const auto accesses = tt::accesses_of(**graph);
    report.accesses += tt::totals_of(**graph, accesses, step).accesses;
    ++report.steps;
    return true;
  });
  if (!read) std::abort();
  report.templates = reader->template_ids()->size();
  report.bytes_per_access =
      static_cast<double>(std::filesystem::file_size(file)) / static_cast<double>(report.accesses);
  return report;
}

// How many outputs a step of the file has on average.
double captured_per_step(const tt::SessionReader& session) {
  std::uint64_t outputs = 0, steps = 0;
  const auto read = session.for_each_values(tt::StepId{0}, ~0U, [&](const tt::StepValues& values) {
    outputs += values.outputs.size();
    ++steps;
    return true;
  });
  if (!read || steps == 0) fail("no values were captured");
  return static_cast<double>(outputs) / static_cast<double>(steps);
}

std::filesystem::path model_of(const Options& options, const std::string& shape) {
  const auto path = std::filesystem::path(options.folder) / (shape + ".gguf");
  if (std::filesystem::exists(path)) return path;
  tt::modelgen::ModelSpec spec;
  spec.shape = shape;
  if (auto written = tt::modelgen::write_model(spec, path); !written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    std::exit(1);
  }
  return path;
}

bool split_at_every_node(ggml_tensor*, bool, void*) { return true; }

void every_node(llama_context_params& params) {
  if (params.cb_eval == nullptr) params.cb_eval = &split_at_every_node;
}

// Of the recorder and the probe: what a recorded context takes more than another one.
double recording_mb(const tt::BenchSetup& setup, tt::BenchWatch& watch) {
  const auto engine = tt::Engine::load(setup.model, setup.context, {});
  if (!engine) fail(engine.error().message);
  const tt::Engine::Impl& loaded = (*engine)->state();
  const auto evaluate = [](tt::BenchContext& context) {
    const std::array<llama_token, 1> token = {1};
    for (int i = 0; i < 200; ++i) {
      if (!context.usable() || !context.evaluate(token))
        fail("llama.cpp could not evaluate a token");
    }
    context.finish();
  };
  const double without = anonymous_mb();
  auto plain = std::make_unique<tt::BenchContext>(loaded.model.get(), loaded.params);
  evaluate(*plain);
  const double context = anonymous_mb() - without;
  plain.reset();
  const double before = anonymous_mb();
  tt::Probe probe(*loaded.layout);
  tt::RecordedBenchContext recorded(loaded.model.get(), loaded.params, probe, watch,
                                    (*engine)->recorder_size(), (*engine)->describe({}),
                                    setup.folder / "memory.ttrace");
  evaluate(recorded);
  return anonymous_mb() - before - context;
}

void measure(const Options& options, tt::BenchWatch& watch, const std::string& shape,
             const std::filesystem::path& model_path) {
  tt::BenchSetup setup;
  setup.model.path = model_path;
  setup.context.threads = options.threads;
  setup.tests = {{.n_prompt = 0, .n_gen = options.tokens}};
  setup.folder = options.folder;
  const double extra_mb = recording_mb(setup, watch);

  tt::SpeedTest recorded, captured, split;
  double outputs = 0;
  SizeReport size;
  tt::LossCounters losses;
  for (std::uint32_t i = 0; i < options.rounds; ++i) {
    for (tt::SpeedTest* test : {&recorded, &captured, &split}) {
      setup.capture.clear();
      if (test == &captured) setup.capture.emplace_back(kCaptured);
      setup.hook = test == &split ? tt::ContextHook(every_node) : tt::ContextHook();
      const auto round = tt::measure_round(setup, watch, i);
      if (!round) fail(round.error().message);
      const auto session = tt::SessionReader::open(round->session);
      if (!session || !tt::add_round(*test, round->tests.at(0), *session))
        fail(round->session.string() + " cannot be read");
      if (test == &captured) outputs = captured_per_step(*session);
      if (test != &recorded) continue;
      if (i + 1 == options.rounds) size = size_of(round->session);
      losses.steps_without_times += round->losses.steps_without_times;
      losses.slot_values_dropped += round->losses.slot_values_dropped;
      losses.count_mismatches += round->losses.count_mismatches;
    }
    std::fprintf(stderr, "\r%s: round %u of %u", shape.c_str(), i + 1, options.rounds);
  }
  std::fprintf(stderr, "\n");
  const tt::SpeedChange cost = recorded.recording_cost();
  const tt::SpeedChange all = tt::compare_samples(recorded.rounds_ns(), split.rounds_ns(),
                                                  std::max(recorded.noise(), split.noise()));
  const auto text = [](const tt::SpeedChange& change) {
    return change.low
               ? std::format("{:.4f} [{:.4f}, {:.4f}]", change.ratio, *change.low, *change.high)
               : std::format("{:.4f} (too few rounds for an interval)", change.ratio);
  };
  std::println("{:<16} {:8.3f} ms/token  recorded {}  cb_eval on every node {}  noise {:.4f}",
               shape, tt::sample_spread(recorded.samples_ns()).median / 1e6 / options.tokens,
               text(cost), text(all), recorded.noise());
  std::println(
      "{:<16} file {:.2f} bytes/access ({} accesses, {} steps, {} templates)  memory "
      "{:.1f} MB  lost: {} times, {} slots, {} counts",
      "", size.bytes_per_access, size.accesses, size.steps, size.templates, extra_mb,
      losses.steps_without_times, losses.slot_values_dropped, losses.count_mismatches);
  std::println("{:<16} ratio {}", "", ratio_budget_text(kMaxRatio, shape, cost.ratio));
  const tt::SpeedChange with_values = captured.recording_cost();
  std::println("{:<16} {} captured ({:.1f} outputs per step): {}  ratio {}", "", kCaptured, outputs,
               text(with_values), ratio_budget_text(kMaxCaptureRatio, shape, with_values.ratio));
  std::println("{:<16} bytes per access {}", "",
               size.steps < kBudgetTokens
                   ? std::format("for fewer than {} tokens: no budget", kBudgetTokens)
                   : at_most(size.bytes_per_access, kMaxBytesPerAccess));
  std::println("{:<16} MB in addition to model and context {}", "", at_most(extra_mb, kMaxMb));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the time of a recorded token relative to an unrecorded one.");
  auto* shapes = app.add_option("--shape", options.shapes, "Model shapes (tt model --list)")
                     ->capture_default_str();
  app.add_option("--model", options.models,
                 "Models without a budget, instead of the default shapes")
      ->check(CLI::ExistingFile);
  app.add_option("--tokens", options.tokens, "Number of tokens of a run")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Number of rounds")->capture_default_str();
  app.add_option("--threads", options.threads, "Number of inference threads")
      ->capture_default_str();
  app.add_option("--folder", options.folder, "Folder for models and traces")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tt::BenchWatch watch;
  tt::load_backends({});
  if (!options.models.empty() && shapes->count() == 0) options.shapes.clear();
  std::filesystem::create_directories(options.folder);
  for (const std::string& shape : options.shapes)
    measure(options, watch, shape, model_of(options, shape));
  for (const std::filesystem::path path : options.models)
    measure(options, watch, path.stem().string(), path);
  return tt::bench::exit_code();
}
