#include "cli/commands/debug_console.h"

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/common/format_units.h"
#include "api/text/shape_text.h"
#include "cli/terminal/array_text.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"
#include "tracer/text/parse_number.h"

namespace tt::cli {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

// A name may be abbreviated: the first one that begins with it is meant.
std::span<const DebugConsole::Command> DebugConsole::commands() {
  static constexpr std::array kCommands = {
      Command{"run", "PROMPT", "run the model on a prompt, until a breakpoint or the end",
              &DebugConsole::run_prompt},
      Command{"break", "WHERE [if CONDITION]",
              "stop at ops: break l_out layer 3; break op MUL_MAT token 5; break if nan; break "
              "before op SOFT_MAX; break ffn_out if norm > 100; break expert 2",
              &DebugConsole::set_break},
      Command{"step", "[op|layer|token] [N]",
              "go on to the next op (default), to another layer, or to the next token (step)",
              &DebugConsole::step},
      Command{"next", "[op|layer|token] [N]", "as step", &DebugConsole::step},
      Command{"continue", "", "go on until a breakpoint or the end", &DebugConsole::go_on},
      Command{"print", "[TENSOR][[ROWS]]",
              "the values of the output, or of a source by name or as src0, src1...: print; print "
              "src1; print Qcur-3[2, 0-63]",
              &DebugConsole::print},
      Command{"where", "", "where the run is stopped, and what can be printed",
              &DebugConsole::where},
      Command{"start", "PROMPT", "the same, and stop before the first op", &DebugConsole::start},
      Command{"watch", "WHERE [if CONDITION]", "print what such ops compute, without stopping",
              &DebugConsole::watch},
      Command{"delete", "N", "delete a breakpoint", &DebugConsole::remove},
      Command{"info", "breakpoints|changes", "list the breakpoints, or what was changed",
              &DebugConsole::info},
      Command{"zero", "[head N|expert N|[INDICES]]", "set the output, or a part of it, to 0",
              &DebugConsole::zero},
      Command{"scale", "[head N|expert N|[INDICES]] NUMBER", "multiply it", &DebugConsole::scale},
      Command{"set", "[head N|expert N|[INDICES]] NUMBER", "set it to a number",
              &DebugConsole::set},
      Command{"kill", "", "end the run", &DebugConsole::kill},
      Command{"keep", "zero|scale|set ...",
              "change the output, and that of the same op in all later steps: keep zero head 3",
              &DebugConsole::keep},
      Command{"release", "N", "end a kept change; info changes lists them", &DebugConsole::release},
      Command{"help", "", "list the commands", &DebugConsole::help},
      Command{"quit", "", "end the run and the program", nullptr},
  };
  return kCommands;
}

std::expected<bool, std::string> DebugConsole::execute(std::string_view line) {
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

std::expected<void, std::string> DebugConsole::begin(std::string_view prompt) {
  if (debugger_ != nullptr)
    return std::unexpected("A run is stopped. Use continue, or kill to end it.");
  if (prompt.empty()) return std::unexpected("A prompt is needed, such as run Once upon a time.");
  GenerationRequest request = request_;
  if (chat_)
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

DebugConsole::Done DebugConsole::run_prompt(std::string_view prompt) {
  if (auto begun = begin(prompt); !begun) return begun;
  // A breakpoint may be at the first op.
  if (const auto first = debugger_->stop(); first && first->breakpoints.empty()) {
    seen_stop_ = first->number;
    debugger_->resume(RunUntil::Breakpoint);
  }
  wait();
  return {};
}

DebugConsole::Done DebugConsole::start(std::string_view prompt) {
  if (auto begun = begin(prompt); !begun) return begun;
  wait();
  return {};
}

// Until the run is stopped or has ended.
void DebugConsole::wait() {
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

void DebugConsole::print_watched() {
  const WatchedPage watched = debugger_->watched(next_watched_, Debugger::kMaxWatched);
  if (watched.first > next_watched_)
    print_line("{} outputs that were watched are missing", watched.first - next_watched_);
  for (const WatchedOutput& of : watched.rows) {
    print_line("watch {}: {}: {}", of.breakpoint, to_text(of.place),
               of.statistics ? statistics_text(*of.statistics) : "not numbers");
  }
  next_watched_ = watched.first + watched.rows.size();
}

void DebugConsole::print_stop(const DebugStop& stop) {
  const std::string why =
      stop.breakpoints.empty() ? "" : std::format("breakpoint {}, ", join(stop.breakpoints));
  print_line("{}{}{} = {} {}", why, stop.is_before ? "before " : "", to_text(stop.place),
             dimensions_text(stop.tensors.front().ne), stop.tensors.front().type);
}

void DebugConsole::print_end(const JobStatus& status) {
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

DebugConsole::Done DebugConsole::resume(RunUntil until, std::uint32_t count) {
  if (debugger_ == nullptr || !debugger_->resume(until, count)) return no_run();
  wait();
  return {};
}

DebugConsole::Done DebugConsole::go_on(std::string_view) { return resume(RunUntil::Breakpoint, 1); }

DebugConsole::Done DebugConsole::step(std::string_view how) {
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

DebugConsole::Done DebugConsole::kill(std::string_view) {
  if (debugger_ == nullptr) return no_run();
  queue_.cancel(id_);
  wait();
  return {};
}

void DebugConsole::close() {
  if (debugger_ != nullptr) (void)kill({});
}

// ---------------------------------------------------------------- breakpoints

DebugConsole::Done DebugConsole::set_break(std::string_view text) {
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

DebugConsole::Done DebugConsole::watch(std::string_view text) {
  return set_break(std::format("watch {}", text));
}

DebugConsole::Done DebugConsole::remove(std::string_view text) {
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

DebugConsole::Done DebugConsole::info(std::string_view what) {
  if (what == "changes") {
    if (debugger_ == nullptr) return no_run();
    for (const MadeChange& made : debugger_->changes()) print_line("{}", to_text(made));
    for (const KeptChange& kept : debugger_->kept()) {
      print_line(
          "kept {}: {} from {} on, made in {}{}", kept.number, kept.text, to_text(kept.place),
          counted(kept.steps, "step"),
          kept.problem.empty() ? "" : std::format(". Not in the last one: {}", kept.problem));
    }
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

DebugConsole::Done DebugConsole::print(std::string_view what) {
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

DebugConsole::Done DebugConsole::where(std::string_view) {
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

DebugConsole::Done DebugConsole::release(std::string_view text) {
  if (debugger_ == nullptr) return no_run();
  const auto number = parse_number<std::uint32_t>(text);
  if (number && debugger_->release(*number)) return {};
  return std::unexpected(
      std::format("There is no kept change \"{}\". info changes lists them.", text));
}

DebugConsole::Done DebugConsole::change(const std::string& text, bool keep) {
  if (debugger_ == nullptr) return no_run();
  const auto change = Change::parse(std::string(trimmed(text)));
  if (!change) return std::unexpected(change.error());
  const auto made = debugger_->change(*change, keep);
  if (!made) return std::unexpected(made.error());
  print_line("{} of {} changed{}", counted(made->elements, "element"), made->place.name,
             keep ? std::format(", kept as {}", made->kept) : "");
  return {};
}

DebugConsole::Done DebugConsole::help(std::string_view) {
  for (const Command& command : commands()) {
    print_line("{}{}{}\n    {}", command.name, command.arguments.empty() ? "" : " ",
               command.arguments, command.help);
  }
  return {};
}

}  // namespace tt::cli
