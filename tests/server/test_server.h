// The server as main wires it, in this process, on a free port, with a folder
// of its own; and a client for it.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/openapi/openapi.h"
#include "server/door/door.h"
#include "server/door_options.h"
#include "server/live_hub.h"
#include "server/model_shelf.h"
#include "server/routes.h"
#include "server/session_listeners.h"
#include "tests/format/temp_folder.h"
#include "tests/places.h"
#include "tests/server/live_listener.h"
#include "tests/server_door/raw_client.h"
#include "tracer/backends.h"

namespace tt::test {

using nlohmann::json;
using namespace std::chrono_literals;

inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds patience = 60s) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

struct Answer {
  int status = 0;
  json body;
  std::string type;
};

struct TestServerOptions {
  std::filesystem::path model = kPlaces.bundled_model;  // empty: none
  std::filesystem::path models{};                       // folder of others; empty: none
  std::size_t models_loaded = 1;
  std::filesystem::path checker{};  // empty: not tried first
  ContextOptions context{.context = 1024, .batch = 1024, .ubatch = 1024, .threads = 1};
  DoorOptions door = door_options({});
  LiveLimits live{};
  std::filesystem::path page = "/nonexistent";
  std::filesystem::path data{};  // folder of the sessions; empty: one of its own
  std::vector<std::filesystem::path> elsewhere{};
  RetentionOptions retention{.keep_for = {}, .keep_bytes = {}, .disk_reserve = 0};
  UtcClock now = utc_now_ns;
};

class TestServer {
 public:
  explicit TestServer(const TestServerOptions& options = {})
      : data(options.data.empty() ? folder.path() : options.data),
        sessions(data, options.elsewhere, options.now),
        retention(
            sessions, options.retention,
            [this](const RemovedSession& gone) { removed.push_back(gone.id); }, options.now),
        page(options.page),
        door(with_live_limits(options.door), hub),
        listeners({&hub, &metrics, &streams}),
        shelf({.folder = options.models,
               .model = {.path = options.model},
               .context = options.context,
               .most_loaded = options.models_loaded,
               .data_dir = data,
               .checker = options.checker},
              listeners) {
    hub.start({.send = [this](auto client, auto opcode,
                              auto message) { return door.send(client, opcode, message); },
               .close = [this](auto client, auto code) { door.close(client, code); },
               .pause = [this](auto client, auto time) { door.pause(client, time); },
               .status = [this](const std::string& id) { return shelf.status(id); },
               .in_flight = [this](const std::string& id,
                                   std::uint32_t from) { return shelf.in_flight(id, from); },
               .open = [this](const std::string& id) { return sessions.open(id); }},
              options.live);
    add_model_routes(door.http(), shelf);
    add_gguf_routes(door.http(), shelf);
    add_generate_routes(door.http(), shelf, streams, retention);
    add_session_routes(door.http(), sessions);
    add_session_file_routes(door.http(), sessions, retention);
    add_export_routes(door.http(), sessions);
    add_server_routes(door.http(), retention, data, [this](ServerFacts& facts) {
      facts.live_clients = static_cast<std::uint32_t>(hub.connected());
      facts.models_dir = shelf.options().folder.string();
      facts.models_loaded_limit = static_cast<std::uint32_t>(shelf.options().most_loaded);
      facts.queue_limit = GenerationQueue::kMostQueued;
    });
    add_trace_routes(door.http(), sessions, indexes);
    add_heat_routes(door.http(), sessions, indexes);
    add_query_routes(door.http(), sessions);
    add_graph_routes(door.http(), sessions);
    add_expert_routes(door.http(), sessions);
    add_head_routes(door.http(), sessions);
    add_pattern_routes(door.http(), sessions);
    add_report_routes(door.http(), sessions, indexes);
    add_metrics_routes(door.http(), metrics,
                       {.live_clients = [this] { return hub.connected(); },
                        .live_frames_lost = [this] { return hub.figures().lost; },
                        .log_lines_lost = [] { return 0; },
                        .data_dir = data});
    add_docs_routes(door.http(), page);
    add_page_routes(door.http(), page, contract);
    const auto address = door.start("127.0.0.1", 0);
    EXPECT_TRUE(address.has_value());
    if (address) port = address->port;
  }
  ~TestServer() { stop(); }
  void stop() {
    shelf.stop();
    hub.stop();
    door.stop();
  }

  Answer get(const std::string& path) { return answer_of(client().Get(path)); }
  Answer del(const std::string& path) { return answer_of(client().Delete(path)); }
  Answer post(const std::string& path, const std::string& body,
              const std::string& type = "application/json") {
    return answer_of(client().Post(path, body, type));
  }
  Answer patch(const std::string& path, const json& body) {
    return answer_of(client().Patch(path, body.dump(), "application/json"));
  }
  httplib::Client client() const {
    httplib::Client made("127.0.0.1", port);
    made.set_read_timeout(60, 0);
    return made;
  }
  bool loaded() {
    std::optional<ModelEntry> now;
    return eventually([&] {
             now = shelf.current();
             return !now || now->state != ModelState::Loading;
           }) &&
           now && now->state == ModelState::Loaded;
  }
  // The id of an accepted request.
  std::string generate(const json& body) {
    const Answer accepted = post("/api/v1/generate", body.dump());
    EXPECT_EQ(accepted.status, 202) << accepted.body;
    return accepted.status == 202 ? accepted.body["id"].get<std::string>() : "";
  }
  json state_of(const std::string& id) { return get("/api/v1/generate/" + id).body; }
  json when_ended(const std::string& id) {
    json last;
    EXPECT_TRUE(eventually([&] {
      last = state_of(id);
      return last["state"] != "queued" && last["state"] != "running";
    }));
    return last;
  }

  testing::TempFolder folder;
  const std::filesystem::path data;
  IndexShelf indexes;
  SessionStore sessions;
  std::vector<std::string> removed;  // by retention
  Retention retention;
  StaticFiles page;
  RouteContract contract{openapi_json()};
  LiveHub hub;
  Metrics metrics;
  Door door;
  GenerationStreams streams;
  SessionListeners listeners;
  ModelShelf shelf;
  std::uint16_t port = 0;

 private:
  static DoorOptions with_live_limits(DoorOptions options) {
    options.websocket_message_bytes = kMostCommandBytes;
    return options;
  }
  static Answer answer_of(const httplib::Result& result) {
    if (!result) return {};
    return {.status = result->status,
            .body = json::parse(result->body, nullptr, false),
            .type = result->get_header_value("Content-Type")};
  }
};

inline void need_backends() {
  static const bool loaded = [] {
    load_backends({});
    return true;
  }();
  (void)loaded;
}

}  // namespace tt::test
