// tt attach on real programs of llama.cpp: what it records equals what tt record does, and the
// program computes what it does without it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report/validation.h"
#include "tests/cli/tt_program.h"
#include "tests/support/models/arch_model.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sessions_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".ttrace") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

class Attach : public ::testing::Test {
 protected:
  // A model of this kind, "NAME.gguf" in the folder.
  void make_model(const std::string& kind, const std::string& name = "model") {
    const Result made = run_tt(folder, std::format("model {} -o {}.gguf", kind, name));
    ASSERT_EQ(made.code, 0) << made.err;
  }
  // llama.cpp's programs may end before their last lines are written: log_flush waits for them.
  static std::string environment() { return std::format("LD_PRELOAD={}", kTestPaths.log_flush); }
  Result plain(const std::string& command) {
    const int status = std::system(std::format("cd {} && {} {} >plain 2>err </dev/null",
                                               folder.path().string(), environment(), command)
                                       .c_str());
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .out = contents(folder / "plain"),
            .err = contents(folder / "err")};
  }
  Result attached(const std::string& command, const std::string& options = "") {
    return run_tt(folder, std::format("attach -o traces {} -- {} </dev/null", options, command),
                  environment());
  }
  std::vector<fs::path> sessions() const { return sessions_in(folder / "traces"); }
  static void expect_valid(const fs::path& file) {
    const auto validation = validate(file);
    ASSERT_TRUE(validation.has_value());
    EXPECT_EQ(validation->verdict(), "valid") << file;
    for (const CheckResult& check : validation->checks)
      for (const std::string& evidence : check.evidence) ADD_FAILURE() << evidence;
  }
  static SessionReader open(const fs::path& file) {
    auto reader = SessionReader::open(file);
    EXPECT_TRUE(reader.has_value());
    return *std::move(reader);
  }
  // The session r.ttrace of tt record and this one.
  void expect_same(const fs::path& file);
  test::TempFolder folder;
};

// ---------------------------------------------------------------- equal to tt record

class EqualsRecord : public Attach, public ::testing::WithParamInterface<const char*> {};

constexpr char kSums[] =
    "SELECT step, op, operation_type, tensor_name, tensor_type, memory_source, write, "
    "expert_id, count(*) n, sum(size_bytes) bytes FROM access "
    "GROUP BY step, op, operation_type, tensor_name, tensor_type, memory_source, write, "
    "expert_id ORDER BY 1, 2, 4, 7, 8";

TEST_P(EqualsRecord, OpsListsAndAccessSums) {
  make_model(GetParam());
  const std::string completion =
      "llama-completion -m model.gguf -p 'The wind was cold' -n 6 --ignore-eos -no-cnv "
      "--no-warmup -t 1 -s 1 --temp 0 -c 512";
  const Result without = plain(completion);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(completion);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_FALSE(with.out.empty());
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const Result recorded =
      run_tt(folder,
             "record -m model.gguf -p 'The wind was cold' -n 6 --ignore-eos -t 1 --temp 0 -c 512 "
             "-o r.ttrace");
  ASSERT_EQ(recorded.code, 0) << recorded.err;

  expect_same(sessions()[0]);
}

void Attach::expect_same(const fs::path& file) {
  const SessionReader ours = open(folder / "r.ttrace"), theirs = open(file);
  ASSERT_EQ(*ours.step_count(), 6U);
  ASSERT_EQ(*theirs.step_count(), 6U);
  std::uint32_t ops = 0;
  for (std::uint32_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    const Step a = *ours.step(StepId{i}), b = *theirs.step(StepId{i});
    EXPECT_EQ(a.n_tokens, b.n_tokens);
    EXPECT_EQ(a.phase, b.phase);
    EXPECT_EQ(a.op_ends.size(), b.op_ends.size());
    EXPECT_TRUE(a.slots == b.slots);
    const auto mine = ours.graph(a.graph), its = theirs.graph(b.graph);
    ASSERT_TRUE(mine.has_value() && its.has_value());
    EXPECT_EQ((*mine)->fingerprint, (*its)->fingerprint);
    EXPECT_TRUE(**mine == **its);
    ops += static_cast<std::uint32_t>((*its)->ops.size());
  }
  EXPECT_GT(ops, 300U);
  const auto tokens = *ours.tokens(0, 100), their_tokens = *theirs.tokens(0, 100);
  ASSERT_EQ(tokens.size(), their_tokens.size() + 1) << "the last one is not evaluated";
  for (std::size_t i = 0; i < their_tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].id, their_tokens[i].id);
    EXPECT_EQ(tokens[i].position, their_tokens[i].position);
    EXPECT_EQ(tokens[i].generated, their_tokens[i].generated);
  }
  const Result sums = run_tt(folder, std::format("sql r.ttrace '{}'", kSums));
  const Result their_sums = run_tt(folder, std::format("sql {} '{}'", file.string(), kSums));
  EXPECT_EQ(sums.code, 0) << sums.err;
  EXPECT_GT(std::ranges::count(sums.out, '\n'), 1000);
  EXPECT_EQ(sums.out, their_sums.out);
}

