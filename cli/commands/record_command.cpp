// tt record -p TEXT -o FILE.ttrace: runs one request without a server and records it. Streams the
// answer to stdout; writes progress and a summary to stderr. After an interrupt the file is
// complete, too.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/tables/session_overview.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/run_events.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/status_line.h"
#include "program/installation.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/generation_queue.h"
#include "tracer/format/file/input_file.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/probe/value_capture.h"
#include "tracer/sandbox/sandbox.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

// Parsed options; must outlive the subcommand.
struct RecordOptions {
  ModelOptions model;
  ContextOptions context;
  GenerationRequest request;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::vector<std::int32_t> tokens;
  fs::path output, chat_template_file;
  std::uint32_t repeat = 1;
  bool chat = false, force = false, quiet = false, verbose = false;
};

constexpr int kError = 1, kUsageError = 2;  // exit codes
struct Failure {
  std::string message;
  int exit_code = kError;
};

int fail(const Failure& failure) {
  print_message("tt record: {}", failure.message);
  return failure.exit_code;
}

std::string prompt_path(const RecordOptions& options) {
  return options.prompt_file == "-" ? "/dev/stdin" : options.prompt_file;
}

// Larger than the text of any context.
constexpr std::size_t kMaxPromptBytes = 64U << 20;

std::expected<std::string, Failure> read_prompt(const RecordOptions& options) {
  const std::string& name = options.prompt_file;
  auto text = read_input(prompt_path(options), kMaxPromptBytes, InputKind::RegularOrPipe);
  if (!text) return std::unexpected(Failure{"--file: " + text.error().message});
  const std::string error = text->empty() ? "is empty" : utf8_error(*text);
  if (!error.empty()) return std::unexpected(Failure{"--file: " + name + " " + error});
  return *std::move(text);
}

std::expected<Prompt, Failure> make_prompt(const RecordOptions& options) {
  if (!options.tokens.empty()) return options.tokens;
  std::string text = options.prompt.value_or("");
  if (!options.prompt_file.empty()) {
    auto read = read_prompt(options);
    if (!read) return std::unexpected(read.error());
    text = *std::move(read);
  } else if (text.empty()) {
    return std::unexpected(Failure{
        options.prompt ? "the prompt is empty" : "a prompt is required. Use -p, -f or --tokens.",
        kUsageError});
  }
  if (!options.chat) return text;
  return std::vector<ChatMessage>{{.role = "user", .content = std::move(text)}};
}

// All input files, with every part of a split model.
std::vector<fs::path> input_files(const RecordOptions& options) {
  std::vector<fs::path> inputs = model_files(options.model.path);
  if (!options.prompt_file.empty()) inputs.emplace_back(prompt_path(options));
  inputs.insert(inputs.end(), {options.model.access_pattern, options.chat_template_file});
  return inputs;
}

// Prints the answer while it is generated. Returns when the request has ended.
JobStatus print_answer(GenerationQueue& queue, const std::string& id, RunEvents& events,
                       StatusLine& line) {
  bool cancelled = false;
  for (;;) {
    if (was_interrupted() && !std::exchange(cancelled, true)) queue.cancel(id);
    const RunEvents::Update update = events.update();
    if (!update.text.empty()) {
      line.clear();
      put(update.text);
      flush_output();
    } else if (update.progress && update.progress->generated == 0) {
      line.show(std::format("prompt {} of {} tokens", update.progress->prompt_done,
                            update.progress->prompt_tokens));
    }
    if (!update.ended) continue;
    line.clear();
    if (!update.ended->text.empty()) put("\n");
    flush_output();
    return *update.ended;
  }
}

void print_summary(const fs::path& file, const JobStatus& status) {
  print_message("{}: {}, {} generated ({})", file.string(),
                counted(status.prompt_tokens, "prompt token"), status.generated,
                to_text(status.stop_reason));
  const auto reader = SessionReader::open(file);
  if (!reader) return;
  const auto steps = reader->step_count();
  std::error_code none;
  if (steps) {
    print_message("{}, {}", counted(*steps, "step"), format_bytes(fs::file_size(file, none)));
  }
  if (const auto info = reader->info()) {
    if (const std::string budget = memory_budget_text(*info); !budget.empty())
      print_message("memory budget {}", budget);
  }
  if (const auto losses = reader->losses(); losses && *losses != LossCounters{}) {
    print_message(
        "lost: times of {} steps, {} slot values, {} steps with a wrong op count, {} steps "
        "not written, {} page faults",
        losses->steps_without_times, losses->slot_values_dropped, losses->count_mismatches,
        losses->steps_not_written, losses->page_faults_lost);
  }
}

