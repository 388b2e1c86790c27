// The status line on a terminal while a command runs, and the effect of Ctrl+C. To make the
// duration independent of the machine, the test holds a lease (fcntl(2)) on the command's file:
// opening the file blocks until the test releases the lease.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/verbs.h"
#include "program/force_exit.h"
#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kJournal = "s.ttrace-journal";

// A write lease: opening the file blocks while it is held.
class FileLease {
 public:
  explicit FileLease(const fs::path& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    signal(SIGIO, SIG_IGN);  // the kernel's notification; the test polls instead
    EXPECT_EQ(fcntl(fd_, F_SETLEASE, F_WRLCK), 0) << path;
  }
  ~FileLease() { close(fd_); }  // releases the lease
  FileLease(const FileLease&) = delete;
  FileLease& operator=(const FileLease&) = delete;
  bool has_waiter() const { return fcntl(fd_, F_GETLEASE) != F_WRLCK; }

 private:
  int fd_;
};

enum class OutputTarget : bool { File, Terminal };

// A command running on its own pseudoterminal.
class TerminalCommand {
 public:
  TerminalCommand(const fs::path& folder, const std::string& arguments, OutputTarget answer) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    const std::string command = std::format("cd {} && exec {} {}{}", folder.string(), kTestPaths.tt,
                                            arguments, answer == OutputTarget::File ? " >out" : "");
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(99);
  }
  ~TerminalCommand() { close(terminal_); }
  TerminalCommand(const TerminalCommand&) = delete;
  TerminalCommand& operator=(const TerminalCommand&) = delete;

  // Sends Ctrl+C and waits until the signal is sent: the terminal signals before it echoes.
  void interrupt() {
    EXPECT_TRUE(test::wait_until([&] { return has_sigint_handler(); })) << "no SIGINT handler";
    const std::size_t before = shown_.size();
    EXPECT_EQ(write(terminal_, "\x03", 1), 1);
    while (shown_.find("^C", before) == std::string::npos && read_more()) {
    }
    EXPECT_NE(shown_.find("^C", before), std::string::npos) << "Ctrl+C was not echoed";
  }

  // Waits for the command to end and returns all terminal output.
  std::string shown() {
    while (read_more()) {
    }
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return shown_;
  }
  int code() const { return code_; }

 private:
  // Returns false at the end: reading fails after the last process has closed the terminal.
  bool read_more() {
    std::array<char, 4096> bytes{};
    const ssize_t n = read(terminal_, bytes.data(), bytes.size());
    if (n > 0) shown_.append(bytes.data(), static_cast<std::size_t>(n));
    return n > 0;
  }
  bool has_sigint_handler() const {
    std::ifstream status(std::format("/proc/{}/status", child_));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:"))
        return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
    return false;
  }
  int terminal_ = -1, code_ = -1;
  pid_t child_ = -1;
  std::string shown_;
};

struct Verb {
  std::string arguments;    // FILE: the session
  std::string status_line;  // expected status line
  int code = 0;             // 1: the question does not apply to the session, which it says
};
// Every verb that queries sessions.
const std::multimap<std::string, Verb>& verbs() {
  static const std::multimap<std::string, Verb> all = {
      {"analyze", {"hot FILE", "computing, "}},
      {"compare", {"FILE a.ttrace", "reading the left session, step 1 of 4, "}},
      {"export", {"FILE -o FILE.csv", "reading, "}},
      {"generality", {"FILE a.ttrace", "trying each session on the others, "}},
      {"gguf",
       {std::format("reorder {} --by-use FILE --output FILE.gguf", kTestPaths.bundled_model),
        "reading the session, "}},
      {"graph", {"FILE", "searching for a graph, "}},
      {"heads", {"FILE", "counting reads, "}},
      {"heads", {"FILE --kv", "tracking the KV cache, "}},
      {"hot", {"FILE", "reading, step 1 of 4, "}},
      {"memory", {"FILE", "reading, "}},
      {"moe", {"FILE", "counting choices, ", 1}},
      {"parse", {"FILE", "searching for accesses, "}},
      {"parse", {"FILE --stats", "reading, step 1 of 4, "}},
      {"parse", {"FILE --validate", "validating, "}},
      {"pattern", {"FILE", "learning the read order, "}},
      {"report", {"FILE -o FILE.html", "reading, step 1 of 4, "}},
      {"reuse", {"FILE", "replaying reads, "}},
      {"show", {"FILE", "counting steps, "}},
      {"sql", {"FILE 'SELECT count(*) FROM access a, access b'", "running the query, "}},
      {"trend", {"FILE a.ttrace", "reading session 2 of 2, "}},
      {"values", {"FILE", "reading the values, "}}};
  return all;
}

