// Which speed does a model reach that is larger than memory? For each way of running it: tokens/s,
// bytes and page faults per token, and the prediction beside the measurement.
//
// Budgets, in a memory group (cgroup) of 0.65 of a dense model without repacking: at least 1.6
// times the tokens/s of plain mmap of the same build, at least 0.8 of the bound (the larger of
// compute time and least bytes / disk speed), at most 1.2 times the least bytes per token; the
// prediction within 20 %. In a group of 0.5 of a mixture of experts at least 2.5 times plain mmap
// if the routing is skewed, and 0.97 if it is uniform. Without a limit at least 0.98 of plain
// speed.
//
// With --prompt, a second request follows in each run, with a prompt of so many tokens: at
// least 1.3 times as fast as plain mmap, as far as its bound allows. What a plan can save at most
// is the time that plain mmap waits for the disk; with --disk, the disk is limited to a lower speed
// (root, cgroup v1).
//
// For experts, the way "no prediction" shows what reading them ahead of the router gives.
//
// Every run is a process of its own in a new group, with the pages of the model dropped before.
// The ways are run in turn, so that a slow time of the disk affects all of them; figures are
// medians over the rounds of the median over the tokens of a run.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <print>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "bench/budget.h"
#include "tests/support/slow_disk.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"
#include "tracer/format/model/quantile.h"
#include "tracer/memory/limits/memory_group.h"
#include "tracer/memory/limits/memory_limit.h"
#include "tracer/memory/pages/disk_speed.h"
#include "tracer/memory/pages/model_pages.h"
#include "tracer/modelgen/model_writer.h"
#include "tracer/recorder/page_faults.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;
using tt::bench::Bound;
using tt::bench::compare_with_budget;

struct Options {
  fs::path folder = fs::temp_directory_path() / "tt-memory-bench";
  std::string shape = "dense";
  fs::path model;
  double share = 0;  // 0: the default of the shape
  int rounds = 5;
  int tokens = 16;
  int warmup = 5;
  int prompt = 0;
  int threads = 2;
  double disk = 0;  // bytes/s; 0: as it is
  std::vector<std::string> ways;
  bool as_json = false;
  std::string child;  // the way to run in this process
  fs::path group;
};

// The experts of the mixtures are 84 % of the file.
tt::modelgen::ModelSpec spec_of(const std::string& shape) {
  if (shape == "dense") return {.shape = "tinyllama-1.1b"};
  tt::modelgen::ModelSpec spec{.shape = "moe",
                               .dims = {.layers = 12,
                                        .embd = 1536,
                                        .heads = 12,
                                        .kv_heads = 4,
                                        .ff = 768,
                                        .vocab = 32000,
                                        .experts = 24,
                                        .experts_used = 2}};
  if (shape == "moe-skewed") spec.router_skew = 8;
  return spec;
}

struct Way {
  const char* name;
  bool limited = true, pin = false, prefetch = false;
  // llama.cpp's load modes.
  bool mmap = true, mlock = false, direct_io = false;
  bool rival = false;  // llama-completion
  bool predict = true;
};
constexpr std::array kWays = {
    Way{.name = "no limit", .limited = false},
    Way{.name = "plain"},
    Way{.name = "pin", .pin = true},
    Way{.name = "prefetch", .prefetch = true},
    Way{.name = "pin+prefetch", .pin = true, .prefetch = true},
    Way{.name = "no prediction", .pin = true, .prefetch = true, .predict = false},
    Way{.name = "pin+prefetch unlimited", .limited = false, .pin = true, .prefetch = true},
    Way{.name = "load mode none", .mmap = false},
    Way{.name = "load mode dio", .mmap = false, .direct_io = true},
    Way{.name = "load mode mlock", .mmap = false, .mlock = true},
    Way{.name = "load mode mmap+mlock", .mlock = true},
    Way{.name = "llama-completion", .rival = true},
};

