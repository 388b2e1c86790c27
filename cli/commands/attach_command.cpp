// tt attach -- COMMAND: runs a program that uses llama.cpp and records what it evaluates.
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "api/json/server_json.h"
#include "attach/collector/collector.h"
#include "attach/collector/live_server.h"
#include "attach/collector/preload_check.h"
#include "attach/collector/program.h"
#include "cli/commands/verbs.h"
#include "cli/terminal/standard_output.h"
#include "program/installation.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "tracer/text/parse_number.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

struct AttachOptions {
  std::string output = ".";
  std::vector<std::string> command;
  std::uint64_t ring_mib = 64;
  std::optional<std::uint16_t> live;  // port
  std::optional<std::uint64_t> keep_bytes, keep_sessions;
  std::optional<std::uint32_t> requests;
  std::optional<std::int64_t> slower_than_ns;  // per token
  bool check = false, ollama = false, paused = false, per_request = false, quiet = false;
  bool exact = false;  // ops on devices
};

constexpr int kShortestIdleMs = 5, kLongestIdleMs = 50;  // between two looks at the rings

void say(const std::string& text) { print_message("tt attach: {}", text); }

void print_losses(const attach::EndedSession& session) {
  if (!session.error.empty()) say(session.error);
  const LossCounters& losses = session.losses;
  if (losses != LossCounters{})
    print_message(
        "lost: times of {} steps, {} slot values, {} steps with a wrong op count, {} steps "
        "not written, {} page faults",
        losses.steps_without_times, losses.slot_values_dropped, losses.count_mismatches,
        losses.steps_not_written, losses.page_faults_lost);
}

std::string origin_of(const attach::RecordedContext& context) {
  return std::format("model {} (process {}, context {})",
                     context.model.empty() ? "not found" : context.model, context.pid,
                     context.context);
}

// The session of the whole context.
void print_session(const attach::RecordedContext& context) {
  for (const attach::EndedSession& session : context.sessions) {
    if (session.file.empty()) continue;
    print_message("{}: {}, {}, {} generated, {}", session.file.string(),
                  counted(session.steps, "step"), counted(session.tokens, "token"),
                  session.generated, origin_of(context));
    print_losses(session);
  }
}

// Those of its requests, which can be many: one line, and one for each error.
void print_requests(const fs::path& folder, const attach::RecordedContext& context) {
  std::uint64_t sessions = 0, requests = 0, steps = 0, tokens = 0, generated = 0;
  for (const attach::EndedSession& session : context.sessions) {
    if (session.file.empty()) continue;
    ++sessions;
    requests += session.requests;
    steps += session.steps;
    tokens += session.tokens;
    generated += session.generated;
  }
  if (sessions == 0) return;
  print_message("{}-*.ttrace: {}{}, {}, {}, {} generated, {}", (folder / context.name).string(),
                counted(sessions, "session"),
                requests > 0 ? " of " + counted(requests, "request") : "", counted(steps, "step"),
                counted(tokens, "token"), generated, origin_of(context));
  std::set<std::string> errors;
  for (const attach::EndedSession& session : context.sessions)
    if (!session.file.empty() && errors.insert(session.error).second) print_losses(session);
}

bool has_file(const attach::RecordedContext& context) {
  return std::ranges::any_of(context.sessions,
                             [](const attach::EndedSession& one) { return !one.file.empty(); });
}

// "slower-than 200ms/token", in nanoseconds.
std::optional<std::int64_t> parse_rule(std::string_view text) {
  constexpr std::string_view kBegin = "slower-than ", kEnd = "/token";
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) return std::nullopt;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(kEnd.size());
  const std::size_t unit_at = std::min(text.size(), text.find_first_not_of("0123456789."));
  const std::string_view unit = text.substr(unit_at);
  const auto number = parse_number<double>(text.substr(0, unit_at));
  const double ns = unit == "us" || unit == "µs" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  constexpr double kMaxNs = 3600e9;
  if (!number || *number * ns <= 0 || *number * ns > kMaxNs) return std::nullopt;
  return static_cast<std::int64_t>(*number * ns);
}

// A command that makes a request to the program; empty: it is no llama-server.
std::string request_of(const std::vector<std::string>& command) {
  if (fs::path(command.front()).filename() != "llama-server") return {};
  const auto option = [&](const char* name, const char* otherwise) -> std::string {
    const auto at = std::ranges::find(command, name);
    return at == command.end() || at + 1 == command.end() ? otherwise : *(at + 1);
  };
  const std::string host = option("--host", "127.0.0.1");
  return std::format(
      R"(curl http://{}:{}/completion -d '{{"prompt": "Once upon a time", "n_predict": 32}}')",
      host == "0.0.0.0" ? "127.0.0.1" : host, option("--port", "8080"));
}

