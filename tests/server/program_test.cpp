// tt-server as a program: what it prints, how it ends, what it leaves behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/format/temp_folder.h"
#include "tracer/format/session_reader.h"

namespace tt {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A started program whose stdout is read; ended with the object if it still runs.
class Program {
 public:
  Program(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), TT_SERVER);
    environment.emplace_back("HOME=/nonexistent");
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    EXPECT_EQ(posix_spawn(&pid_, TT_SERVER, &actions, nullptr, pointers(arguments).data(),
                          pointers(environment).data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = ends[0];
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) { kill(pid_, number); }
  std::string read_line() {
    std::string line;
    char c = 0;
    pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
    while (poll(&ready, 1, 30'000) > 0 && read(out_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  std::string read_all() {
    std::string all;
    std::array<char, 4096> block;
    for (ssize_t got = 0; (got = read(out_, block.data(), block.size())) > 0;)
      all.append(block.data(), static_cast<std::size_t>(got));
    return all;
  }
  // The exit code; -signal when it was killed; -1000 when it still runs.
  int wait(std::chrono::milliseconds patience = 30s) {
    const auto deadline = Clock::now() + patience;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) return -1000;
      std::this_thread::sleep_for(5ms);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  }
  pid_t pid_ = -1;
  int out_ = -1;
};

struct Running {
  explicit Running(const std::filesystem::path& data, std::vector<std::string> more = {})
      : program(arguments(data, std::move(more))), url(program.read_line()) {}
  static std::vector<std::string> arguments(const std::filesystem::path& data,
                                            std::vector<std::string> more) {
    more.insert(more.end(), {"--port", "0", "--data-dir", data.string()});
    return more;
  }
  json get(const std::string& path) {
    const auto result = httplib::Client(url).Get(path);
    return result ? json::parse(result->body, nullptr, false) : json::object();
  }
  bool loaded() {
    const auto deadline = Clock::now() + 60s;
    while (get("/api/v1/health").value("status", "") != "ok") {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(10ms);
    }
    return get("/api/v1/health")["model_state"] == "loaded";
  }
  // Its id, once some steps of it are in the file.
  std::string start_endless() {
    httplib::Client client(url);
    const auto accepted = client.Post(
        "/api/v1/generate", R"({"prompt": "Once", "max_tokens": 4000, "ignore_eos": true})",
        "application/json");
    if (!accepted || accepted->status != 202) return "";
    const std::string id = json::parse(accepted->body)["id"];
    const auto deadline = Clock::now() + 60s;
    while (get("/api/v1/sessions/" + id).value("steps", 0) < 5 && Clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    return id;
  }

  Program program;
  std::string url;
};

TEST(Program, PrintsItsAddressAndNothingElse) {
  const testing::TempFolder folder;
  Running server(folder.path());
  EXPECT_TRUE(server.url.starts_with("http://127.0.0.1:")) << server.url;
  EXPECT_TRUE(server.loaded());  // the bundled model
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
  EXPECT_EQ(server.program.read_all(), "");
}

TEST(Program, ASignalInTheMiddleOfAnAnswerLeavesAWholeFile) {
  for (const int signal : {SIGTERM, SIGINT}) {
    SCOPED_TRACE(signal);
    const testing::TempFolder folder;
    Running server(folder.path() / "made" / "by it");
    ASSERT_TRUE(server.loaded());
    const std::string id = server.start_endless();
    ASSERT_FALSE(id.empty());
    const auto began = Clock::now();
    server.program.signal(signal);
    EXPECT_EQ(server.program.wait(), 0);
    EXPECT_LT(Clock::now() - began, 5s);

    const auto file = folder.path() / "made" / "by it" / (id + ".ttrace");
    EXPECT_FALSE(std::filesystem::exists(file.string() + "-wal"));
    const auto faults = check_session(file);
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    EXPECT_EQ(reader->info()->state, SessionState::Cancelled);
    EXPECT_GE(reader->step_count().value(), 5u);
  }
}

TEST(Program, RecoversWhatAKilledOneLeft) {
  const testing::TempFolder folder;
  std::string id;
  {
    Running killed(folder.path());
    ASSERT_TRUE(killed.loaded());
    id = killed.start_endless();
    killed.program.signal(SIGKILL);
    EXPECT_EQ(killed.program.wait(), -SIGKILL);
  }
  Running next(folder.path());
  const json session = next.get("/api/v1/sessions/" + id);
  EXPECT_EQ(session["state"], "recovered");
  EXPECT_GT(session["steps"], 0);
}

TEST(Program, ListensBeforeTheModelIsThereAndLivesWithoutOne) {
  const testing::TempFolder folder;
  Running server(folder.path(), {"--model", "/nonexistent/model.gguf"});
  ASSERT_TRUE(server.url.starts_with("http://"));
  EXPECT_FALSE(server.loaded());
  EXPECT_EQ(server.get("/api/v1/models")["models"].at(0)["state"], "failed");
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
}

TEST(Program, RefusesWhatItDoesNotKnow) {
  struct Case {
    std::vector<std::string> arguments, environment;
    int code;
  };
  const Case cases[] = {
      {{"--colour"}, {}, 2},
      {{"surplus"}, {}, 2},
      {{"--port", "70000"}, {}, 2},
      {{"-ngl", "x"}, {}, 2},
      {{"-fa", "maybe"}, {}, 2},
      {{"-ctk", "q9"}, {}, 2},
      {{"--log-level", "loud"}, {}, 2},
      {{"--rpc", "nowhere"}, {}, 2},
      {{}, {"TT_CTX_SIZE=many"}, 2},
      {{"--help"}, {}, 0},
      {{"--version"}, {}, 0},
      {{"--data-dir", "/proc/nothing"}, {}, 1},
      {{"--host", "nowhere.invalid", "--data-dir", "/tmp"}, {}, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments.empty() ? c.environment.front() : c.arguments.front());
    Program program(c.arguments, c.environment);
    EXPECT_EQ(program.wait(), c.code);
  }
}

TEST(Program, TakesLlamaCppsNamesAndTheEnvironment) {
  const testing::TempFolder folder;
  Program program({"-c", "256", "-ub", "128", "-b", "128", "-t", "1", "-tb", "1", "-ngl", "0",
                   "-fa", "on", "-ctk", "f16", "-ctv", "f16", "--no-mmap"},
                  {"TT_PORT=0", "TT_DATA_DIR=" + folder.path().string()});
  const std::string url = program.read_line();
  ASSERT_TRUE(url.starts_with("http://127.0.0.1:")) << url;
  httplib::Client client(url);
  json model = json::object();
  for (int i = 0; i < 1000 && model.value("state", "loading") == "loading"; ++i) {
    std::this_thread::sleep_for(10ms);
    const auto models = client.Get("/api/v1/models");
    ASSERT_TRUE(static_cast<bool>(models));
    model = json::parse(models->body)["models"].at(0);
  }
  EXPECT_EQ(model["context"], 256);
  EXPECT_EQ(model["threads"], 1);
}

TEST(Program, EveryOptionIsDocumentedAndHasAVariable) {
  Program program({"--help"});
  const std::string help = program.read_all();
  for (const char* name :
       {"MODEL",         "N_GPU_LAYERS", "MMAP",         "MLOCK",        "REPACK",
        "RPC",           "CTX_SIZE",     "BATCH_SIZE",   "UBATCH_SIZE",  "THREADS",
        "THREADS_BATCH", "FLASH_ATTN",   "CACHE_TYPE_K", "CACHE_TYPE_V", "HOST",
        "PORT",          "DATA_DIR",     "WEBUI",        "LOG_LEVEL",    "LOG_JSON"}) {
    EXPECT_NE(help.find(std::string("TT_") + name + ")"), std::string::npos) << name;
  }
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace tt