void print_captured(const fs::path& file) {
  const auto reader = SessionReader::open(file);
  if (!reader) return;
  std::uint64_t outputs = 0, values = 0, not_captured = 0;
  const auto read = reader->for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    outputs += of.outputs.size();
    not_captured += of.not_captured;
    for (const OutputValues& output : of.outputs) values += output.values.size();
    return true;
  });
  if (!read) return;
  print_message("captured {} ({}), {} not captured", counted(outputs, "output"),
                counted(values, "value"), not_captured);
}

// One for each run: the file, or with --repeat those of the folder.
std::expected<std::vector<fs::path>, std::string> output_files(const RecordOptions& options) {
  const std::vector<fs::path> inputs = input_files(options);
  if (options.repeat > 1) return run_files(options.output, options.repeat, inputs, options.force);
  return output_path(options.output, Target::File, inputs, options.force)
      .transform([](fs::path file) { return std::vector{std::move(file)}; });
}

// `output`: empty with --level off. Returns the exit status.
int record_one(GenerationQueue& queue, const RecordOptions& options, const fs::path& output,
               RunEvents& events, StatusLine& line) {
  events.begin();
  const auto job = queue.submit(options.request);
  if (!job) return fail({job.error().message});
  const JobStatus status = print_answer(queue, job->id, events, line);
  if (output.empty()) return status.error.empty() ? 0 : fail({status.error});
  const std::string shown =
      options.repeat > 1 ? (options.output / output.filename()).string() : options.output.string();
  if (const auto failed = replace_session(output.parent_path() / (job->id + ".ttrace"), output)) {
    return fail({std::format("{}: {}{}", shown, failed.message(),
                             status.error.empty() ? "" : ". " + status.error)});
  }
  if (!options.quiet) {
    print_summary(shown, status);
    if (!options.request.capture.empty()) print_captured(shown);
  }
  return status.error.empty() ? 0 : fail({status.error});
}

