// tt debug MODEL: runs prompts op by op, with commands as in gdb (docs/debug.md).
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "api/text/shape_text.h"
#include "cli/commands/run_events.h"
#include "cli/commands/scratch_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/array_text.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/status_line.h"
#include "program/installation.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "tracer/debug/debugger.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/generation_queue.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/request/request_bounds.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"
#include "tracer/text/parse_number.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

struct CommandOptions {
  std::optional<fs::path> model_file;
  ModelOptions model;
  ContextOptions context;
  GenerationRequest request;
  fs::path commands, output;
  bool chat = false, force = false;
};

std::string dimensions_text(const std::array<std::uint64_t, 4>& ne) {
  std::array<std::int64_t, 4> shape{};
  std::ranges::transform(ne, shape.begin(),
                         [](std::uint64_t n) { return static_cast<std::int64_t>(n); });
  return shape_text(shape);
}

std::string statistics_text(const OutputStatistics& of) {
  std::string text = std::format("min {:.6g}, max {:.6g}, mean {:.6g}, std {:.6g}, norm {:.6g}",
                                 of.min, of.max, of.mean, of.std, of.norm);
  if (of.nan > 0) text += std::format(", {} NaN", of.nan);
  if (of.inf > 0) text += std::format(", {} Inf", of.inf);
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const auto first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// Executes commands, one after another, until the input or the session ends.
class Console {
 public:
  // `folder`: where `queue` writes sessions. Only that of the last run is kept.
  Console(GenerationQueue& queue, RunEvents& events, const CommandOptions& options,
          const fs::path& folder)
      : queue_(queue), events_(events), options_(options), folder_(folder) {}

  // An error is a sentence about the command. True: go on; false: the session ends.
  std::expected<bool, std::string> execute(std::string_view line);
  // Ends a run that is still stopped.
  void close();
  const fs::path& last_session() const { return last_session_; }  // empty: no run has ended

 private:
  using Done = std::expected<void, std::string>;
  struct Command {
    std::string_view name, arguments, help;
    Done (Console::*run)(std::string_view arguments);  // null: ends the session
  };
  static std::span<const Command> commands();

  Done run_prompt(std::string_view prompt);
  Done start(std::string_view prompt);
  Done set_break(std::string_view text);
  Done watch(std::string_view text);
  Done remove(std::string_view number);
  Done info(std::string_view what);
  Done step(std::string_view how);
  Done go_on(std::string_view none);
  Done print(std::string_view what);
  Done where(std::string_view none);
  Done change(const std::string& text);
  Done zero(std::string_view which) { return change(std::format("zero {}", which)); }
  Done scale(std::string_view which) { return change(std::format("scale {}", which)); }
  Done set(std::string_view which) { return change(std::format("set {}", which)); }
  Done kill(std::string_view none);
  Done help(std::string_view none);

  std::expected<void, std::string> begin(std::string_view prompt);
  Done resume(RunUntil until, std::uint32_t count);
  void wait();
  void print_watched();
  void print_stop(const DebugStop& stop);
  void print_end(const JobStatus& status);
  std::unexpected<std::string> no_run() const {
    return std::unexpected(std::string("No run is stopped. Use run PROMPT or start PROMPT."));
  }

  GenerationQueue& queue_;
  RunEvents& events_;
  const CommandOptions& options_;
  std::vector<std::string> breakpoints_;  // of the next run; while one runs, its debugger has them
  std::shared_ptr<Debugger> debugger_;    // null: nothing runs
  std::string id_;
  const fs::path folder_;
  fs::path last_session_;
  std::uint64_t seen_stop_ = 0, next_watched_ = 0;  // of this run
};

// A name may be abbreviated: the first one that begins with it is meant.
std::span<const Console::Command> Console::commands() {
  static constexpr std::array kCommands = {
      Command{"run", "PROMPT", "run the model on a prompt, until a breakpoint or the end",
              &Console::run_prompt},
      Command{"break", "WHERE [if CONDITION]",
              "stop at ops: break l_out layer 3; break op MUL_MAT token 5; break if nan; break "
              "before op SOFT_MAX; break ffn_out if norm > 100; break expert 2",
              &Console::set_break},
      Command{"step", "[op|layer|token] [N]",
              "go on to the next op (default), to another layer, or to the next token (step)",
              &Console::step},
      Command{"next", "[op|layer|token] [N]", "as step", &Console::step},
      Command{"continue", "", "go on until a breakpoint or the end", &Console::go_on},
      Command{"print", "[TENSOR][[ROWS]]",
              "the values of the output, or of a source by name or as src0, src1...: print; print "
              "src1; print Qcur-3[2, 0-63]",
              &Console::print},
      Command{"where", "", "where the run is stopped, and what can be printed", &Console::where},
      Command{"start", "PROMPT", "the same, and stop before the first op", &Console::start},
      Command{"watch", "WHERE [if CONDITION]", "print what such ops compute, without stopping",
              &Console::watch},
      Command{"delete", "N", "delete a breakpoint", &Console::remove},
      Command{"info", "breakpoints|changes", "list the breakpoints, or what was changed",
              &Console::info},
      Command{"zero", "[head N|expert N|[INDICES]]", "set the output, or a part of it, to 0",
              &Console::zero},
      Command{"scale", "[head N|expert N|[INDICES]] NUMBER", "multiply it", &Console::scale},
      Command{"set", "[head N|expert N|[INDICES]] NUMBER", "set it to a number", &Console::set},
      Command{"kill", "", "end the run", &Console::kill},
      Command{"help", "", "list the commands", &Console::help},
      Command{"quit", "", "end the run and the program", nullptr},
  };
  return kCommands;
}

std::expected<bool, std::string> Console::execute(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.starts_with('#')) return true;
  const std::size_t end = std::min(line.find_first_of(" \t["), line.size());
  const std::string_view name = line.substr(0, end);
  const auto found = std::ranges::find_if(
      commands(), [&](const Command& command) { return command.name.starts_with(name); });
  if (found == commands().end()) {
    std::vector<std::string> names;
    for (const Command& command : commands()) names.emplace_back(command.name);
    return std::unexpected(unknown_name("command", name, names));
  }
  if (found->run == nullptr) return false;
  return (this->*found->run)(trimmed(line.substr(end))).transform([] { return true; });
}