// Of layers with attention and layers with a state.
TEST_F(Attach, HybridModelEqualsRecord) {
  fs::copy_file(test::arch_model("jamba-dense"), folder / "model.gguf");
  const Result with = attached(built_program("attached_program") + " model.gguf - 6");
  ASSERT_EQ(with.code, 0) << with.err;
  ASSERT_EQ(sessions().size(), 1U);
  const Result recorded = run_tt(folder,
                                 "record -m model.gguf --tokens 1,2,3,4 -n 6 --ignore-eos -t 1 "
                                 "--temp 0 -c 256 -o r.ttrace");
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  expect_same(sessions()[0]);
}

INSTANTIATE_TEST_SUITE_P(Models, EqualsRecord, ::testing::Values("small", "moe", "mamba"),
                         [](const auto& param) { return std::string(param.param); });

// ---------------------------------------------------------------- programs with callbacks

TEST_F(Attach, ImatrixIsTheSameByteForByte) {
  make_model("small");
  std::ofstream(folder / "text.txt") << contents(source_path("docs/hacking.md")).substr(0, 6000);
  const std::string command = "llama-imatrix -m model.gguf -f text.txt -t 1 -c 128 --chunks 2 -o ";
  ASSERT_EQ(plain(command + "plain.im").code, 0);
  const Result result = attached(command + "attached.im");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_GT(contents(folder / "plain.im").size(), 1000U);
  EXPECT_EQ(contents(folder / "plain.im"), contents(folder / "attached.im"));
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Its callback splits the graph after each node, so that no ops are fused.
TEST_F(Attach, NodesAreThoseOfEvalCallback) {
  make_model("small");
  const std::string command =
      std::string(kTestPaths.eval_callback) + " -m model.gguf -p Hello -t 1";
  const Result without = plain(command);
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  std::vector<std::string> listed;
  std::istringstream lines(without.err + without.out);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kPrefix = "common_debug_cb_eval:";
    const auto end = line.find(" = (");
    if (!line.starts_with(kPrefix) || end == line.npos) continue;
    const auto begin = line.find_first_not_of(' ', kPrefix.size());
    listed.push_back(line.substr(begin, end - begin));
  }
  ASSERT_GT(listed.size(), 300U);
  const SessionReader reader = open(sessions()[0]);
  std::vector<std::string> recorded;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const auto graph = reader.graph(reader.step(StepId{i})->graph);
    for (const Op& op : (*graph)->ops) EXPECT_EQ(op.nodes, 1U) << "not fused";
    for (const Node& node : (*graph)->nodes)
      recorded.push_back(trimmed((*graph)->tensor(node.output).name));
  }
  EXPECT_EQ(recorded, listed);
}

TEST_F(Attach, LlamaBench) {
  make_model("small");
  const Result result = attached("llama-bench -m model.gguf -p 16 -n 8 -r 1 -t 1");
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(sessions().size(), 2U) << "a context for the prompt and one for generation";
  for (const fs::path& file : sessions()) expect_valid(file);
}

// ---------------------------------------------------------------- a program of its own

// Its abort callback is called as often as without; a forked child has a ring of its own.
TEST_F(Attach, TwoModelsThreeContextsOwnCallbackAndFork) {
  make_model("small");
  make_model("moe", "other");
  const std::string command = built_program("attached_program") + " model.gguf other.gguf 24 fork";
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  const auto line = [](const std::string& text, std::size_t n) {
    std::istringstream lines(text);
    std::string out;
    for (std::size_t i = 0; i <= n; ++i) std::getline(lines, out);
    return out;
  };
  EXPECT_EQ(line(with.out, 0), line(without.out, 0)) << "what it computed";
  EXPECT_EQ(line(with.out, 2), line(without.out, 2)) << "what its child computed";
  // Splitting a new graph separates no op from its callback: at least as many calls.
  EXPECT_GE(std::stoi(line(with.out, 1)), std::stoi(line(without.out, 1)));
  ASSERT_EQ(sessions().size(), 4U) << with.err;
  std::map<std::string, int> models;
  std::map<std::string, int> processes;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionReader reader = open(file);
    const SessionInfo info = *reader.info();
    EXPECT_EQ(info.state, SessionState::Done);
    ASSERT_EQ(info.model_files.size(), 1U);
    ++models[fs::path(info.model_files[0].path).filename()];
    ++processes[std::string(info.fact("attach.pid"))];
    const std::uint32_t steps = *reader.step_count();
    EXPECT_TRUE(steps == 24 || steps == 3) << steps;
    EXPECT_EQ(*reader.losses(), LossCounters{});
  }
  EXPECT_EQ(models, (std::map<std::string, int>{{"model.gguf", 2}, {"other.gguf", 2}}));
  EXPECT_EQ(processes.size(), 2U);
}

