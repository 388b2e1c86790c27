// tt bench-model MODEL: speed of prompts and generation, the noise floor, and what recording costs.
// Options and columns are named as in llama-bench. Also compares two configurations, or two files
// that it wrote.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <format>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/speed/speed_comparison.h"
#include "analysis/speed/speed_rounds.h"
#include "api/json/analysis/bench_json.h"
#include "cli/commands/bench_model_output.h"
#include "cli/commands/scratch_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/status_line.h"
#include "program/command_line.h"
#include "program/installation.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "tracer/bench/bench_round.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/host_facts.h"
#include "tracer/engine/model_check.h"
#include "tracer/format/file/input_file.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  fs::path file;
  ModelOptions model;
  ContextOptions context;
  std::vector<std::uint32_t> n_prompt = {512}, n_gen = {128};
  std::uint32_t rounds = 7, block_ms = 200;
  std::uint32_t max_seconds = 1800;  // 0: no limit
  std::string against;
  fs::path sessions;  // empty: the recordings are not kept
  std::vector<std::string> compare;
  BenchFormat format = BenchFormat::Table;
  bool json = false, verbose = false, force = false;
};

constexpr int kError = 1, kUsageError = 2, kInterrupted = 130;

int fail(const std::string& message, int exit_code = kError) {
  print_message("tt bench-model: {}", message);
  return exit_code;
}

// One side of a comparison, or the only one.
struct Configuration {
  std::string name;
  ModelOptions model;
  ContextOptions context;
  BenchResult result{};
  ThreadTime conditions{};
  std::int32_t threads = 0;
  std::uint64_t lost_steps = 0;  // recorded steps without times
  std::vector<fs::path> kept{};  // one file for the recording of each round; empty: none
};

// As tests of llama-bench: each prompt length, then each number of generated tokens; 0: none.
std::vector<BenchTest> tests_of(const BenchOptions& options) {
  std::vector<BenchTest> tests;
  for (const std::uint32_t n : options.n_prompt)
    if (n > 0) tests.push_back({.n_prompt = n, .n_gen = 0});
  for (const std::uint32_t n : options.n_gen)
    if (n > 0) tests.push_back({.n_prompt = 0, .n_gen = n});
  return tests;
}

std::string fact(const std::vector<std::pair<std::string, std::string>>& facts, const char* name) {
  const auto found = std::ranges::find(facts, name, &std::pair<std::string, std::string>::first);
  return found == facts.end() ? "" : found->second;
}

// The columns of llama-bench, in its order. Those that this program has no option for have the
// values that it uses; the build number is not known.
Json facts_of(const Configuration& of, const BenchRound& round) {
  const auto host = host_facts(of.model.path);
  const char* const flash = of.context.flash_attention == FlashAttention::On    ? "on"
                            : of.context.flash_attention == FlashAttention::Off ? "off"
                                                                                : "auto";
  Json json;
  json["build_commit"] = library_versions().ggml_commit;
  json["build_number"] = Json();
  json["cpu_info"] = fact(host, "host.cpu");
  json["gpu_info"] = join(offload_devices());
  json["backends"] = join(backend_names());
  json["model_filename"] = of.model.path.string();
  json["model_type"] = round.facts.description;
  json["model_size"] = round.facts.size;
  json["model_n_params"] = round.n_params;
  json["n_batch"] = of.context.batch;
  json["n_ubatch"] = round.facts.ubatch;
  json["n_threads"] = round.facts.threads;
  json["cpu_mask"] = "0x0";
  json["cpu_strict"] = false;
  json["poll"] = 50;
  json["type_k"] = of.context.cache_type_k;
  json["type_v"] = of.context.cache_type_v;
  json["n_gpu_layers"] = of.model.gpu_layers;
  json["n_cpu_moe"] = of.model.cpu_moe_layers;
  json["split_mode"] = "layer";
  json["main_gpu"] = 0;
  json["no_kv_offload"] = false;
  json["flash_attn"] = flash;
  json["devices"] = of.model.gpu_layers == 0 ? "none" : "auto";
  json["tensor_split"] = "0.00";
  json["tensor_buft_overrides"] =
      of.model.tensor_overrides.empty() ? "none" : join(of.model.tensor_overrides);
  json["use_mmap"] = of.model.mmap;
  json["use_direct_io"] = of.model.direct_io;
  json["embeddings"] = round.facts.embedding_only;
  json["no_op_offload"] = 0;
  json["repack"] = of.model.repack;
  return json;
}