// ---------------------------------------------------------------- running

std::expected<void, std::string> Console::begin(std::string_view prompt) {
  if (debugger_ != nullptr)
    return std::unexpected("A run is stopped. Use continue, or kill to end it.");
  if (prompt.empty()) return std::unexpected("A prompt is needed, such as run Once upon a time.");
  GenerationRequest request = options_.request;
  if (options_.chat)
    request.prompt = std::vector<ChatMessage>{{.role = "user", .content = std::string(prompt)}};
  else
    request.prompt = std::string(prompt);
  request.reuse_prefix = false;  // so that every token of the prompt is evaluated
  request.debug =
      DebugOptions{.breakpoints = breakpoints_, .stop_at_first_op = true, .hold_ms = std::nullopt};
  events_.begin();
  const auto job = queue_.submit(std::move(request));
  if (!job) return std::unexpected(job.error().message);
  id_ = job->id;
  // It waits at the first op, so it cannot have ended.
  debugger_ = queue_.debugger(id_);
  seen_stop_ = next_watched_ = 0;
  while (!debugger_->stop()) {
    if (events_.update().ended) break;
    if (was_interrupted()) queue_.cancel(id_);
  }
  return {};
}

Console::Done Console::run_prompt(std::string_view prompt) {
  if (auto begun = begin(prompt); !begun) return begun;
  // A breakpoint may be at the first op.
  if (const auto first = debugger_->stop(); first && first->breakpoints.empty()) {
    seen_stop_ = first->number;
    debugger_->resume(RunUntil::Breakpoint);
  }
  wait();
  return {};
}

Console::Done Console::start(std::string_view prompt) {
  if (auto begun = begin(prompt); !begun) return begun;
  wait();
  return {};
}