// ---------------------------------------------------------------- versions of the library

#if defined(__x86_64__)
// The libraries of releases of node-llama-cpp, from December 2024 on, loaded as its add-on does.
class AttachVersions : public Attach, public ::testing::WithParamInterface<const char*> {};

TEST_P(AttachVersions, AreRecordedWithTheSameAgent) {
  make_model("small");
  const Result packed =
      plain(std::format("npm pack --silent @node-llama-cpp/linux-x64@{}", GetParam()));
  if (packed.code != 0) GTEST_SKIP() << "the package registry does not answer: " << packed.err;
  ASSERT_EQ(plain("tar xzf *.tgz").code, 0);
  std::string library;
  for (const auto& entry : fs::directory_iterator(folder / "package/bins/linux-x64")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libllama") && !name.contains("common")) library = entry.path();
  }
  const std::string command =
      std::format("{} {} model.gguf 6", built_program("library_program"), library);
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  EXPECT_FALSE(with.err.contains("tt attach:")) << with.err;
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(*reader.step_count(), 6U);
  EXPECT_GT(reader.step(StepId{5})->op_ends.size(), 150U);
  EXPECT_EQ(reader.step(StepId{5})->timing, Timing::Fast);
}

INSTANTIATE_TEST_SUITE_P(Releases, AttachVersions,
                         ::testing::Values("3.3.0", "3.6.0", "3.9.0", "3.14.0", "3.19.0", "3.22.1"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });
#endif

// ---------------------------------------------------------------- killed and stopped

// tt attach in the background, with the program as its child.
class Background {
 public:
  Background(const test::TempFolder& folder, const std::string& arguments,
             const std::string& environment = "")
      : pid_(fork()) {
    if (pid_ != 0) return;
    const std::string command =
        std::format("cd {} && {} exec {} {} >out 2>err </dev/null", folder.path().string(),
                    environment, kTestPaths.tt, arguments);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  ~Background() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  pid_t pid() const { return pid_; }
  int wait() {  // the exit status; -1: ended by a signal
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Its only child; 0: not started yet.
  pid_t child() const {
    std::ifstream in(std::format("/proc/{0}/task/{0}/children", pid_));
    pid_t child = 0;
    in >> child;
    return child;
  }

 private:
  pid_t pid_;
};

std::uint32_t steps_in(const std::vector<fs::path>& files) {
  if (files.empty()) return 0;
  const auto reader = SessionReader::open(files[0]);
  return reader ? reader->step_count().value_or(0) : 0;
}

std::string long_completion(int tokens) {
  return std::format(
      "llama-completion -m model.gguf -p Hello -n {} --ignore-eos -no-cnv --no-warmup -t 1 -s 1 "
      "--temp 0 -c 1024",
      tokens);
}

TEST_F(Attach, KilledProgramLeavesItsSteps) {
  make_model("small");
  Background background(folder, "attach -o traces -- " + long_completion(900));
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 20; }));
  const pid_t program = background.child();
  ASSERT_GT(program, 0);
  ASSERT_EQ(::kill(program, SIGKILL), 0);
  EXPECT_EQ(background.wait(), 128 + SIGKILL);
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.info()->state, SessionState::Failed);
  EXPECT_NE(reader.info()->error.find("ended by signal 9"), std::string::npos);
  EXPECT_GT(*reader.step_count(), 20U);
  expect_valid(sessions()[0]);
}