int run(RecordOptions& options) {
  const Installation installation = current_installation();
  if (options.model.path.empty()) options.model.path = installation.bundled_model;
  const bool recorded = options.request.level != Level::Off;
  if (recorded && options.output.empty())
    return fail(
        {"--output is required. Use -o FILE, or --level off to record nothing.", kUsageError});
  if (!recorded && !options.output.empty()) {
    return fail(
        {"--level off records nothing, so there is no session to write to --output. Use "
         "--level minimal or higher, or omit --output.",
         kUsageError});
  }
  if (const auto rules = capture_rules(options.request); !rules)
    return fail({"--capture: " + rules.error(), kUsageError});
  std::vector<fs::path> outputs(options.repeat);
  if (recorded) {
    auto files = output_files(options);
    if (!files) return fail({files.error()});
    outputs = *std::move(files);
  }
  auto prompt = make_prompt(options);
  if (!prompt) return fail(prompt.error());
  options.request.prompt = *std::move(prompt);
  if (options.request.stop.size() > kMaxStops)
    return fail({std::format("--stop: at most {} values are allowed", kMaxStops), kUsageError});

  const InterruptGuard guard;
  load_backends([&](LibraryLine level, std::string_view text) {
    if (!options.verbose || level == LibraryLine::Debug) return;
    const std::string line = escape_control_chars(text, "\n\t");
    std::fwrite(line.data(), 1, line.size(), stderr);
  });
  RunEvents events;
  StatusLine line(!options.quiet);
  // Records to a file named after the session id in the same folder and renames it when it is
  // complete. If the process is killed, this file can be recovered.
  const fs::path folder = recorded ? outputs.front().parent_path() : ".";
  Sandbox sandbox(installation.worker);
  GenerationQueue queue({.model = options.model,
                         .context = options.context,
                         .data_dir = folder,
                         .self_check_model = installation.bundled_model,
                         .sandbox = &sandbox,
                         .check_model = true},
                        events);
  if (const auto loaded = wait_for_model(queue, line); !loaded) {
    line.clear();
    fail({loaded.error()});
    return was_interrupted() ? 130 : 1;
  }
  if (const std::string warning = queue.load_state().warning; !warning.empty()) {
    line.clear();
    print_message("tt record: {}", warning);
  }
  // Each run evaluates the whole prompt.
  if (options.repeat > 1) options.request.reuse_prefix = false;
  for (const fs::path& output : outputs) {
    const int code = record_one(queue, options, output, events, line);
    if (was_interrupted()) return 130;
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace

RunVerb add_record_command(CLI::App& command) {
  auto options = std::make_shared<RecordOptions>();
  command.option_defaults()->group("Session");
  CLI::Option* prompt =
      command.add_option("-p,--prompt", options->prompt, "Prompt text")->check(utf8_text());
  CLI::Option* file = command.add_option("-f,--file", options->prompt_file,
                                         "File to read the prompt from; -: stdin");
  CLI::Option* tokens =
      command.add_option("--tokens", options->tokens, "Prompt as token ids, such as 1,2,3")
          ->delimiter(',')
          ->check(whole_number(kTokenBounds));
  prompt->excludes(file)->excludes(tokens);
  file->excludes(tokens);
  command.add_flag("--chat", options->chat, "Apply the model's chat template to the prompt")
      ->excludes(tokens);
  command
      .add_option("-o,--output", options->output,
                  "Session file to write (.ttrace); required, except with --level off")
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file");
  constexpr double kMaxRepeat = 1000;
  command
      .add_option("--repeat", options->repeat,
                  "Run the request this many times; -o is a folder, with a session file for each "
                  "run. tt compare compares two such folders, tt sql reads all of one")
      ->check(whole_number({"repeat", 1, kMaxRepeat}))
      ->type_name("N");
  GenerationRequest& request = options->request;
  const std::map<std::string, Level> levels = {{"off", Level::Off},
                                               {"minimal", Level::Minimal},
                                               {"detailed", Level::Detailed},
                                               {"verbose", Level::Verbose}};
  command
      .add_option("--level", request.level,
                  "Recording level: off, minimal (steps and tokens), detailed (every op; "
                  "default) or verbose (adds value statistics)")
      ->transform(choice(levels))
      ->type_name("LEVEL");
  command.add_flag("--exact", request.exact_timing,
                   "Time each op exactly, with a synchronisation after it (slower)");
  command.add_flag("--minor-faults", request.minor_faults,
                   "Record each minor page fault, too, with its op and tensor (slower where there "
                   "are many)");
  command
      .add_option("--residency-interval", request.residency_interval_ms,
                  "Record which parts of the model files are in memory, before steps: at most once "
                  "in this many milliseconds; 0: before every step")
      ->check(whole_number(bounds_of("residency_interval_ms")))
      ->type_name("MS");
  command
      .add_option("--stats-pattern", request.stats_pattern,
                  "Regular expression for the names of the op outputs whose value statistics are "
                  "recorded (--level verbose), without back references and lookaheads; empty: none")
      ->capture_default_str()
      ->check(utf8_text());
  command
      .add_option_function<std::string>(
          "--capture", [&request](const std::string& text) { request.capture.push_back(text); },
          "Record the values of op outputs: a regular expression for their names, then which "
          "layers, tokens and steps, from 0 (default: all), such as l_out@L0-3, "
          "'ffn_out|attn_out@L2@S1-' or result_output@T5; @I..: these inputs of the ops instead, "
          "@RN: only the last N rows, @KN: only the N largest values of each row, @F16: as f16; "
          "`attention`: the attention weights, also with flash attention; `lens`: what the model "
          "would say after each layer; `router`: by what a mixture of experts chooses them; may be "
          "repeated. A step has all its tokens, also with @T")
      ->trigger_on_parse()
      ->check(utf8_text())
      ->type_name("PATTERN[@L..][@T..][@S..][@I..][@RN][@KN][@F16]");
  command
      .add_option("--capture-bytes", request.capture_bytes,
                  "Values of --capture to record at most, of 4 bytes each, with @F16 of 2; the "
                  "outputs that do not fit are counted")
      ->transform(size_in_bytes())
      ->default_str("256MiB")
      ->type_name("SIZE");
  command.add_flag("-q,--quiet", options->quiet, "Do not show progress or a summary");
  command.add_flag("--verbose", options->verbose, "Show the messages of llama.cpp");

  command.option_defaults()->group("Sampling");
  command
      .add_option("-n,--n-predict,--predict", request.max_tokens,
                  "Maximum number of tokens to generate")
      ->check(whole_number(bounds_of("max_tokens")))
      ->capture_default_str();
  Sampling& sampling = request.sampling;
  for (const SamplingField& field : kSamplingFields) {
    std::visit(
        [&](auto member) {
          constexpr bool kWhole = std::is_same_v<decltype(member), std::int32_t Sampling::*>;
          command.add_option(std::string(field.option), sampling.*member, std::string(field.help))
              ->check(kWhole ? whole_number(field.bounds()) : number(field.bounds()))
              ->capture_default_str();
        },
        field.member);
  }
  command
      .add_option_function<std::string>(
          "--samplers",
          [&sampling](const std::string& list) { sampling.samplers = *parse_samplers(list); },
          "Samplers in the order in which they are applied, separated by ';'")
      ->default_str(samplers_text(sampling.samplers))
      ->check([](const std::string& list) {
        const auto parsed = parse_samplers(list);
        return parsed ? std::string() : parsed.error();
      })
      ->type_name("LIST");
  command
      .add_option_function<std::string>(
          "-l,--logit-bias",
          [&sampling](const std::string& text) {
            sampling.logit_bias.push_back(*parse_logit_bias(text));
          },
          "Change the logit of a token: 15043+1, 15043-1, or 15043-inf to exclude it; may be "
          "repeated")
      ->trigger_on_parse()
      ->check([](const std::string& text) {
        const auto parsed = parse_logit_bias(text);
        return parsed ? std::string() : parsed.error();
      })
      ->type_name("TOKEN(+/-)BIAS");
  // The first one replaces the default list, as in llama.cpp.
  command
      .add_option_function<std::string>(
          "--dry-sequence-breaker",
          [options, first = true](const std::string& text) mutable {
            auto& breakers = options->request.sampling.dry_sequence_breakers;
            if (std::exchange(first, false)) breakers.clear();
            if (text != "none") breakers.push_back(text);
          },
          "DRY: text over which sequences do not continue; may be repeated; none: no text. "
          "Default: newline, colon, quotation mark, asterisk")
      ->trigger_on_parse()
      ->check(utf8_text())
      ->check([](const std::string& text) {
        return text.empty() || text.size() > kMaxBreakerBytes
                   ? std::format("must have 1 to {} bytes", kMaxBreakerBytes)
                   : std::string();
      })
      ->type_name("TEXT");
  command
      .add_option_function<std::int64_t>(
          "-s,--seed",
          [&sampling](std::int64_t seed) { sampling.seed = static_cast<std::uint32_t>(seed); },
          "Random seed (default: random, also with -1; the session records it)")
      ->check(whole_number(bounds_of("seed")));
  command.add_option("--grammar", sampling.grammar, "GBNF grammar that constrains the answer")
      ->check(utf8_text());
  // Added one at a time, because CLI11 would split "[a,b]" into two values of a vector.
  command
      .add_option_function<std::string>(
          "--stop", [options](const std::string& text) { options->request.stop.push_back(text); },
          "Text that ends the answer (not included); may be repeated")
      ->trigger_on_parse()
      ->check(utf8_text())
      ->check([](const std::string& text) {
        return text.empty() ? std::string("must not be empty") : std::string();
      });
  command.add_flag("--ignore-eos", request.ignore_eos, "Never choose a token that ends the answer");

  command.option_defaults()->group("Model");
  add_model_options(command, options->model);
  command.get_option("--chat-template-file")->each([options](const std::string& path) {
    options->chat_template_file = path;
  });
  command.option_defaults()->group("Context");
  add_context_options(command, options->context);
  command.footer(
      "Example: tt record -m model.gguf -p 'Why is the sky blue?' --chat -n 64 -o s.ttrace\n"
      "tt record -m model.gguf -p 'Why is the sky blue?' --chat -n 64 --repeat 6 -o runs/a");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