// Until the run is stopped or has ended.
void Console::wait() {
  bool in_text = false;
  for (;;) {
    if (was_interrupted()) queue_.cancel(id_);
    // Before the events: what they contain was queued before the stop.
    const auto stop = debugger_->stop();
    const RunEvents::Update update = events_.update();
    print_watched();
    if (!update.text.empty()) {
      put(update.text);
      in_text = true;
    }
    const bool stopped = stop && stop->number > seen_stop_;
    if (!stopped && !update.ended) continue;
    if (in_text) put("\n");
    if (stopped) {
      seen_stop_ = stop->number;
      print_stop(*stop);
    } else {
      print_end(*update.ended);
    }
    return flush_output();
  }
}

void Console::print_watched() {
  const WatchedPage watched = debugger_->watched(next_watched_, Debugger::kMaxWatched);
  if (watched.first > next_watched_)
    print_line("{} outputs that were watched are missing", watched.first - next_watched_);
  for (const WatchedOutput& of : watched.rows) {
    print_line("watch {}: {}: {}", of.breakpoint, to_text(of.place),
               of.statistics ? statistics_text(*of.statistics) : "not numbers");
  }
  next_watched_ = watched.first + watched.rows.size();
}

void Console::print_stop(const DebugStop& stop) {
  const std::string why =
      stop.breakpoints.empty() ? "" : std::format("breakpoint {}, ", join(stop.breakpoints));
  print_line("{}{}{} = {} {}", why, stop.is_before ? "before " : "", to_text(stop.place),
             dimensions_text(stop.tensors.front().ne), stop.tensors.front().type);
}

void Console::print_end(const JobStatus& status) {
  print_line("ended ({}): {}, {} generated, {}{}", to_text(status.stop_reason),
             counted(status.prompt_tokens, "prompt token"), status.generated,
             counted(status.steps, "step"),
             status.error.empty() ? "" : std::format(". {}", status.error));
  breakpoints_.clear();
  for (const NumberedBreakpoint& each : debugger_->breakpoints()) breakpoints_.push_back(each.text);
  debugger_.reset();
  if (std::error_code ignored; !last_session_.empty()) fs::remove(last_session_, ignored);
  last_session_ = folder_ / (id_ + ".ttrace");
}

Console::Done Console::resume(RunUntil until, std::uint32_t count) {
  if (debugger_ == nullptr || !debugger_->resume(until, count)) return no_run();
  wait();
  return {};
}

Console::Done Console::go_on(std::string_view) { return resume(RunUntil::Breakpoint, 1); }

Console::Done Console::step(std::string_view how) {
  constexpr std::array<std::pair<std::string_view, RunUntil>, 3> kWords = {
      {{"op", RunUntil::Op}, {"layer", RunUntil::Layer}, {"token", RunUntil::Step}}};
  const std::size_t space = std::min(how.find(' '), how.size());
  const auto word =
      std::ranges::find(kWords, how.substr(0, space), [](auto& of) { return of.first; });
  const std::string_view number = word == kWords.end() ? how : trimmed(how.substr(space));
  const auto count =
      number.empty() ? std::optional<std::uint32_t>(1) : parse_number<std::uint32_t>(number);
  if (!count || *count == 0)
    return std::unexpected(
        std::format("\"step {}\" is not a step. Use step [op|layer|token] [N].", how));
  return resume(word == kWords.end() ? RunUntil::Op : word->second, *count);
}

Console::Done Console::kill(std::string_view) {
  if (debugger_ == nullptr) return no_run();
  queue_.cancel(id_);
  wait();
  return {};
}

void Console::close() {
  if (debugger_ != nullptr) (void)kill({});
}

// ---------------------------------------------------------------- breakpoints

Console::Done Console::set_break(std::string_view text) {
  const std::string where(text);
  std::uint32_t number = 0;
  if (debugger_ != nullptr) {
    const auto added = debugger_->add(where);
    if (!added) return std::unexpected(added.error());
    number = *added;
  } else {
    std::vector<std::string> all = breakpoints_;
    all.push_back(where);
    if (const auto parsed = parse_breakpoints(all); !parsed) return std::unexpected(parsed.error());
    breakpoints_ = std::move(all);
    number = static_cast<std::uint32_t>(breakpoints_.size());
  }
  print_line("breakpoint {}: {}", number, where);
  return {};
}

