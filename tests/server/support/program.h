// tt-server as a program of its own, and a running one with a client.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/places.h"
#include "tests/support/temp_folder.h"

namespace tt::test {

using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A started program whose stdout is read and whose stderr is kept; ended with
// the object if it still runs.
class Program {
 public:
  Program(std::vector<std::string> arguments, std::vector<std::string> environment = {},
          const std::string& program = kPlaces.server);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) { kill(pid_, number); }
  std::string said() const;  // on stderr, so far
  std::string read_line();
  std::string read_all();
  // The exit code; -signal when it was killed; -1000 when it still runs.
  int wait(std::chrono::milliseconds patience = 30s);

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  int out_ = -1;
};

struct Running {
  // `before`: what a shell does first, as to lower a limit.
  explicit Running(const std::filesystem::path& data, std::vector<std::string> more = {},
                   std::vector<std::string> environment = {}, const std::string& before = ":");
  static std::vector<std::string> arguments(const std::filesystem::path& data,
                                            std::vector<std::string> more);
  json get(const std::string& path);
  bool loaded();
  std::uint16_t port() const;
  // The status of a request, once it has ended.
  json ended(const std::string& id);
  // Its id, once some steps of it are in the file.
  std::string start_endless();

  Program program;
  std::string url;
};

}  // namespace tt::test