const Way& way_named(const std::string& name) {
  return *std::ranges::find(kWays, name, [](const Way& way) { return std::string(way.name); });
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return tt::quantile<double>(values, 0.5).value_or(0);
}

// Limits the disk of this process, if it is to be.
std::unique_ptr<tt::test::SlowDisk> limit_disk(const Options& options) {
  if (options.disk <= 0) return nullptr;
  std::string problem;
  auto slow =
      tt::test::SlowDisk::make(options.model, static_cast<std::uint64_t>(options.disk), problem);
  if (slow == nullptr) {
    std::println(stderr, "the disk cannot be limited: {}", problem);
    std::exit(2);
  }
  return slow;
}

// ---------------------------------------------------------------- one run

// The time, bytes and faults of each generated token.
struct TokenMeter final : tt::GenerationListener {
  struct Sample {
    Clock::time_point at;
    std::uint64_t bytes, faults;
  };
  void on_token(const tt::Token& token, std::string_view) override {
    ids.push_back(token.id);
    if (token.generated)
      samples.push_back({Clock::now(), tt::bytes_read_from_disk(), tt::PageFaults::count()});
  }
  void on_progress(std::uint32_t, std::uint32_t, std::uint32_t) override {}
  void on_text(std::string_view) override {}
  std::vector<Sample> samples;
  std::vector<std::int32_t> ids;
};

int run_child(const Options& options) {
  if (!options.group.empty())
    std::ofstream(options.group / "cgroup.procs") << ::getpid() << std::endl;
  const auto slow = limit_disk(options);
  const Way& way = way_named(options.child);
  tt::load_backends({});
  tt::ModelOptions model;
  model.path = options.model;
  model.repack = false;
  if (way.pin || way.prefetch) model.memory.budget = tt::MemoryOptions::kAuto;
  model.memory.pin = way.pin;
  model.memory.prefetch = way.prefetch;
  model.memory.predict = way.predict;
  model.mmap = way.mmap;
  model.mlock = way.mlock;
  model.direct_io = way.direct_io;
  tt::ContextOptions context;
  context.context = 1024;
  context.ubatch = 512;
  context.threads = options.threads;
  auto engine = tt::Engine::load(model, context, {});
  if (!engine) {
    std::println(stderr, "{}", engine.error().message);
    return 1;
  }
  tt::GenerationRequest request;
  std::vector<std::int32_t> ids;
  constexpr int kFirstPrompt = 8;
  for (int i = 0; i < kFirstPrompt; ++i) ids.push_back(300 + 37 * i % 5000);
  request.prompt = ids;
  request.max_tokens = static_cast<std::uint32_t>(options.warmup + options.tokens);
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.level = tt::Level::Off;
  TokenMeter meter;
  const tt::GenerationResult result = (*engine)->generate(request, nullptr, meter);
  if (!result.error.empty()) {
    std::println(stderr, "{}", result.error);
    return 1;
  }
  // The plan has settled; all tokens of the prompt are new.
  tt::GenerationResult prompt;
  TokenMeter prompt_meter;
  const std::uint64_t before_prompt = tt::bytes_read_from_disk();
  if (options.prompt > 0) {
    ids.clear();
    for (int i = 0; i < options.prompt; ++i) ids.push_back(401 + 53 * i % 5000);
    tt::GenerationRequest second = request;
    second.prompt = ids;
    second.max_tokens = 1;
    (*engine)->reset_cancel();
    prompt = (*engine)->generate(second, nullptr, prompt_meter);
  }
  std::vector<double> ms, bytes, faults;
  for (std::size_t i = static_cast<std::size_t>(options.warmup); i < meter.samples.size(); ++i) {
    const auto& before = meter.samples[i - 1];
    const auto& after = meter.samples[i];
    ms.push_back(std::chrono::duration<double, std::milli>(after.at - before.at).count());
    bytes.push_back(static_cast<double>(after.bytes - before.bytes));
    faults.push_back(static_cast<double>(after.faults - before.faults));
  }
  const tt::MemoryState state = (*engine)->memory_state();
  const tt::MemoryLimit limit = tt::MemoryLimitReader().read();
  double sum = 0;
  for (const double value : ms) sum += value;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const std::int64_t kernel_ms = used.ru_stime.tv_sec * 1000 + used.ru_stime.tv_usec / 1000;
  const json out = {
      {"ms", median(ms)},
      {"mean_ms", sum / static_cast<double>(ms.size())},
      {"bytes", median(bytes)},
      {"faults", median(faults)},
      {"prompt_ms", static_cast<double>(prompt.prompt_ns) * 1e-6},
      {"prompt_bytes",
       prompt_meter.samples.empty() ? 0 : prompt_meter.samples.front().bytes - before_prompt},
      {"weights", state.weights},
      {"experts", state.experts},
      {"available", limit.limit - std::min(limit.limit, limit.fixed)},
      {"predicted", state.predicted_tokens_per_second},
      {"plain_predicted", state.plain_tokens_per_second},
      {"predicted_bytes", state.predicted_bytes_per_token},
      {"disk", state.disk_bytes_per_second},
      {"compute", state.compute_seconds},
      {"kernel_ms", kernel_ms},
      {"locked", state.locked},
      {"pinned", state.pinned},
      {"streamed", state.streamed},
      {"window", state.window},
      {"budget", state.budget},
      {"late", state.late_ranges},
      {"hits", state.expert_hits},
      {"misses", state.expert_misses},
      {"experts_predicted", state.experts_predicted},
      {"experts_right", state.experts_predicted_right},
      {"ahead", state.expert_bytes_ahead},
      {"wasted", state.expert_bytes_wasted},
      {"reductions", state.reductions},
      {"message", state.message},
      {"ids", meter.ids}};
  std::println("{}", out.dump());
  return 0;
}

