// Time of a traced token relative to an untraced one. Budgets: upper end of the 95 % interval
// of the paired ratio below 1.02 on the tinyllama shape and below 1.04 on `small`; at most 2
// bytes of file per access over 512 tokens; at most 64 MB of memory in addition to model and
// context.
//
// Three contexts of one model decode the same tokens in one process, interleaved token by token
// in rotating order: without callbacks; traced at level detailed with the complete recording
// (graph recognition, times, slots, rows committed to the file); and with cb_eval on every node,
// as most tools do.
// One pair is one token. Results are medians of the ratios with intervals by order statistics.
// The file budget applies to 512 tokens: --tokens 511 plus the first one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <print>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/budget.h"
#include "tracer/engine/backends.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/modelgen/model_writer.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/recorder.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> shapes = {"tinyllama-1.1b", "small"};
  std::vector<std::string> models;
  int tokens = 2000;
  int threads = 2;
  std::string folder = std::filesystem::temp_directory_path() / "tt-token-bench";
};

constexpr std::uint32_t kContext = 4096;

// Maximum upper end of the interval. Other shapes have no budget.
constexpr std::array kMaxRatio = {std::pair{"tinyllama-1.1b", 1.02}, std::pair{"small", 1.04}};
constexpr double kMaxBytesPerAccess = 2;
constexpr std::uint64_t kBudgetTokens = 512;
constexpr double kMaxMb = 64;  // in addition to model and context

std::string at_most(double figure, double budget) {
  return tt::bench::compare_with_budget(figure, tt::bench::Bound::AtMost, budget);
}

std::string ratio_budget_text(const std::string& shape, double upper_end) {
  const auto known = std::ranges::find(kMaxRatio, shape, [](const auto& of) { return of.first; });
  return known == kMaxRatio.end() ? "no budget" : at_most(upper_end, known->second);
}

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Anonymous memory of this process, in MB.
double anonymous_mb() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

llama_context_params context_params(const Options& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kContext;
  params.n_batch = params.n_ubatch = 512;
  params.n_threads = params.n_threads_batch = options.threads;
  params.no_perf = true;
  return params;
}

class Context {
 public:
  Context(llama_model* model, const llama_context_params& params)
      : context_(llama_init_from_model(model, params)) {}
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  virtual double decode(llama_token token) {
    const auto begin = Clock::now();
    run(token);
    return milliseconds(Clock::now() - begin);
  }

 protected:
  void run(llama_token token) {
    if (llama_decode(context_.get(), llama_batch_get_one(&token, 1)) != 0) std::abort();
  }
  tt::LlamaContext context_;
};

bool split_at_every_node(ggml_tensor*, bool, void*) { return true; }

class Traced final : public Context {
 public:
  Traced(llama_model* model, llama_context_params params, tt::Probe& probe,
         const std::filesystem::path& file)
      : Context(model, (probe.attach(params), params)),
        probe_(probe),
        recorder_(
            8192, 1U << 20, [](const std::string&, const tt::Step&, const tt::KnownGraphPtr&) {},
            faults_.get(), &machine_) {
    info_.id = "bench";
    recorder_.begin(info_, file);
  }

  double decode(llama_token token) override {
    const auto begin = Clock::now();
    tt::StepBuffer* buffer = recorder_.acquire();
    if (buffer != nullptr) {
      buffer->header.begin = now();
      buffer->header.id = tt::StepId{steps_};
      buffer->header.phase = tt::Phase::Generate;
      buffer->header.n_tokens = 1;
      buffer->header.first_token = steps_;
    }
    probe_.begin_step(buffer,
                      {.exact = false, .stats_filter = nullptr, .epoch = recorder_.epoch()});
    run(token);
    probe_.end_step(false);
    if (buffer != nullptr) {
      buffer->header.end = now();
      recorder_.submit(buffer);
    }
    std::vector<tt::Token> tokens(1);
    tokens[0].index = steps_++;
    tokens[0].id = token;
    recorder_.tokens(std::move(tokens));
    return milliseconds(Clock::now() - begin);
  }

  tt::RecordingResult finish() { return recorder_.finish(info_); }

 private:
  tt::Ns now() const {
    return tt::Ns{
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - recorder_.epoch()).count()};
  }

  tt::Probe& probe_;
  const std::unique_ptr<tt::PageFaults> faults_ = tt::PageFaults::watch();
  tt::MachineState machine_;
  tt::Recorder recorder_;
  tt::SessionInfo info_;
  std::uint32_t steps_ = 0;
};

struct Interval {
  double low, median, high;
};