TEST_F(Attach, ProgramContinuesWhenItsCollectorIsKilled) {
  make_model("small");
  const std::string command = long_completion(200);
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0);
  Background background(folder, "attach -o traces -- " + command, environment());
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  const pid_t program = background.child();
  ASSERT_EQ(::kill(background.pid(), SIGKILL), 0);
  EXPECT_EQ(background.wait(), -1);
  ASSERT_TRUE(test::wait_until([&] { return ::kill(program, 0) != 0; })) << "it ends by itself";
  EXPECT_EQ(contents(folder / "out"), without.out);
  // The file is recovered when it is opened.
  ASSERT_EQ(sessions().size(), 1U);
  EXPECT_EQ(run_tt(folder, "show " + sessions()[0].string()).code, 0);
  EXPECT_EQ(open(sessions()[0]).info()->state, SessionState::Recovered);
  expect_valid(sessions()[0]);
}

// SIGUSR1 begins and ends the recording.
TEST_F(Attach, RecordsBetweenTwoSignals) {
  make_model("small");
  Background background(folder, "attach --paused -o traces -- " + long_completion(900));
  ASSERT_TRUE(test::wait_until([&] { return contents(folder / "out").size() > 200; }));
  EXPECT_TRUE(sessions().empty()) << "it runs, and nothing is recorded";
  ASSERT_EQ(::kill(background.pid(), SIGUSR1), 0);
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  ASSERT_EQ(::kill(background.pid(), SIGUSR1), 0);
  EXPECT_EQ(background.wait(), 0);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const std::uint32_t steps = steps_in(sessions());
  EXPECT_GT(steps, 5U);
  EXPECT_LT(steps, 800U);
  EXPECT_GT(open(sessions()[0]).tokens(0, 1)->front().position, 10);
}

// The collector is stopped while the program fills its ring.
TEST_F(Attach, FullRingLosesTimesAndKeepsTokens) {
  make_model("small");
  Background background(folder, "attach --ring 1 -o traces -- " + long_completion(700));
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  ASSERT_EQ(::kill(background.pid(), SIGSTOP), 0);
  const pid_t program = background.child();
  // A zombie until the collector waits for it.
  ASSERT_TRUE(test::wait_until([&] {
    std::ifstream in(std::format("/proc/{}/stat", program));
    return contents(std::format("/proc/{}/stat", program)).contains(") Z ");
  }));
  ASSERT_EQ(::kill(background.pid(), SIGCONT), 0);
  EXPECT_EQ(background.wait(), 0);
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  const LossCounters losses = *reader.losses();
  EXPECT_GT(losses.steps_without_times, 0U);
  EXPECT_EQ(losses.steps_not_written, 0U);
  EXPECT_EQ(*reader.step_count(), 700U) << "no token is lost";
  const auto validation = validate(sessions()[0]);
  EXPECT_EQ(validation->verdict(),
            std::format("valid, times of {} steps missing", losses.steps_without_times));
}

// The steps before the error are in the file, and it says how many are missing.
TEST_F(Attach, DiskThatBecomesFullCountsTheStepsAfterIt) {
  make_model("small");
  const test::SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  fs::create_directory_symlink(disk.path(), folder / "traces");
  constexpr int kTokens = 400;
  const Result without = plain(long_completion(kTokens));
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(long_completion(kTokens));
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_TRUE(with.err.contains("full")) << with.err;
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.info()->state, SessionState::Failed);
  const std::uint32_t steps = *reader.step_count();
  EXPECT_GT(steps, 0U);
  EXPECT_GT(reader.losses()->steps_not_written, 0U);
  EXPECT_EQ(steps + reader.losses()->steps_not_written, std::uint64_t{kTokens});
  EXPECT_TRUE(with.err.contains(std::format(": {} steps, ", steps))) << with.err;
}

TEST_F(Attach, FullDiskIsSaidOnceAndTheProgramContinues) {
  make_model("small");
  const test::SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  fs::create_directory_symlink(disk.path(), folder / "traces");
  for (std::ofstream filler(disk / "filler", std::ios::binary); filler;)
    filler << std::string(4096, 'x') << std::flush;
  const Result without = plain(long_completion(20));
  const Result with = attached(long_completion(20));
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_TRUE(sessions().empty());
  const std::size_t said = with.err.find("tt attach: ");
  ASSERT_NE(said, std::string::npos) << with.err;
  EXPECT_EQ(with.err.find("tt attach: ", said + 1), std::string::npos) << with.err;
  EXPECT_TRUE(with.err.substr(said).starts_with(
      "tt attach: The program continues and is not recorded: the disk that holds "))
      << with.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(disk.path()), {}), 1) << "no partial file";
  EXPECT_NE(attached("llama-completion -m absent.gguf").code, 0) << "its own exit status";
}

// ---------------------------------------------------------------- llama-server

