// An HTTP front end on a free port with a few routes and a WebSocket handler that records
// clients and echoes messages.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/frontend/frontend.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/support/wait.h"

namespace tt::test {

using namespace std::chrono_literals;

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// libwebsockets 4.3.5 leaks one eventfd per destroyed context.
inline constexpr std::size_t kLeakedDescriptors = 1;

class EchoHandler : public WebSocketHandler {
 public:
  HttpFrontend* frontend = nullptr;

  void on_open(ClientId client, const Upgrade& upgrade) override {
    const std::scoped_lock lock(mutex_);
    opened_.push_back(client);
    upgrades_.push_back(upgrade);
  }
  void on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) override {
    EXPECT_TRUE(frontend->send(client, opcode, message));
    if (const auto time = pause.load(); time > 0ms) frontend->pause(client, time);
  }
  void on_close(ClientId) override { ++closed; }

  ClientId wait_for_open(std::size_t index = 0) {
    EXPECT_TRUE(wait_until([&] { return open_count() > index; }));
    const std::scoped_lock lock(mutex_);
    return opened_.at(index);
  }
  Upgrade upgrade(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    return upgrades_.at(index);
  }
  std::size_t open_count() {
    const std::scoped_lock lock(mutex_);
    return opened_.size();
  }

  std::atomic<std::size_t> closed = 0;
  std::atomic<std::chrono::milliseconds> pause = 0ms;  // after each message

 private:
  std::mutex mutex_;
  std::vector<ClientId> opened_;
  std::vector<Upgrade> upgrades_;
};

class TestFrontend {
 public:
  explicit TestFrontend(HttpFrontendOptions options = {}, const std::string& host = "127.0.0.1")
      : frontend(with_echo(std::move(options)), recorder) {
    recorder.frontend = &frontend;
    auto& http = frontend.http();
    http.Get("/hello", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("hello", "text/plain");
    });
    http.Delete("/hello", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("gone", "text/plain");
    });
    // The headers that a handler sees.
    http.Get("/header", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(std::to_string(request.get_header_value("X-Long").size()), "text/plain");
    });
    http.Get("/seen", [](const httplib::Request& request, httplib::Response& response) {
      std::string names;
      for (const auto& [name, value] : request.headers) names += name + "\n";
      response.set_content(names, "text/plain");
    });
    http.Get("/api/v1/health", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(is_unauthenticated(request) ? "well" : "well, and much more",
                           "text/plain");
    });
    http.Get("/own-policy", [](const httplib::Request&, httplib::Response& response) {
      response.set_header("Content-Security-Policy", "default-src 'none'");
      response.set_content("own", "text/html");
    });
    http.Get("/json", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("{\"text\": \"" + std::string(5000, 'j') + "\"}", "application/json");
    });
    http.Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(request.body, "application/octet-stream");
    });
    http.Get("/stream", [this](const httplib::Request&, httplib::Response& response) {
      ++streams;
      response.set_chunked_content_provider(
          "text/event-stream",
          [this](std::size_t, httplib::DataSink& sink) {
            std::this_thread::sleep_for(5ms);  // the rate of this stream
            return !end_streams && sink.write("data: tick\n\n", 12);
          },
          [this](bool) { --streams; });
    });
    http.Get("/big", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(std::string(8 << 20, 'b'), "application/octet-stream");
    });
    http.Get("/slow", [this](const httplib::Request&, httplib::Response& response) {
      ++slow;
      EXPECT_TRUE(wait_until([this] { return end_slow.load(); }));
      response.set_content("slow", "text/plain");
    });
    const auto address = frontend.start(host, 0);
    EXPECT_TRUE(address.has_value());
    if (address) port = address->port;
  }

  // /echo accepts any body up to 1 MiB.
  static HttpFrontendOptions with_echo(HttpFrontendOptions options) {
    options.rules.body_rules.push_back({.path = "/echo", .type = "", .max_bytes = 1u << 20});
    return options;
  }

  std::atomic<int> streams = 0;
  std::atomic<int> slow = 0;  // number of started requests
  std::atomic<bool> end_streams = false;
  std::atomic<bool> end_slow = false;  // the requests wait for it
  EchoHandler recorder;
  HttpFrontend frontend;
  std::uint16_t port = 0;
};

}  // namespace tt::test