// Median and its 95 % interval by order statistics (no assumption about the distribution).
Interval median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const double half = 1.96 * std::sqrt(n) / 2;
  const auto at = [&](double rank) {
    return values[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  return {at(n / 2 - half), at(n / 2), at(n / 2 + half)};
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

void measure(const Options& options, const std::string& shape,
             const std::filesystem::path& model_path) {
  const std::filesystem::path folder = options.folder;
  auto index = tt::GgufIndex::open(model_path);
  if (!index) {
    std::fprintf(stderr, "%s\n", index.error().c_str());
    std::exit(1);
  }
  llama_model_params model_params = llama_model_default_params();
  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  model_params.devices = no_devices.data();
  const tt::LlamaModel model(llama_model_load_from_file(model_path.c_str(), model_params));
  if (!model) {
    std::fprintf(stderr, "%s: llama.cpp cannot load it; remove it, and it is written again\n",
                 model_path.c_str());
    std::exit(1);
  }

  llama_context_params params = context_params(options);
  Context plain(model.get(), params);
  llama_context_params every_node_params = params;
  every_node_params.cb_eval = &split_at_every_node;
  Context every_node(model.get(), every_node_params);
  const auto file = folder / (shape + ".ttrace");
  std::filesystem::remove(file);
  const tt::ModelLayout layout{*index, tt::MappedFiles::of_this_process(index->files())};

  // Memory of the recorder and the probe: first measures a context without them.
  const double with_two = anonymous_mb();
  auto third = std::make_unique<Context>(model.get(), params);
  third->decode(1);
  const double context_mb = anonymous_mb() - with_two;
  third.reset();
  const double before = anonymous_mb();
  tt::Probe probe(layout);
  Traced traced(model.get(), params, probe, file);
  traced.decode(1);
  plain.decode(1);
  every_node.decode(1);

  const int tokens_used =
      std::min(200, llama_vocab_n_tokens(llama_model_get_vocab(model.get())) - 1);
  std::array<Context*, 3> contexts = {&plain, &traced, &every_node};
  std::vector<double> plain_ms, traced_ratio, every_ratio;
  for (int i = 0; i < options.tokens; ++i) {
    std::array<double, 3> times{};
    for (std::size_t turn = 0; turn < 3; ++turn) {
      const std::size_t which = (static_cast<std::size_t>(i) + turn) % 3;
      times[which] = contexts[which]->decode(1 + i % tokens_used);
    }
    plain_ms.push_back(times[0]);
    traced_ratio.push_back(times[1] / times[0]);
    every_ratio.push_back(times[2] / times[0]);
    if (i % 200 == 199) {
      std::fprintf(stderr, "\r%s: %d of %d tokens", shape.c_str(), i + 1, options.tokens);
    }
  }
  std::fprintf(stderr, "\n");
  const double extra_mb = anonymous_mb() - before - context_mb;
  const tt::RecordingResult result = traced.finish();
  const SizeReport size = size_of(file);
  const Interval base = median_of(plain_ms);
  const Interval detailed = median_of(traced_ratio);
  const Interval all = median_of(every_ratio);
  std::println(
      "{:<16} {:8.3f} ms/token  traced {:.4f} [{:.4f}, {:.4f}]  cb_eval on every node {:.4f} "
      "[{:.4f}, {:.4f}]",
      shape, base.median, detailed.median, detailed.low, detailed.high, all.median, all.low,
      all.high);
  std::println(
      "{:<16} file {:.2f} bytes/access ({} accesses, {} steps, {} templates)  memory "
      "{:.1f} MB  lost: {} times, {} slots, {} counts",
      "", size.bytes_per_access, size.accesses, size.steps, size.templates, extra_mb,
      result.losses.steps_without_times, result.losses.slot_values_dropped,
      result.losses.count_mismatches);
  std::println("{:<16} upper end of the ratio {}", "", ratio_budget_text(shape, detailed.high));
  std::println("{:<16} bytes per access {}", "",
               size.steps < kBudgetTokens
                   ? std::format("for fewer than {} tokens: no budget", kBudgetTokens)
                   : at_most(size.bytes_per_access, kMaxBytesPerAccess));
  std::println("{:<16} MB in addition to model and context {}", "", at_most(extra_mb, kMaxMb));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the time of a traced token relative to an untraced one.");
  auto* shapes = app.add_option("--shape", options.shapes, "Model shapes (tt model --list)")
                     ->capture_default_str();
  app.add_option("--model", options.models,
                 "Models without a budget, instead of the default shapes")
      ->check(CLI::ExistingFile);
  app.add_option("--tokens", options.tokens, "Number of paired tokens")->capture_default_str();
  app.add_option("--threads", options.threads, "Number of inference threads")
      ->capture_default_str();
  app.add_option("--folder", options.folder, "Folder for models and traces")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tt::load_backends({});
  if (!options.models.empty() && shapes->count() == 0) options.shapes.clear();
  std::filesystem::create_directories(options.folder);
  for (const std::string& shape : options.shapes) measure(options, shape, model_of(options, shape));
  for (const std::filesystem::path path : options.models)
    measure(options, path.stem().string(), path);
  return tt::bench::exit_code();
}