// One request through a shell: curl is not needed.
std::string post(int port, const std::string& path, const std::string& body) {
  return std::format(
      "exec 3<>/dev/tcp/127.0.0.1/{0}; printf 'POST {1} HTTP/1.1\\r\\nHost: x\\r\\nConnection: "
      "close\\r\\nContent-Type: application/json\\r\\nContent-Length: {2}\\r\\n\\r\\n%s' '{3}' "
      ">&3; "
      "cat <&3",
      port, path, body.size(), body);
}

std::string completion(int port, const std::string& prompt, int tokens) {
  return post(port, "/completion",
              std::format(R"({{"prompt": "{}", "n_predict": {}, "ignore_eos": true, )"
                          R"("temperature": 0}})",
                          prompt, tokens));
}

class AttachServer : public Attach {
 protected:
  // Starts it and returns its port, which it prints.
  void start(const std::string& options, const std::string& attach_options = "") {
    port_ = 20'000 + static_cast<int>(getpid()) % 20'000;
    background_ = std::make_unique<Background>(
        folder, std::format("attach -o traces {} -- llama-server -m model.gguf --host 127.0.0.1 "
                            "--port {} -t 1 {}",
                            attach_options, port_, options));
    ASSERT_TRUE(test::wait_until([&] {
      return ask(std::format("exec 3<>/dev/tcp/127.0.0.1/{} && printf 'GET /health HTTP/1.1\\r\\n"
                             "Host: x\\r\\nConnection: close\\r\\n\\r\\n' >&3 && cat <&3",
                             port_))
          .contains("200 OK");
    }));
  }
  std::string ask(const std::string& script) const {
    std::ofstream(folder / "script.sh") << script;
    const fs::path answer = folder / "answer";
    [[maybe_unused]] const int status = std::system(
        std::format("bash {} > {} 2>/dev/null", (folder / "script.sh").string(), answer.string())
            .c_str());
    return contents(answer);
  }
  void stop() {
    ASSERT_EQ(::kill(background_->pid(), SIGTERM), 0) << "is passed on";
    EXPECT_EQ(background_->wait(), 0);
  }
  int port_ = 0;
  std::unique_ptr<Background> background_;
};

// The page's server is another process: it shows what the collector has written so far.
TEST_F(AttachServer, LiveShowsSessionsWhileTheyAreRecorded) {
  make_model("small");
  background_ = std::make_unique<Background>(
      folder,
      "attach --live 0 -o traces -- llama-completion -m model.gguf -p Once -n 4000 -c 8192 "
      "-t 1 -no-cnv --ignore-eos");
  const auto get = [&](std::string_view path) {
    return ask(
        std::format("exec 3<>/dev/tcp/127.0.0.1/{} && printf 'GET {} HTTP/1.1\\r\\n"
                    "Host: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3 && cat <&3",
                    port_, path));
  };
  constexpr std::string_view kAddress = "shown on http://127.0.0.1:";
  ASSERT_TRUE(test::wait_until([&] { return contents(folder / "err").contains(kAddress); }));
  const std::string said = contents(folder / "err");
  port_ = std::stoi(said.substr(said.find(kAddress) + kAddress.size()));
  const auto steps = [&] {
    const std::string answer = get("/api/v1/sessions");
    if (!answer.contains(R"("running")")) return 0;
    const std::size_t at = answer.find(R"("steps":)");
    return at == std::string::npos ? 0 : std::stoi(answer.substr(at + 8));
  };
  int first = 0;
  ASSERT_TRUE(test::wait_until([&] { return (first = steps()) > 0; })) << get("/api/v1/sessions");
  ASSERT_TRUE(test::wait_until([&] { return steps() > first; })) << "it grows";
  EXPECT_TRUE(get("/").contains("<!doctype html>"));
  ASSERT_EQ(::kill(background_->pid(), SIGTERM), 0);
  background_->wait();
  EXPECT_EQ(get("/api/v1/health"), "") << "the server has ended, too";
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
}