// What the server of --live knows of the program. Its file is always whole.
void write_program(const fs::path& file, const AttachOptions& options, const std::string& ended) {
  const fs::path fresh = file.string() + ".new";
  std::ofstream(fresh) << text_of(
      to_json(RecordedProgram{.name = fs::path(options.command.front()).filename(),
                              .request = request_of(options.command),
                              .ended = ended}));
  std::error_code none;
  fs::rename(fresh, file, none);
}

// "llama-server ended with status 0. 2 sessions are recorded in /tmp/traces. To see them again:
// ..."
std::string ending_of(const AttachOptions& options, int status,
                      const std::vector<attach::RecordedContext>& contexts) {
  const std::string name = fs::path(options.command.front()).filename();
  std::uint64_t sessions = 0;
  for (const attach::RecordedContext& context : contexts)
    for (const attach::EndedSession& session : context.sessions)
      sessions += fs::exists(session.file) ? 1U : 0U;
  const std::string folder = fs::absolute(options.output).lexically_normal().string();
  return std::format(
      "{} {}. {} recorded in {}.{}", name,
      WIFSIGNALED(status) ? std::format("was ended by signal {} ({})", WTERMSIG(status),
                                        strsignal(WTERMSIG(status)))
                          : std::format("ended with status {}", WEXITSTATUS(status)),
      sessions == 0   ? "Nothing is"
      : sessions == 1 ? "1 session is"
                      : std::format("{} sessions are", sessions),
      folder,
      sessions == 0 ? ""
                    : std::format(" To see {} again: tt-server --no-model --data-dir {}",
                                  sessions == 1 ? "it" : "them", folder));
}

int record(const AttachOptions& options, const Installation& installation) {
  std::error_code failed;
  fs::create_directories(options.output, failed);
  if (!fs::is_directory(options.output)) {
    say(std::format("{}: {}", options.output, failed.message()));
    return 1;
  }
  attach::Collector collector(
      {.output = options.output,
       .command = options.command,
       .machine_folder = default_machine_folder(),
       .per_request = options.per_request,
       .keep = {.bytes = options.keep_bytes, .sessions = options.keep_sessions},
       .requests = options.requests,
       .slower_than_ns = options.slower_than_ns},
      say);
  if (collector.rings().empty()) {
    say("there is no folder for shared memory. Make /dev/shm or $TMPDIR writable.");
    return 1;
  }
  std::optional<attach::LiveServer> page;
  const fs::path about = collector.rings() / "program.json";  // for the server
  if (options.live) {
    auto started =
        attach::LiveServer::start(installation.server, options.output, about, *options.live);
    if (!started) {
      say(started.error());
      return 1;
    }
    say(std::format("the sessions are shown on {}", started->url()));
    page.emplace(*std::move(started));
    write_program(about, options, "");
  }
  auto program = attach::Program::start(options.command,
                                        {.agent = installation.agent,
                                         .rings = collector.rings(),
                                         .ring_bytes = options.ring_mib << 20U,
                                         .paused = options.paused,
                                         .exact = options.exact},
                                        [&](pid_t pid) { collector.watch(pid); });
  if (!program) {
    say(program.error());
    return 127;  // as a shell
  }
  collector.pause(options.paused);
  std::optional<int> status;
  int idle_ms = kShortestIdleMs, toggles = 0;
  while (!status) {
    idle_ms = std::min(2 * idle_ms, kLongestIdleMs);
    while (collector.poll()) idle_ms = kShortestIdleMs;
    status = program->wait(idle_ms);
    const int now = attach::Program::toggles();
    if ((now - std::exchange(toggles, now)) % 2 != 0) {
      collector.pause(!collector.paused());
      say(collector.paused() ? "recording is paused" : "recording");
    }
  }
  const bool killed = WIFSIGNALED(*status);
  const std::string end = killed ? std::format("The program was ended by signal {} ({}).",
                                               WTERMSIG(*status), strsignal(WTERMSIG(*status)))
                                 : std::string();
  const auto contexts = collector.finish(end);
  for (const attach::RecordedContext& context : contexts) {
    if (options.quiet) break;
    if (options.per_request) {
      print_requests(options.output, context);
    } else {
      print_session(context);
    }
  }
  if (options.slower_than_ns && !options.quiet)
    print_message("{} kept, {} not slower than {} per token",
                  counted(collector.requests().kept, "request"), collector.requests().dropped,
                  format_duration(static_cast<double>(*options.slower_than_ns)));
  if (collector.removed() > 0 && !options.quiet)
    print_message("{} removed, to keep the newest", counted(collector.removed(), "session"));
  if (!options.quiet && std::ranges::any_of(contexts, has_file))
    print_message("To see them in the browser: tt-server --no-model --data-dir {}", options.output);
  // A program that failed has said itself what was wrong, perhaps before it could evaluate
  // anything.
  if (!collector.saw_anything() && !killed && WEXITSTATUS(*status) == 0)
    say(
        std::format("{} never called ggml through a shared library. It may link llama.cpp "
                    "statically: tt attach cannot observe it; use a build with "
                    "BUILD_SHARED_LIBS=ON.",
                    options.command.front()));
  if (page && !attach::Program::told_to_end()) {
    write_program(about, options, ending_of(options, *status, contexts));
    say(std::format("the sessions are shown on {} until Ctrl+C", page->url()));
    attach::Program::wait_for_end();
  }
  return killed ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

// What makes systemd start Ollama under tt attach. Its child processes evaluate the models.
void print_ollama(const AttachOptions& options) {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  const std::string folder =
      options.output == "." ? "/usr/share/ollama/traces" : fs::absolute(options.output).string();
  const std::vector<std::string> command =
      options.command.empty() ? std::vector<std::string>{"/usr/local/bin/ollama", "serve"}
                              : options.command;
  put_line("# sudo systemctl edit ollama, add these lines, then: sudo systemctl restart ollama");
  put_line("[Service]");
  put_line("ExecStart=");
  std::string line = std::format("ExecStart={} attach -o {} --", self.string(), folder);
  for (const std::string& word : command) line += " " + word;
  put_line(line);
}

int run(const AttachOptions& options) {
  const Installation installation = current_installation();
  if (options.ollama) {
    print_ollama(options);
    return 0;
  }
  if (options.command.empty()) {
    say("a program is required: tt attach -- llama-server -m model.gguf");
    return 2;
  }
  const attach::PreloadCheck check =
      attach::check_preload(options.command.front(), installation.agent);
  if (options.check) {
    put_line(check.message);
    return check.possible ? 0 : 1;
  }
  if (!check.possible) {
    say(check.message);
    return 1;
  }
  return record(options, installation);
}

}  // namespace

