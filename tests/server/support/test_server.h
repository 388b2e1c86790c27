// The server as main() sets it up, in this process, on a free port, with a temporary data
// folder; and a client for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/app/door_options.h"
#include "server/door/door.h"
#include "server/live/live_hub.h"
#include "server/live/session_listeners.h"
#include "server/models/model_shelf.h"
#include "server/routes/routes.h"
#include "tests/server/door/raw_client.h"
#include "tests/server/live/live_listener.h"
#include "tests/support/models/backends.h"
#include "tests/support/places.h"
#include "tests/support/temp_folder.h"

namespace httplib {
class Client;
}

namespace tt::test {

using nlohmann::json;
using namespace std::chrono_literals;

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience = 60s);

struct Answer {
  int status = 0;
  json body;
  std::string type;
};

struct TestServerOptions {
  std::filesystem::path model = kPlaces.bundled_model;  // empty: none
  std::filesystem::path models{};                       // model folder; empty: none
  std::size_t models_loaded = 1;
  std::filesystem::path checker{};  // empty: models are not checked in a child process
  ContextOptions context{.context = 1024, .batch = 1024, .ubatch = 1024, .threads = 1};
  DoorOptions door = door_options({});
  LiveLimits live{};
  std::filesystem::path page = "/nonexistent";
  std::filesystem::path data{};  // session folder; empty: temporary
  std::vector<std::filesystem::path> elsewhere{};
  RetentionOptions retention{.keep_for = {}, .keep_bytes = {}, .disk_reserve = 0};
  UtcClock now = utc_now_ns;
};

class TestServer {
 public:
  explicit TestServer(const TestServerOptions& options = {});
  ~TestServer();
  void stop();

  Answer get(const std::string& path);
  Answer del(const std::string& path);
  Answer post(const std::string& path, const std::string& body,
              const std::string& type = "application/json");
  Answer patch(const std::string& path, const json& body);
  httplib::Client client() const;  // callers include httplib.h
  bool wait_until_loaded();
  // Sends a generation request that must be accepted; returns its id.
  std::string generate(const json& body);
  json state_of(const std::string& id);
  json when_ended(const std::string& id);

  TempFolder folder;
  const std::filesystem::path data;
  IndexShelf indexes;
  TotalsShelf totals;
  SessionStore sessions;
  std::vector<std::string> removed;  // by retention
  Retention retention;
  StaticFiles page;
  RouteContract contract;
  LiveHub hub;
  Metrics metrics;
  Door door;
  GenerationStreams streams;
  SessionListeners listeners;
  ModelShelf shelf;
  std::uint16_t port = 0;
};

}  // namespace tt::test
