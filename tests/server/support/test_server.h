// The server as main() sets it up, in this process, on a free port, with a temporary data
// folder; and a client for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/app/frontend_options.h"
#include "server/frontend/frontend.h"
#include "server/live/live_hub.h"
#include "server/live/session_listeners.h"
#include "server/models/model_manager.h"
#include "server/routes/routes.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/server/live/live_client.h"
#include "tests/support/models/backends.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/sandbox/sandbox.h"

namespace httplib {
class Client;
}

namespace tt::test {

using nlohmann::json;
using namespace std::chrono_literals;

struct TestResponse {
  int status = 0;
  json body;
  std::string type;
};

struct TestServerOptions {
  std::filesystem::path model = kTestPaths.bundled_model;  // empty: none
  std::filesystem::path models{};                          // model folder; empty: none
  std::size_t models_loaded = 1;
  std::filesystem::path worker = kTestPaths.worker;
  bool check_models = false;  // in a child process
  ContextOptions context{.context = 1024, .batch = 1024, .ubatch = 1024, .threads = 1};
  HttpFrontendOptions frontend = frontend_options({});
  LiveLimits live{};
  std::filesystem::path page = "/nonexistent";
  std::filesystem::path data{};  // session folder; empty: temporary
  std::vector<std::filesystem::path> elsewhere{};
  RetentionOptions retention{.max_age = {}, .keep_bytes = {}, .disk_reserve = 0};
  UtcClock now = utc_now_ns;
};

class TestServer {
 public:
  explicit TestServer(const TestServerOptions& options = {});
  ~TestServer();
  void stop();

  TestResponse get(const std::string& path);
  TestResponse del(const std::string& path);
  TestResponse post(const std::string& path, const std::string& body,
                    const std::string& type = "application/json");
  TestResponse patch(const std::string& path, const json& body);
  httplib::Client client() const;  // callers include httplib.h
  bool wait_until_loaded();
  // Sends a generation request that must be accepted; returns its id.
  std::string generate(const json& body);
  json state_of(const std::string& id);
  json wait_for_end(const std::string& id);

  TempFolder folder;
  const std::filesystem::path data;
  CacheRoom caches;
  IndexCache indexes{caches};
  TotalsCache totals{caches};
  QueryQueue queue{caches};
  SessionStore sessions;
  std::vector<std::string> removed;  // by retention
  Retention retention;
  StaticFiles page;
  RouteContract contract;
  LiveHub hub;
  Metrics metrics;
  HttpFrontend frontend;
  GenerationStreams streams;
  SessionListeners listeners;
  Sandbox sandbox;
  StatementCheck statements{&sandbox};
  ModelManager model_manager;
  std::uint16_t port = 0;
};

}  // namespace tt::test
