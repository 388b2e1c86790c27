// tt attach on real programs, and on a llama-server that answers requests.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/report/validation.h"
#include "tests/cli/tt_program.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

namespace fs = std::filesystem;

inline std::vector<fs::path> sessions_in(const fs::path& folder) {
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
  void expect_same(const fs::path& file, std::uint32_t steps = 6);
  test::TempFolder folder;
};

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

inline std::uint32_t steps_in(const std::vector<fs::path>& files) {
  if (files.empty()) return 0;
  const auto reader = SessionReader::open(files[0]);
  return reader ? reader->step_count().value_or(0) : 0;
}

// One request through a shell: curl is not needed.
inline std::string post(int port, const std::string& path, const std::string& body) {
  return std::format(
      "exec 3<>/dev/tcp/127.0.0.1/{0}; printf 'POST {1} HTTP/1.1\\r\\nHost: x\\r\\nConnection: "
      "close\\r\\nContent-Type: application/json\\r\\nContent-Length: {2}\\r\\n\\r\\n%s' '{3}' "
      ">&3; "
      "cat <&3",
      port, path, body.size(), body);
}

inline std::string completion(int port, const std::string& prompt, int tokens) {
  return post(port, "/completion",
              std::format(R"({{"prompt": "{}", "n_predict": {}, "ignore_eos": true, )"
                          R"("temperature": 0}})",
                          prompt, tokens));
}
class AttachServer : public Attach {
 protected:
  // Starts it and returns its port, which it prints.
  void start(const std::string& options, const std::string& attach_options = "") {
    // Below the ports that the system gives to others (32768 and above): a connection to one of
    // them would never be answered.
    port_ = 10'000 + static_cast<int>(getpid()) % 20'000;
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

}  // namespace tt
