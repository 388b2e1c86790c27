// tt-server as a separate process, and a running server with a client.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/fair_clock.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"

namespace tt::test {

using nlohmann::json;
using namespace std::chrono_literals;
using Clock = FairClock;  // for bounds on times

// A child process. stdout is a pipe, stderr goes to a file. The destructor kills it if it still
// runs.
class Program {
 public:
  Program(std::vector<std::string> arguments, std::vector<std::string> environment = {},
          const std::string& program = kTestPaths.server);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) { kill(pid_, number); }
  std::string stderr_text() const;  // stderr so far
  std::string read_line();
  std::string read_all();
  // The exit code; -signal when it was killed; -1000 on timeout.
  int wait(std::chrono::milliseconds timeout = 30s);

 private:
  // Of the process, and of its children except those that reached a limit; built with
  // AddressSanitizer. The destructor makes them failures of the test.
  std::vector<std::string> sanitizer_reports() const;

  TempFolder folder_;
  pid_t pid_ = -1, started_ = -1;
  int out_ = -1;
};

struct RunningServer {
  // `before`: shell commands to run first, for example ulimit.
  explicit RunningServer(const std::filesystem::path& data, std::vector<std::string> more = {},
                         std::vector<std::string> environment = {},
                         const std::string& before = ":");
  static std::vector<std::string> arguments(const std::filesystem::path& data,
                                            std::vector<std::string> more);
  json get(const std::string& path);
  bool wait_until_loaded();
  // Loads a model; returns its error, empty: it is loaded.
  std::string load(const std::string& model, std::chrono::seconds limit = 60s);
  // Unloads it and waits; returns the HTTP status.
  int unload(const std::string& model);
  std::uint16_t port() const;
  // Waits for the end of a generation request and returns its status.
  json wait_for_end(const std::string& id);
  // Starts a long request; returns its id once some steps are in the file, empty on failure.
  std::string start_long_request();

  Program program;
  std::string url;
};

}  // namespace tt::test