TEST_F(AttachServer, ThreeSlotsAtOnce) {
  make_model("small");
  start("-np 3 -c 1536");
  std::string script;
  for (int i = 0; i < 3; ++i) {
    script += std::format("({}) > {} &\n",
                          completion(port_, std::format("Story number {} about boats", i), 40 + i),
                          (folder / std::format("answer{}", i).c_str()).string());
  }
  ask(script + "wait\n");
  for (int i = 0; i < 3; ++i)
    EXPECT_NE(contents(folder / std::format("answer{}", i).c_str())
                  .find(std::format("\"tokens_predicted\":{}", 40 + i)),
              std::string::npos);
  stop();
  ASSERT_EQ(sessions().size(), 1U) << contents(folder / "err");
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  std::uint32_t most = 0, generated = 0;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const Step step = *reader.step(StepId{i});
    if (step.phase == Phase::Generate) most = std::max(most, step.n_tokens);
  }
  for (const Token& token : *reader.tokens(0, 10'000)) generated += token.generated ? 1 : 0;
  EXPECT_EQ(most, 3U) << "tokens of all slots in one step";
  EXPECT_EQ(generated, 40U + 41 + 42 - 3) << "the last token of each answer is not evaluated";
}

TEST_F(AttachServer, DraftAndTargetAreNamed) {
  make_model("small");
  make_model("small --seed 7", "draft");
  start("-md draft.gguf -c 512 -np 1 --spec-type draft-simple");
  ask(post(port_, "/completion",
           R"({"prompt": "A boat", "n_predict": 24, "ignore_eos": true, "temperature": 0})"));
  stop();
  std::map<std::string, std::string> roles;  // by model
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionInfo info = *open(file).info();
    roles[fs::path(info.model_files.at(0).path).filename()] = info.fact("attach.role");
  }
  EXPECT_EQ(roles,
            (std::map<std::string, std::string>{{"draft.gguf", "draft"}, {"model.gguf", "target"}}))
      << contents(folder / "err");
}

// What the server computed for each request is what its session has. The warm-up is in none.
TEST_F(AttachServer, SessionPerRequest) {
  make_model("small");
  start("-np 2 -c 2048", "--per-request");
  const std::array prompts = {"The wind was cold", "The wind was cold", "The wind was warm",
                              "A boat"};
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    answers.push_back(ask(completion(port_, prompts[i], 6 + static_cast<int>(i))));
  // Both slots: two short answers while there is a long one.
  ask(std::format("({}) > {} &\n", completion(port_, "A long story", 450),
                  (folder / "long").string()));
  ASSERT_TRUE(test::wait_until([&] { return steps_in({sessions().back()}) > 10; }));
  ask(std::format("for i in 1 2; do {}; done\n", completion(port_, "Another story", 3)));
  ASSERT_EQ(sessions().size(), 5U);
  // It ends without another request.
  ASSERT_TRUE(test::wait_until(
      [&] { return open(sessions().back()).info()->state == SessionState::Done; }));
  stop();
  ASSERT_EQ(sessions().size(), 5U) << contents(folder / "err");
  for (std::size_t i = 0; i < sessions().size(); ++i) {
    SCOPED_TRACE(sessions()[i]);
    expect_valid(sessions()[i]);
    const SessionReader reader = open(sessions()[i]);
    const SessionInfo info = *reader.info();
    EXPECT_EQ(info.state, SessionState::Done);
    EXPECT_TRUE(sessions()[i].stem().string().ends_with(std::format("-{}", i + 1)));
    EXPECT_EQ(info.id, sessions()[i].stem());
    EXPECT_EQ(info.fact("attach.request"), std::to_string(i + 1));
    EXPECT_EQ(reader.step(StepId{0})->begin, Ns{0});
    EXPECT_EQ(reader.step(StepId{0})->phase, Phase::Prompt);
    if (i == answers.size()) {
      EXPECT_EQ(info.fact("attach.requests"), "3");
      EXPECT_EQ(info.fact_number("result.generated_tokens"), 449U + 2 * 2);
      break;
    }
    EXPECT_EQ(info.fact("attach.requests"), "1");
    EXPECT_EQ(info.fact_number("result.generated_tokens"), 5U + i);
    std::string text;  // the last token of an answer is not evaluated
    for (const Token& token : *reader.tokens(0, 100)) text += token.generated ? token.text : "";
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(answers[i].contains(std::format(R"("content":"{})", text))) << answers[i];
  }
  EXPECT_TRUE(open(sessions()[0]).info()->title == prompts[0]);
  EXPECT_TRUE(contents(folder / "err").contains("-*.ttrace: 5 sessions of 7 requests, "))
      << contents(folder / "err");
}

// Of its own only: a session of another program, the one that is being recorded and one of the
// whole context stay.
TEST_F(AttachServer, KeepsTheNewestSessions) {
  make_model("small");
  const auto record = [&](const char* options) {
    return attached("llama-completion -m model.gguf -p Hello -n 2 --ignore-eos -no-cnv -t 1",
                    options);
  };
  ASSERT_EQ(record("").code, 0);
  ASSERT_EQ(sessions().size(), 1U);
  const fs::path whole = sessions()[0];
  ASSERT_EQ(record("--per-request").code, 0);
  ASSERT_EQ(sessions().size(), 2U);
  const fs::path earlier = sessions()[sessions()[0] == whole ? 1 : 0];
  start("-np 1 -c 512", "--keep-sessions 2");
  for (int i = 0; i < 4; ++i) ask(completion(port_, std::format("{} boats", i), 4));
  const auto numbers = [&] {
    std::string out;
    for (const fs::path& file : sessions())
      if (file != whole && file != earlier) out += file.stem().string().back();
    return out;
  };
  ASSERT_TRUE(test::wait_until([&] { return numbers() == "234"; }))
      << "two, and one that is being recorded: " << numbers();
  stop();
  EXPECT_EQ(numbers(), "34");
  EXPECT_TRUE(fs::exists(whole));
  EXPECT_FALSE(fs::exists(earlier)) << "of an earlier run";
  EXPECT_TRUE(contents(folder / "err").contains("3 sessions removed, to keep the newest\n"))
      << contents(folder / "err");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "traces"), {}), 3) << "nothing beside";

  std::uintmax_t bytes = 0;
  for (const fs::path& file : sessions())
    if (file != whole) bytes += fs::file_size(file);
  const Result limited = record(std::format("--keep-bytes {}", bytes).c_str());
  ASSERT_EQ(limited.code, 0) << limited.err;
  std::uintmax_t kept = 0;
  for (const fs::path& file : sessions())
    if (file != whole) kept += fs::file_size(file);
  EXPECT_LE(kept, bytes);
  EXPECT_EQ(sessions().size(), 3U) << limited.err;
  EXPECT_TRUE(limited.err.contains("1 session removed, to keep the newest\n")) << limited.err;
}