class TerminalProgress : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        run_tt(folder_, "record -p 'Once upon' -n 4 -t 1 --ignore-eos --capture l_out -o a.ttrace")
            .code,
        0);
  }

  struct Running {
    std::string what;
    const Verb* verb;
    fs::path folder;
    std::unique_ptr<FileLease> lease;
    std::unique_ptr<TerminalCommand> command;
  };
  // Starts all verbs at once, each blocked on its own session: on the file, or on the journal,
  // which SQLite opens after the file and retries to open after a signal.
  std::vector<Running> start(OutputTarget answer, const char* waits_for = "s.ttrace") {
    std::vector<Running> running;
    for (const auto& [name, verb] : verbs()) {
      std::string arguments = name + " " + verb.arguments;
      for (std::size_t at = 0; (at = arguments.find("FILE")) != std::string::npos;)
        arguments.replace(at, 4, "s.ttrace");
      const fs::path own = folder_.path() / std::to_string(running.size());
      fs::create_directory(own);
      std::ofstream(own / kJournal) << std::string(512, '\0');  // without a transaction
      for (const char* file : {"a.ttrace", "s.ttrace"})
        fs::copy_file(folder_ / "a.ttrace", own / file);
      Running& it = running.emplace_back(arguments, &verb, own,
                                         std::make_unique<FileLease>(own / waits_for), nullptr);
      it.command = std::make_unique<TerminalCommand>(own, arguments, answer);
    }
    for (const Running& it : running)
      EXPECT_TRUE(test::wait_until([&] { return it.lease->has_waiter(); })) << it.what;
    return running;
  }
  // Releases the leases when the commands have run for longer than a second.
  static void release_leases(std::vector<Running>& running) {
    std::this_thread::sleep_for(1100ms);  // no status line is shown during the first second
    for (Running& it : running) it.lease.reset();
  }

  const test::TempFolder folder_;
};

TEST_F(TerminalProgress, ShowsAndClearsStatusLine) {
  auto running = start(OutputTarget::File);
  release_leases(running);
  for (Running& it : running) {
    SCOPED_TRACE(it.what);
    const std::string shown = it.command->shown();
    EXPECT_EQ(it.command->code(), it.verb->code) << shown;
    EXPECT_TRUE(shown.contains("\r\x1b[K" + it.verb->status_line)) << shown;
    EXPECT_EQ(shown.ends_with("\r\x1b[K"), it.verb->code == 0) << shown;
    EXPECT_FALSE(contents(it.folder / "out").contains('\x1b'));
  }
}

TEST_F(TerminalProgress, PrintsResultAfterClearingStatusLine) {
  auto running = start(OutputTarget::Terminal);
  release_leases(running);
  for (Running& it : running) {
    SCOPED_TRACE(it.what);
    const std::string shown = it.command->shown();
    EXPECT_EQ(it.command->code(), it.verb->code) << shown;
    const std::size_t last = shown.rfind("\r\x1b[K");
    ASSERT_NE(last, std::string::npos) << shown;
    EXPECT_TRUE(shown.substr(0, last).contains(it.verb->status_line)) << shown;
    EXPECT_FALSE(shown.substr(last + 4).contains(", 1 s")) << shown;
    const bool into_file = it.verb->arguments.contains(" -o ");
    EXPECT_EQ(shown.substr(last + 4).empty(), into_file) << shown;
  }
}

TEST_F(TerminalProgress, CtrlCCancelsTheCommand) {
  auto running = start(OutputTarget::File, kJournal);
  for (const Running& it : running) it.command->interrupt();
  for (Running& it : running) it.lease.reset();
  for (Running& it : running) {
    SCOPED_TRACE(it.what);
    EXPECT_EQ(it.command->shown(), "^C");
    EXPECT_EQ(it.command->code(), 130);
    EXPECT_EQ(contents(it.folder / "out"), "");
    for (const char* half : {"s.ttrace.csv", "s.ttrace.gguf", "s.ttrace.html"})
      EXPECT_FALSE(fs::exists(it.folder / half));
  }
}

TEST_F(TerminalProgress, SecondCtrlCEndsTheProcess) {
  auto running = start(OutputTarget::File, kJournal);
  for (const Running& it : running) it.command->interrupt();
  std::this_thread::sleep_for(kSignalDebounce + 50ms);  // an earlier signal would be ignored
  for (const Running& it : running) it.command->interrupt();
  for (Running& it : running) {  // still blocked on its file
    SCOPED_TRACE(it.what);
    EXPECT_EQ(it.command->shown(), "^C^C");
    EXPECT_EQ(it.command->code(), -1);
  }
}

// A program that runs tt on a terminal and reads its output.
TEST_F(TerminalProgress, ShowsNothingWhenAProgramReadsTheOutput) {
  const FileLease* lease = nullptr;
  for (const char* arguments : {"hot s.ttrace --json", "export s.ttrace -q -o s.csv",
                                "report s.ttrace --json", "hot s.ttrace 2>err"}) {
    SCOPED_TRACE(arguments);
    fs::copy_file(folder_ / "a.ttrace", folder_ / "s.ttrace", fs::copy_options::overwrite_existing);
    auto held = std::make_unique<FileLease>(folder_ / "s.ttrace");
    lease = held.get();
    TerminalCommand command(folder_.path(), arguments, OutputTarget::File);
    EXPECT_TRUE(test::wait_until([&] { return lease->has_waiter(); }));
    std::this_thread::sleep_for(1100ms);  // a status line would be shown after one second
    held.reset();
    EXPECT_EQ(command.shown(), "");
    EXPECT_EQ(command.code(), 0);
  }
  EXPECT_EQ(contents(folder_ / "err"), "");
}

// All verbs that query nothing but sessions are listed in verbs().
TEST(Progress, TestCoversAllVerbs) {
  const std::set<std::string> others = {"attach", "bench-model", "debug",  "disk",
                                        "import", "model",       "record", "weights"};
  for (const cli::Verb& verb : cli::kVerbs)
    EXPECT_NE(verbs().contains(verb.name), others.contains(verb.name)) << verb.name;
}

}  // namespace
}  // namespace tt