Console::Done Console::watch(std::string_view text) {
  return set_break(std::format("watch {}", text));
}

Console::Done Console::remove(std::string_view text) {
  const auto number = parse_number<std::uint32_t>(text);
  bool removed = false;
  if (number && debugger_ != nullptr) {
    removed = debugger_->remove(*number);
  } else if (number && *number > 0 && *number <= breakpoints_.size()) {
    breakpoints_.erase(breakpoints_.begin() + *number - 1);
    removed = true;
  }
  if (removed) return {};
  return std::unexpected(
      std::format("There is no breakpoint \"{}\". info breakpoints lists them.", text));
}

Console::Done Console::info(std::string_view what) {
  if (what == "changes") {
    if (debugger_ == nullptr) return no_run();
    for (const MadeChange& made : debugger_->changes())
      print_line("{}: {} ({})", to_text(made.place), made.text, counted(made.elements, "element"));
    return {};
  }
  if (!std::string_view("breakpoints").starts_with(what))
    return std::unexpected("Use info breakpoints or info changes.");
  if (debugger_ != nullptr) {
    for (const NumberedBreakpoint& each : debugger_->breakpoints())
      print_line("{}: {} ({})", each.number, each.text, counted(each.hits, "time"));
  } else {
    for (std::size_t i = 0; i < breakpoints_.size(); ++i)
      print_line("{}: {}", i + 1, breakpoints_[i]);
  }
  return {};
}

// ---------------------------------------------------------------- a stop

Console::Done Console::print(std::string_view what) {
  if (debugger_ == nullptr) return no_run();
  Selection selection;
  if (what.ends_with(']')) {
    const std::size_t open = what.rfind('[');
    if (open == what.npos) return std::unexpected("A [ is missing.");
    auto parsed = Selection::parse(what.substr(open + 1, what.size() - open - 2));
    if (!parsed) return std::unexpected(parsed.error());
    selection = *std::move(parsed);
    what = trimmed(what.substr(0, open));
  }
  const auto read = debugger_->read(what, selection);
  if (!read) return std::unexpected(read.error());
  print_line("{} = {}: {}", what.empty() ? "output" : what, dimensions_text(read->ne),
             statistics_text(read->statistics));
  put(array_text(read->ne, read->values));
  return {};
}

Console::Done Console::where(std::string_view) {
  const auto stop = debugger_ == nullptr ? std::nullopt : debugger_->stop();
  if (!stop) return no_run();
  print_stop(*stop);
  const std::uint32_t first = stop->place.first_token, n = stop->place.n_tokens;
  if (n == 1)
    print_line("token {} of the session", first);
  else
    print_line("tokens {} to {} of the session", first, first + n - 1);
  for (const StoppedTensor& of : stop->tensors) {
    print_line("  {:<7} {} = {} {}{}", of.label, of.name, dimensions_text(of.ne), of.type,
               of.unreadable.empty() ? "" : std::format(" ({})", of.unreadable));
  }
  return {};
}

Console::Done Console::change(const std::string& text) {
  if (debugger_ == nullptr) return no_run();
  const auto change = Change::parse(std::string(trimmed(text)));
  if (!change) return std::unexpected(change.error());
  const auto made = debugger_->change(*change);
  if (!made) return std::unexpected(made.error());
  print_line("{} of {} changed", counted(made->elements, "element"), made->place.name);
  return {};
}

Console::Done Console::help(std::string_view) {
  for (const Command& command : commands()) {
    print_line("{}{}{}\n    {}", command.name, command.arguments.empty() ? "" : " ",
               command.arguments, command.help);
  }
  return {};
}

// ---------------------------------------------------------------- the verb

int report_error(std::string_view message, int exit_code = 1) {
  print_message("tt debug: {}", message);
  return exit_code;
}

