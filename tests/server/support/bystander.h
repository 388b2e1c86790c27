// A client that uses a model of its own while a test sends the server something hostile. What it
// hears and what the server keeps for it must be whole.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/server/support/program.h"

namespace tt::test {

class Bystander {
 public:
  // Loads `model` and runs a first generation; then generates again and again, as a live client.
  // Every text must be the same, every session valid. The server permits another loaded model.
  Bystander(RunningServer& server, std::filesystem::path data, std::string model);
  ~Bystander() { stop(); }
  void stop();

  // Stops. EXPECTs that the first session is unchanged, and that no pause between two tokens was
  // longer than 2 s.
  void expect_undisturbed();
  std::size_t generations() const { return generations_; }

 private:
  std::string generate();
  void hear(const std::string& session);
  std::filesystem::path file_of(const std::string& session) const {
    return data_ / (session + ".ttrace");
  }

  RunningServer& server_;
  const std::filesystem::path data_;
  const std::string model_;
  std::string first_session_, first_bytes_, first_text_;
  std::size_t generations_ = 0;  // these are of the thread until it has ended
  std::chrono::nanoseconds longest_pause_{0};
  std::jthread thread_;
};

}  // namespace tt::test