// What was reused is what the server says; a text that changes at its begin is the reason.
TEST_F(AttachServer, SaysWhyAPromptWasReadAgain) {
  make_model("small");
  start("-np 1 -c 1024", "--per-request");
  const std::string rules = ". The captain of the old wooden boat waits for the wind to turn south";
  const auto request = [&](const std::string& prompt, const char* more = "") {
    const std::string answer =
        ask(post(port_, "/completion",
                 std::format(R"({{"prompt": "{}", "n_predict": 4, "ignore_eos": true, )"
                             R"("temperature": 0{}}})",
                             prompt, more)));
    const auto number = [&](std::string_view name) {
      const std::size_t at = answer.find(std::format("\"{}\":", name));
      return at == std::string::npos ? -1 : std::stoi(answer.substr(at + name.size() + 3));
    };
    return std::pair(number("cache_n"), number("prompt_n"));
  };
  std::vector<std::pair<int, int>> said;  // reused and evaluated tokens
  said.push_back(request("Today is Monday" + rules));
  said.push_back(request("Today is Friday" + rules));
  said.push_back(request("Today is Friday" + rules));
  said.push_back(request("Today is Friday" + rules, R"(, "cache_prompt": false)"));
  stop();
  ASSERT_EQ(sessions().size(), 4U) << contents(folder / "err");
  std::vector<SessionInfo> infos;
  for (const fs::path& file : sessions()) {
    infos.push_back(*open(file).info());
    const auto [reused, evaluated] = said[infos.size() - 1];
    EXPECT_GE(reused, 0);
    EXPECT_EQ(infos.back().fact("result.reused_tokens"), std::to_string(reused));
    EXPECT_EQ(infos.back().fact("result.prompt_tokens"), std::to_string(reused + evaluated));
  }
  EXPECT_EQ(infos[0].fact("result.reuse_end"), "");
  EXPECT_EQ(infos[1].fact("result.reuse_end"), "other_token");
  EXPECT_EQ(infos[1].fact("result.cached_from"), infos[0].id);
  EXPECT_TRUE(infos[1].fact("result.text_before").ends_with("Today is "))
      << infos[1].fact("result.text_before");
  EXPECT_TRUE(infos[1].fact("result.text_prompt").starts_with("Friday"));
  EXPECT_TRUE(infos[1].fact("result.text_cached").starts_with("Monday"));
  EXPECT_EQ(infos[2].fact("result.reuse_end"), "") << "all but the last token was reused";
  EXPECT_EQ(infos[3].fact("result.reuse_end"), "not_kept");
  EXPECT_EQ(infos[3].fact("result.common_tokens"), infos[3].fact("result.prompt_tokens"));
  const Result shown = run_tt(folder, "show " + sessions()[1].string());
  EXPECT_TRUE(shown.out.contains("tokens were evaluated again")) << shown.out;
  const Result again = run_tt(folder, "show " + sessions()[3].string());
  EXPECT_TRUE(again.out.contains("but the program did not reuse them.")) << again.out;
}