// Reads commands from a person, or from a script, which ends at its first error.
int read_commands(std::istream& input, bool is_script, Console& console) {
  for (std::size_t number = 1; !was_interrupted(); ++number) {
    if (!is_script) {
      put("(tt) ");
      flush_output();
    }
    std::string line;
    if (!std::getline(input, line)) break;
    const auto done = console.execute(line);
    if (done && !*done) break;
    flush_output();
    if (done) continue;
    if (is_script) return report_error(std::format("line {}: {}", number, done.error()));
    print_line("{}", done.error());
  }
  return was_interrupted() ? 130 : 0;
}

int run(CommandOptions& options) {
  const Installation installation = current_installation();
  if (options.model_file) options.model.path = *options.model_file;
  if (options.model.path.empty()) options.model.path = installation.bundled_model;
  fs::path output;
  if (!options.output.empty()) {
    std::vector<fs::path> inputs = {options.model.path};
    if (const auto index = GgufIndex::open(options.model.path))
      for (const ModelFile& part : index->files()) inputs.emplace_back(part.path);
    if (!options.commands.empty()) inputs.push_back(options.commands);
    auto path = output_path(options.output, Target::File, inputs, options.force);
    if (!path) return report_error(path.error());
    output = *std::move(path);
  }
  std::ifstream file;
  if (!options.commands.empty()) {
    file.open(options.commands);
    if (!file) return report_error(std::format("{} cannot be read", options.commands.string()));
  }
  const InterruptGuard guard;
  load_backends([](LibraryLine, std::string_view) {});
  RunEvents events;
  StatusLine line(true);
  const ScratchFolder scratch("tt-debug");
  if (scratch.path().empty()) return report_error(ScratchFolder::error());
  const fs::path folder = output.empty() ? scratch.path() : output.parent_path();
  Sandbox sandbox(installation.worker);
  GenerationQueue queue({.model = options.model,
                         .context = options.context,
                         .data_dir = folder,
                         .self_check_model = installation.bundled_model,
                         .sandbox = &sandbox,
                         .check_model = true},
                        events);
  const auto loaded = wait_for_model(queue, line);
  line.clear();
  if (!loaded) return report_error(loaded.error(), was_interrupted() ? 130 : 1);
  if (const std::string warning = queue.load_state().warning; !warning.empty())
    print_message("tt debug: {}", warning);
  Console console(queue, events, options, folder);
  const bool is_script = !options.commands.empty() || ::isatty(STDIN_FILENO) != 1;
  const int code = read_commands(options.commands.empty() ? std::cin : file, is_script, console);
  console.close();
  queue.stop();
  if (output.empty() || console.last_session().empty()) return code;
  if (const auto failed = replace_session(console.last_session(), output))
    return report_error(std::format("{}: {}", options.output.string(), failed.message()));
  return code;
}

}  // namespace

RunVerb add_debug_command(CLI::App& command) {
  auto options = std::make_shared<CommandOptions>();
  options->request.max_tokens = 16;
  options->request.sampling.temperature = 0;  // so that a run can be repeated
  command.option_defaults()->group("Session");
  command.add_option("model_file", options->model_file, "Model (GGUF); instead of --model")
      ->type_name("FILE");
  command
      .add_option("-x,--commands", options->commands,
                  "File with commands, one per line; without it, they are read from standard input")
      ->check(file_name())
      ->type_name("FILE");
  command.add_option("-o,--output", options->output, "Write the session of the last run (.ttrace)")
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("--chat", options->chat, "Apply the model's chat template to prompts");
  command
      .add_option("-n,--n-predict", options->request.max_tokens,
                  "Maximum number of tokens to generate")
      ->check(whole_number(bounds_of("max_tokens")))
      ->capture_default_str();
  command.add_flag("--ignore-eos", options->request.ignore_eos,
                   "Never choose a token that ends the answer");
  command.option_defaults()->group("Model");
  add_model_options(command, options->model);
  command.option_defaults()->group("Context");
  add_context_options(command, options->context);
  command.footer(
      "Example: tt debug model.gguf\n"
      "         printf 'break l_out layer 3\\nrun Once upon a time\\nprint\\n' | tt debug "
      "model.gguf\n"
      "The command help lists the commands.");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