// ---------------------------------------------------------------- all runs

// llama.cpp's own program in the group: only its time per token is known.
json run_rival(const Options& options, const fs::path& group) {
  const std::string command = std::format(
      "sh -c 'echo $$ > {}; exec llama-completion -m {} -t {} -c 1024 -n {} --no-repack -no-cnv "
      "--ignore-eos --temp 0 -p Hello 2>&1' </dev/null",
      (group / "cgroup.procs").string(), options.model.string(), options.threads,
      options.warmup + options.tokens);
  const std::regex eval(" eval time = .*\\( *([0-9.]+) ms per token");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> line;
  double ms = 0;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text = line.data();
    std::smatch found;
    if (!text.contains("prompt eval") && std::regex_search(text, found, eval))
      ms = std::stod(found[1]);
  }
  ::pclose(pipe);
  if (ms == 0) return nullptr;
  json run = {{"ms", ms}};
  for (const char* unknown :
       {"predicted", "bytes", "predicted_bytes", "faults", "prompt_ms", "prompt_bytes"})
    run[unknown] = 0;
  return run;
}

json run_way(const Options& options, const Way& way, std::uint64_t limit) {
  tt::drop_pages(options.model);
  std::string problem;
  const auto group = tt::MemoryGroup::make(way.limited ? limit : 64ULL << 30, problem);
  if (!group) {
    std::println(stderr, "no memory group: {}", problem);
    std::exit(2);
  }
  if (way.rival) return run_rival(options, group->folder());
  const std::string self = fs::read_symlink("/proc/self/exe");
  const std::string command = std::format(
      "{} --child '{}' --group {} --model {} --tokens {} --warmup {} --prompt {} --threads {} "
      "--disk {} 2>/dev/null",
      self, way.name, group->folder().string(), options.model.string(), options.tokens,
      options.warmup, options.prompt, options.threads, options.disk);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 65536> block;
  while (std::fgets(block.data(), block.size(), pipe) != nullptr) text += block.data();
  ::pclose(pipe);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

int run_all(Options options) {
  fs::create_directories(options.folder);
  if (options.shape == "dense" && options.model.empty())
    std::erase(options.ways, "no prediction");  // there are no experts
  if (options.model.empty()) {
    options.model = options.folder / (options.shape + ".gguf");
    if (!fs::exists(options.model)) {
      if (auto written = tt::modelgen::write_model(spec_of(options.shape), options.model);
          !written) {
        std::println(stderr, "{}", written.error().message);
        return 1;
      }
      ::sync();
    }
  }
  const auto size = fs::file_size(options.model);
  const auto limit =
      static_cast<std::uint64_t>(options.share * static_cast<double>(size)) / 4096 * 4096;
  std::map<std::string, std::vector<json>> runs;
  std::vector<double> disk;
  for (int round = 0; round < options.rounds; ++round) {
    {
      const auto slow = limit_disk(options);
      const auto speed = tt::measure_read_speed(options.model);
      disk.push_back(speed ? speed->mean : 0);
    }
    for (const std::string& name : options.ways) {
      const json run = run_way(options, way_named(name), limit);
      if (options.as_json) std::println("{}", json{{"way", name}, {"run", run}}.dump());
      std::println(stderr, "round {} {}: {}", round + 1, name,
                   run.is_object() ? run.dump() : "failed");
      if (run.is_object()) runs[name].push_back(run);
    }
  }
  if (disk.empty()) return 0;  // no rounds
  const auto middle = [&](const std::string& name, const char* figure) {
    std::vector<double> values;
    for (const json& run : runs[name]) values.push_back(run.at(figure).get<double>());
    return median(values);
  };
  std::println(
      "{}: {} MB, group of {} MB, {} threads; disk {:.0f} MB/s (median of {:.0f} to {:.0f})",
      options.model.filename().string(), size / 1'000'000, limit / 1'000'000, options.threads,
      median(disk) / 1e6, std::ranges::min(disk) / 1e6, std::ranges::max(disk) / 1e6);
  std::println("{:<24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "ms/token", "tokens/s",
               "predicted", "MB/token", "predicted", "faults", "prompt ms", "prompt MB");
  for (const std::string& name : options.ways) {
    if (runs[name].empty()) {
      std::println("{:<24} failed", name);
      continue;
    }
    std::println("{:<24} {:>9.1f} {:>9.2f} {:>9.2f} {:>9.1f} {:>9.1f} {:>9.0f} {:>9.0f} {:>9.1f}",
                 name, middle(name, "ms"), 1000 / middle(name, "ms"), middle(name, "predicted"),
                 middle(name, "bytes") / 1e6, middle(name, "predicted_bytes") / 1e6,
                 middle(name, "faults"), middle(name, "prompt_ms"),
                 middle(name, "prompt_bytes") / 1e6);
  }
  const std::string both = "pin+prefetch";
  if (!runs["no limit"].empty() && !runs[both].empty() && middle(both, "experts") == 0) {
    // What no way of keeping weights in the memory that the process itself leaves can be below.
    const double least = std::max(0.0, middle(both, "weights") - middle(both, "available"));
    const double disk_ms = 1e3 * least / median(disk);
    const double bound = std::max(middle("no limit", "ms"), disk_ms);
    std::println(
        "least {:.1f} MB/token, bound {:.1f} ms/token; {}: {:.2f} of the bound, {:.2f} times "
        "the least bytes",
        least / 1e6, bound, both, bound / middle(both, "ms"), middle(both, "bytes") / least);
    std::println("of the bound {}; times the least bytes {}",
                 compare_with_budget(bound / middle(both, "ms"), Bound::AtLeast, 0.8),
                 compare_with_budget(middle(both, "bytes") / least, Bound::AtMost, 1.2));
    if (options.prompt > 0) {
      const double prompt_bound = std::max(middle("no limit", "prompt_ms"), disk_ms);
      std::println(
          "prompt of {} tokens: bound {:.0f} ms; {}: {:.2f} of the bound, {:.2f} times plain, of "
          "{:.2f} times that are possible",
          options.prompt, prompt_bound, both, prompt_bound / middle(both, "prompt_ms"),
          middle("plain", "prompt_ms") / middle(both, "prompt_ms"),
          middle("plain", "prompt_ms") / prompt_bound);
      std::println("prompt, times plain {}",
                   compare_with_budget(middle("plain", "prompt_ms") / middle(both, "prompt_ms"),
                                       Bound::AtLeast, 1.3));
    }
  }
  const std::string unpredicted = "no prediction";
  if (!runs[unpredicted].empty() && !runs[both].empty()) {
    const auto share = [&](const char* part, const char* all) {
      return 100 * middle(both, part) / std::max(1.0, middle(both, all));
    };
    std::println(
        "experts: {:.1f} % of the uses were in memory; {:.0f} predicted that were not, {:.1f} % of "
        "them right; {:.1f} MB read ahead of the router, {:.1f} % of it wasted; {:.3f} times the "
        "tokens/s of {}",
        100 * middle(both, "hits") / std::max(1.0, middle(both, "hits") + middle(both, "misses")),
        middle(both, "experts_predicted"), share("experts_right", "experts_predicted"),
        middle(both, "ahead") / 1e6, share("wasted", "ahead"),
        middle(unpredicted, "ms") / middle(both, "ms"), unpredicted);
  }
  const auto is_measured = [&](const std::string& name) { return !runs[name].empty(); };
  // Tokens/s of a way, relative to another one.
  const auto check_speed = [&](const std::string& name, const char* other, double least) {
    if (!is_measured(name) || !is_measured(other)) return;
    const double times = middle(other, "ms") / middle(name, "ms");
    std::println("{}: {:.2f} times {}, {}", name, times, other,
                 compare_with_budget(times, Bound::AtLeast, least));
  };
  const double least = options.shape == "dense" ? 1.6 : options.shape == "moe-skewed" ? 2.5 : 0.97;
  check_speed(both, "plain", least);
  check_speed("pin+prefetch unlimited", "no limit", 0.98);
  for (const std::string& name : options.ways) {
    if (!is_measured(name) || middle(name, "predicted") <= 0) continue;
    const double measured = 1000 / middle(name, "ms");
    const double off = std::abs(middle(name, "predicted") - measured) / measured;
    std::println("{}: predicted {:.0f} % off, {}", name, 100 * off,
                 compare_with_budget(off, Bound::AtMost, 0.2));
  }
  return tt::bench::exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (const Way& way : kWays) options.ways.emplace_back(way.name);
  CLI::App app("Measures models that are larger than memory.");
  app.add_option("--folder", options.folder, "Folder for models")->capture_default_str();
  app.add_option("--shape", options.shape, "Model")
      ->check(CLI::IsMember({"dense", "moe-skewed", "moe-uniform"}))
      ->capture_default_str();
  app.add_option("--model", options.model, "Model instead of a shape");
  app.add_option("--share", options.share,
                 "Memory limit as a share of the file; default: 0.65, of mixtures of experts 0.5");
  app.add_option("--rounds", options.rounds)->capture_default_str();
  app.add_option("--tokens", options.tokens, "Measured tokens of a run")->capture_default_str();
  app.add_option("--warmup", options.warmup, "Tokens before them")->capture_default_str();
  app.add_option("--prompt", options.prompt, "Tokens of the prompt of a second request; 0: none")
      ->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--disk", options.disk, "Limit the disk to so many bytes/s; 0: as it is");
  app.add_option("--ways", options.ways, "Ways to run it")
      ->delimiter(',')
      ->check(CLI::IsMember(
          kWays | std::views::transform([](const Way& way) { return std::string(way.name); }) |
          std::ranges::to<std::vector>()));
  app.add_flag("--json", options.as_json, "Print every run as JSON");
  app.add_option("--child", options.child)->group("");
  app.add_option("--group", options.group)->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.share <= 0) options.share = options.shape == "dense" ? 0.65 : 0.5;
  return options.child.empty() ? run_all(options) : run_child(options);
}