RunVerb add_attach_command(CLI::App& command) {
  auto options = std::make_shared<AttachOptions>();
  command
      .add_option("command", options->command,
                  "Program and its arguments, after --; such as: -- llama-server -m model.gguf")
      ->type_name("COMMAND");
  command
      .add_option("-o,--output", options->output,
                  "Folder for the sessions (.ttrace): one per context of the program, or per "
                  "request")
      ->capture_default_str()
      ->type_name("DIR");
  command
      .add_option("--ring", options->ring_mib,
                  "Size of the shared memory in which a process of the program keeps steps until "
                  "they are written, in MiB")
      ->check(whole_number(1, 1024))
      ->capture_default_str()
      ->type_name("MIB");
  command.add_flag(
      "--exact", options->exact,
      "Also time each op on a device, such as a GPU: the graph is split after each op, "
      "which is slower. Otherwise the parts of the graph that run on it are timed");
  command.add_flag("--check", options->check,
                   "Only say whether the program can be traced, and what to do if not");
  command.add_flag("--ollama", options->ollama,
                   "Print the lines that make the service of Ollama record its models");
  command.add_flag("--per-request", options->per_request,
                   "A session per request of a server, and one for requests that are evaluated at "
                   "the same time, without the warm-up");
  command
      .add_option(
          "--keep-bytes", options->keep_bytes,
          "Remove the oldest sessions of requests in the folder when the size of all exceeds "
          "this, such as 2GiB. Implies --per-request")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  command
      .add_option(
          "--keep-sessions", options->keep_sessions,
          "Remove the oldest sessions of requests in the folder when there are more. Implies "
          "--per-request")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command
      .add_option("--requests", options->requests,
                  "Pause recording after this number of requests were kept. Implies --per-request")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--when",
          [options](const std::string& rule) {
            options->slower_than_ns = parse_rule(rule);
            if (!options->slower_than_ns)
              throw CLI::ValidationError(
                  "--when",
                  std::format("must be a rule such as 'slower-than 200ms/token', not '{}'", rule));
          },
          "Keep the session of a request only if its generated tokens took longer on average: "
          "'slower-than 200ms/token' (us, ms or s). Implies --per-request")
      ->type_name("RULE");
  command.add_flag("--paused", options->paused,
                   "Record nothing at first. SIGUSR1 to tt starts and pauses recording");
  command
      .add_option("--live", options->live,
                  "Show the sessions in the browser while they are recorded, and when the program "
                  "has ended until Ctrl+C: port on this machine, 0 for any; the address is printed")
      ->check(whole_number(0, 65535))
      ->type_name("PORT");
  command.add_flag("-q,--quiet", options->quiet, "Do not list the sessions at the end");
  command.footer("Example: tt attach -o traces -- llama-server -m model.gguf --port 8080");
  return [options] {
    options->per_request |= options->keep_bytes || options->keep_sessions || options->requests ||
                            options->slower_than_ns;
    return run(*options);
  };
}

}  // namespace tt::cli
