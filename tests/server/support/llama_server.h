// llama-server of the environment: what other programs answer to the same request.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/wait.h"

namespace tt::test {

inline std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

// Starts with one slot and one thread.
class LlamaServer {
 public:
  // Whether it is a test failure if it does not start, as with a chat template that it rejects.
  enum class Refusal : std::uint8_t { Fails, Allowed };

  explicit LlamaServer(const std::filesystem::path& model, std::vector<std::string> more = {},
                       Refusal refusal = Refusal::Fails)
      : port_(free_port()), program_(arguments(model, port_, std::move(more)), {}, "llama-server") {
    httplib::Client client = this->client();
    static_cast<void>(wait_until([&] {
      const auto health = client.Get("/health");
      started_ = health && health->status == 200;
      return started_ || kill(program_.pid(), 0) != 0 ||
             program_.stderr_text().contains("chat template is not supported");
    }));
    EXPECT_TRUE(started_ || refusal == Refusal::Allowed)
        << "llama-server does not start: " << program_.stderr_text();
  }

  bool started() const { return started_; }
  std::string log() const { return program_.stderr_text(); }
  httplib::Client client() const {
    return http_client("http://127.0.0.1:" + std::to_string(port_));
  }
  // The response to POST /completion; null if it is not 200.
  json completion(const json& body) const {
    const auto answer = client().Post("/completion", body.dump(), "application/json");
    EXPECT_TRUE(answer && answer->status == 200) << body << (answer ? answer->body : "no answer");
    return answer && answer->status == 200 ? json::parse(answer->body) : json();
  }

 private:
  static std::vector<std::string> arguments(const std::filesystem::path& model, std::uint16_t port,
                                            std::vector<std::string> more) {
    std::vector<std::string> all = {
        "-m",         model.string(), "--host", "127.0.0.1", "--port", std::to_string(port),
        "--no-webui", "-t",           "1",      "-tb",       "1",      "-np",
        "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const std::uint16_t port_;
  const Program program_;
  bool started_ = false;
};

}  // namespace tt::test