std::string model_line(const BenchRound& round) {
  const auto parameters = static_cast<double>(round.n_params);
  return std::format("{}, {}, {} parameters, {}", round.facts.name, round.facts.description,
                     parameters < 1e9 ? std::format("{:.2f} M", parameters / 1e6)
                                      : std::format("{:.2f} B", parameters / 1e9),
                     format_bytes(round.facts.size));
}

// What a child process finds wrong with the model.
std::expected<void, std::string> check_model(const Configuration& of, Sandbox& sandbox) {
  ModelCheck check(sandbox, of.model, of.context, model_check_timeout(of.model.path));
  if (auto loaded = check.loaded(); !loaded) return loaded;
  return check.evaluated();
}

std::expected<void, EngineError> measure(Configuration& of, const BenchSetup& setup,
                                         BenchWatch& watch, std::uint32_t number,
                                         const BenchContinue& keep_going) {
  const auto round = measure_round(setup, watch, number, keep_going);
  if (!round) return std::unexpected(round.error());
  const auto unreadable = [](const TraceError& error) {
    return std::unexpected(
        EngineError{.kind = EngineError::Kind::Unsupported, .message = error.message});
  };
  if (number == 0) {
    of.result.name = of.name;
    of.threads = round->facts.threads;
    of.result.facts = facts_of(of, *round);
    of.result.model = model_line(*round);
    of.result.tests.resize(round->tests.size());
    // Not `context_warning`: the context has the size of the largest test.
    for (const std::string& warning : round->facts.warnings)
      print_message("tt bench-model: {}", warning);
  }
  const auto session = SessionReader::open(round->session);
  if (!session) return unreadable(session.error());
  for (std::size_t i = 0; i < round->tests.size(); ++i) {
    const auto added = add_round(of.result.tests[i], round->tests[i], *session);
    if (!added) return unreadable(added.error());
    of.conditions += added->conditions;
    of.lost_steps += added->steps_without_times;
  }
  std::error_code failed;
  if (of.kept.empty()) {
    fs::remove(round->session, failed);
  } else if ((failed = replace_session(round->session, of.kept[number]))) {
    return unreadable(
        {TraceError::Kind::Io, std::format("{}: {}", of.kept[number].string(), failed.message())});
  }
  return {};
}

void finish(Configuration& of) {
  of.result.test_time = std::format(
      "{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  if (of.lost_steps > 0) {
    print_message(
        "tt bench-model: the recorder did not keep up: {} without times are missing in "
        "the tables of op kinds",
        counted(of.lost_steps, "step"));
  }
  if (const auto verdict = of.conditions.verdict()) {
    of.result.machine_word = to_text(*verdict);
    of.result.machine = advice_on(*verdict, of.conditions,
                                  {.threads = static_cast<std::uint64_t>(std::max(of.threads, 0)),
                                   .processors = static_cast<std::uint64_t>(usable_processors())});
  }
}