// Then it records nothing, and the program goes on; SIGUSR1 starts again.
TEST_F(AttachServer, StopsAfterRequests) {
  make_model("small");
  start("-np 1 -c 512", "--requests 2");
  const auto ask_four = [&] {
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(ask(completion(port_, std::format("{} boats", i), 4)).contains("\"content\""));
  };
  const auto said = [&](const char* text) { return contents(folder / "err").contains(text); };
  ask_four();
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: 2 requests are recorded."); }));
  ASSERT_EQ(::kill(background_->pid(), SIGUSR1), 0);
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: recording\n"); }));
  EXPECT_EQ(sessions().size(), 2U);
  ask_four();
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: 4 requests are recorded."); }));
  stop();
  EXPECT_EQ(sessions().size(), 4U);
  for (const fs::path& file : sessions()) expect_valid(file);
}

// An answer of one token has no generated token that was evaluated.
TEST_F(AttachServer, KeepsSlowRequestsOnly) {
  make_model("small");
  start("-np 1 -c 512", "--when 'slower-than 1µs/token'");
  for (const int tokens : {1, 4, 1})
    ask(completion(port_, std::format("{} boats", tokens), tokens));
  stop();
  ASSERT_EQ(sessions().size(), 1U) << contents(folder / "err");
  EXPECT_EQ(open(sessions()[0]).info()->title, "4 boats");
  expect_valid(sessions()[0]);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "traces"), {}), 1) << "nothing beside";
  EXPECT_TRUE(
      contents(folder / "err").contains("1 request kept, 2 not slower than 1.00 µs per token"))
      << contents(folder / "err");

  const Result fast =
      attached("llama-completion -m model.gguf -p Hello -n 4 --ignore-eos -no-cnv -t 1",
               "--when 'slower-than 100s/token'");
  ASSERT_EQ(fast.code, 0) << fast.err;
  EXPECT_EQ(sessions().size(), 1U) << fast.err;
  EXPECT_TRUE(fast.err.contains("0 requests kept, 1 not slower than 100 s per token")) << fast.err;
}

TEST_F(Attach, RefusesAnotherRule) {
  for (const char* rule : {"slower-than 200ms", "faster-than 1ms/token", "slower-than 1m/token",
                           "slower-than ms/token", "slower-than 0ms/token"}) {
    const Result result = attached("true", std::format("--when '{}'", rule));
    EXPECT_NE(result.code, 0);
    EXPECT_TRUE(result.err.contains(
        std::format("--when: must be a rule such as 'slower-than 200ms/token', not '{}'", rule)))
        << result.err;
  }
}

// A checked draft goes back in the target; the draft model reads accepted tokens as a prompt.
TEST_F(AttachServer, SessionPerRequestWithADraftModel) {
  make_model("small");
  make_model("small --seed 7", "draft");
  start("-md draft.gguf -c 512 -np 1 --spec-type draft-simple", "--per-request");
  ask(completion(port_, "A boat", 24));
  ask(completion(port_, "The wind", 24));
  stop();
  std::multiset<std::string> found;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionInfo info = *open(file).info();
    found.insert(std::format("{} {}", info.fact("attach.role"), info.fact("attach.request")));
  }
  EXPECT_EQ(found, (std::multiset<std::string>{"draft 1", "draft 2", "target 1", "target 2"}))
      << contents(folder / "err");
}

// The graph that moves the cells of the cache is a step without tokens.
TEST_F(AttachServer, ContextShift) {
  make_model("small");
  start("-c 256 -np 1 --context-shift");
  const std::string answer =
      ask(post(port_, "/completion",
               R"({"prompt": "A boat", "n_predict": 300, "ignore_eos": true, "temperature": 0})"));
  EXPECT_NE(answer.find("\"tokens_predicted\":300"), std::string::npos) << answer;
  stop();
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  std::uint32_t shifts = 0;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const Step step = *reader.step(StepId{i});
    if (step.phase == Phase::Other && step.n_tokens == 0) ++shifts;
  }
  EXPECT_GE(shifts, 1U);
}

TEST_F(AttachServer, Embeddings) {
  make_model("bert");
  start("--embedding");
  const std::string answer =
      ask(post(port_, "/embedding", R"({"content": "a wooden boat on the sea"})"));
  EXPECT_NE(answer.find("\"embedding\""), std::string::npos) << answer;
  stop();
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.step(StepId{*reader.step_count() - 1})->phase, Phase::Embed);
}

}  // namespace
}  // namespace tt