int measure_all(std::vector<Configuration>& configurations, const BenchOptions& options) {
  const InterruptGuard interrupt_guard;
  // Recordings that are kept are moved out of it.
  const ScratchFolder folder(
      "tt-bench", options.sessions.empty() ? fs::temp_directory_path() : options.sessions);
  if (folder.path().empty()) return fail(folder.error());
  load_backends([verbose = options.verbose](LibraryLine level, std::string_view text) {
    if (verbose && level >= LibraryLine::Warning) std::fwrite(text.data(), 1, text.size(), stderr);
  });
  BenchWatch watch;
  StatusLine line(true);
  Sandbox sandbox(current_installation().worker);
  for (const Configuration& of : configurations) {
    line.show("checking the model");
    if (const auto usable = check_model(of, sandbox); !usable) {
      line.clear();
      return was_interrupted() ? kInterrupted : fail(usable.error());
    }
  }
  // Two threads that wait for each other on a busy machine need a hundred times as long.
  const auto began = std::chrono::steady_clock::now();
  const auto is_late = [&] {
    return options.max_seconds > 0 &&
           std::chrono::steady_clock::now() - began > std::chrono::seconds(options.max_seconds);
  };
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t turn = 0; turn < configurations.size(); ++turn) {
      // Neither configuration is always the first one.
      Configuration& of = configurations[(turn + round) % configurations.size()];
      const BenchSetup setup{.model = of.model,
                             .context = of.context,
                             .tests = tests_of(options),
                             .block_time = std::chrono::milliseconds(options.block_ms),
                             .folder = folder.path()};
      const auto keep_going = [&](const BenchTest& test) {
        line.show(std::format(
            "round {} of {}{}{}: {}", round + 1, options.rounds, of.name.empty() ? "" : ", ",
            of.name,
            test.tokens() == 0 ? "loading the model" : test_name(test.n_prompt, test.n_gen)));
        return !was_interrupted() && !is_late();
      };
      const auto measured = measure(of, setup, watch, round, keep_going);
      if (measured) continue;
      line.clear();
      if (was_interrupted()) return kInterrupted;
      if (!is_late()) return fail(measured.error().message);
      const std::string late = std::format(
          "stopped after {} s (--max-seconds) with {} of {} rounds. If threads wait for a "
          "processor, use fewer (-t) or stop other programs",
          options.max_seconds, round, options.rounds);
      if (round == 0) return fail(late);
      print_message("tt bench-model: {}", late);
      for (Configuration& each : configurations) finish(each);
      return 0;
    }
  }
  line.clear();
  for (Configuration& of : configurations) finish(of);
  return 0;
}

// The options of --against change those of the first configuration.
std::optional<Configuration> other_configuration(const BenchOptions& options) {
  Configuration other{.name = options.against, .model = options.model, .context = options.context};
  std::vector<std::string> words = {"tt"};
  std::istringstream text(options.against);
  for (std::string word; text >> word;) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  CLI::App app("", "tt bench-model --against");
  add_model_options(app, other.model);
  add_context_options(app, other.context);
  if (parse(app, arguments_of(static_cast<int>(arguments.size()), arguments.data())))
    return std::nullopt;
  return other;
}

std::expected<BenchFile, std::string> read_results(const std::string& name) {
  constexpr std::uint64_t kMaxBytes = 64U << 20;
  const auto text = read_input(name, kMaxBytes, InputKind::RegularOrPipe);
  if (!text) return std::unexpected(text.error().message);
  auto file = parse_bench_rows(*text);
  if (!file) return std::unexpected(std::format("{} {}", name, file.error()));
  return file;
}

int compare_files(const BenchOptions& options) {
  auto before = read_results(options.compare[0]), after = read_results(options.compare[1]);
  if (!before) return fail(before.error());
  if (!after) return fail(after.error());
  const std::vector<std::string> differences = bench_differences(*before, *after);
  if (!differences.empty() && !options.force) {
    return fail(join(differences) + ". Measure both in the same way, or compare them with --force");
  }
  for (const std::string& difference : differences) print_message("tt bench-model: {}", difference);
  use_same_rounds(*before, *after);
  const auto tests = compare_speed(before->tests, after->tests);
  if (tests.empty()) {
    return fail("the files have no test in common: measure both with the same values of -p and -n");
  }
  print_comparison(tests, options.compare[0], options.compare[1], options.format);
  return 0;
}

// The files of --sessions. Two configurations are two sets.
std::expected<void, std::string> choose_files(std::vector<Configuration>& configurations,
                                              const BenchOptions& options) {
  if (options.sessions.empty()) return {};
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    const fs::path folder = configurations.size() == 1
                                ? options.sessions
                                : options.sessions / (i == 0 ? "given" : "against");
    auto files =
        run_files(folder, options.rounds, model_files(configurations[i].model.path), options.force);
    if (!files) return std::unexpected(files.error());
    configurations[i].kept = *std::move(files);
  }
  return {};
}

int run(BenchOptions& options) {
  if (options.json) options.format = BenchFormat::Json;
  if (!options.compare.empty()) return compare_files(options);
  if (!options.file.empty()) options.model.path = options.file;
  if (options.model.path.empty()) options.model.path = current_installation().bundled_model;
  if (tests_of(options).empty()) {
    return fail("there is nothing to measure: -p and -n are 0. Give one of them a number of tokens",
                kUsageError);
  }
  std::vector<Configuration> configurations;
  const bool two = !options.against.empty();
  configurations.push_back(
      {.name = two ? "as given" : "", .model = options.model, .context = options.context});
  if (two) {
    auto other = other_configuration(options);
    if (!other) return kUsageError;
    configurations.push_back(*std::move(other));
  }
  if (const auto chosen = choose_files(configurations, options); !chosen)
    return fail(chosen.error());
  if (const int code = measure_all(configurations, options); code != 0) return code;
  std::vector<BenchResult> results;
  for (Configuration& of : configurations) results.push_back(std::move(of.result));
  if (two) {
    print_results_and_comparison(
        results, compare_speed(results[0].tests, results[1].tests, SpeedOrder::InTurns),
        options.format);
  } else {
    print_results(results, options.format);
  }
  return 0;
}

}  // namespace

RunVerb add_bench_model_command(CLI::App& command) {
  auto options = std::make_shared<BenchOptions>();
  command
      .add_option("file", options->file,
                  "GGUF model to measure (also -m; default: the small bundled model)")
      ->type_name("FILE");
  command.option_defaults()->group("Measurement");
  command
      .add_option("-p,--n-prompt", options->n_prompt,
                  "Prompt lengths to measure, N,...; 0: none (default: 512)")
      ->delimiter(',')
      ->check(whole_number(0, kMaxContext))
      ->type_name("N");
  command
      .add_option("-n,--n-gen", options->n_gen,
                  "Numbers of generated tokens to measure, N,...; 0: none (default: 128)")
      ->delimiter(',')
      ->check(whole_number(0, kMaxContext))
      ->type_name("N");
  command
      .add_option("-r,--repetitions", options->rounds,
                  "Number of rounds. A verdict needs 5, naming an op kind 7")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--block-ms", options->block_ms,
          "A block repeats its test until it takes this many milliseconds and has 64 tokens")
      ->check(whole_number(0, 3'600'000))
      ->capture_default_str();
  command
      .add_option("--max-seconds", options->max_seconds,
                  "End after this many seconds with the complete rounds; 0: no limit")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  CLI::Option* against =
      command
          .add_option("--against", options->against,
                      "Measure a second configuration in turns: model and context options that "
                      "differ, such as '-t 4 -fa on'")
          ->check(utf8_text());
  command
      .add_option("--compare", options->compare,
                  "Compare two files of -o json instead of measuring: faster, slower, or no "
                  "significant difference, and which op kinds did it")
      ->expected(2)
      ->type_name("FILE")
      ->excludes(against);
  command.add_flag(
      "--force", options->force,
      "Compare files of different models, machines, threads or settings, and disturbed "
      "measurements; replace existing files in --sessions");
  command.option_defaults()->group("Output");
  const std::vector<std::pair<std::string, BenchFormat>> formats = {
      {"table", BenchFormat::Table},     {"csv", BenchFormat::Csv},     {"json", BenchFormat::Json},
      {"jsonl", BenchFormat::JsonLines}, {"md", BenchFormat::Markdown}, {"sql", BenchFormat::Sql}};
  auto* output =
      command
          .add_option(
              "-o,--output", options->format,
              "Output format: table (default), csv, json, jsonl, md or sql, with the column "
              "names of llama-bench")
          ->transform(choice(formats))
          ->type_name("FORMAT");
  command.add_flag("--json", options->json, "Same as -o json")->excludes(output);
  command
      .add_option(
          "--sessions", options->sessions,
          "Folder for the recording of each round, run-01.ttrace and so on (with --against: "
          "in its folders given and against), as tt record --repeat writes them. They have "
          "the recorded blocks and their warm-up; the times without recording are not in "
          "them")
      ->type_name("DIR")
      ->excludes("--compare");
  command.add_flag("--verbose", options->verbose, "Show the warnings and errors of llama.cpp");
  command.option_defaults()->group("Model");
  add_model_options(command, options->model);
  command.option_defaults()->group("Context");
  add_context_options(command, options->context);
  // The context has the size of the largest test. Models within a budget: tt memory --try.
  for (const char* name :
       {"--ctx-size", "--memory-budget", "--pin", "--prefetch", "--access-pattern"})
    command.remove_option(command.get_option(name));
  command.footer(
      "Example: tt bench-model model.gguf\n"
      "         tt bench-model model.gguf --against '-t 2'\n"
      "         tt bench-model model.gguf -o json > before.json\n"
      "         tt bench-model --compare before.json after.json\n"
      "         tt bench-model model.gguf --against '-t 2' --sessions runs\n"
      "         tt compare runs/given runs/against");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
