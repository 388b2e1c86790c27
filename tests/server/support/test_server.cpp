#include "tests/server/support/test_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <optional>
#include <thread>

#include "api/openapi/openapi.h"
#include "tests/server/support/http_client.h"
#include "tracer/engine/backends.h"

namespace tt::test {

namespace {

DoorOptions with_live_limits(DoorOptions options) {
  options.websocket_message_bytes = kMostCommandBytes;
  return options;
}

Answer answer_of(const httplib::Result& result) {
  if (!result) return {};
  return {.status = result->status,
          .body = json::parse(result->body, nullptr, false),
          .type = result->get_header_value("Content-Type")};
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TestServer::TestServer(const TestServerOptions& options)
    : data(options.data.empty() ? folder.path() : options.data),
      sessions(data, options.elsewhere, options.now),
      retention(
          sessions, options.retention,
          [this](const RemovedSession& session) { removed.push_back(session.id); }, options.now),
      page(options.page),
      contract(openapi_json()),
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
  add_export_routes(door.http(), sessions, retention);
  add_server_routes(door.http(), retention, data, [this](ServerFacts& facts) {
    facts.live_clients = static_cast<std::uint32_t>(hub.connected());
    facts.models_dir = shelf.options().folder.string();
    facts.models_loaded_limit = static_cast<std::uint32_t>(shelf.options().most_loaded);
    facts.queue_limit = GenerationQueue::kMostQueued;
  });
  add_trace_routes(door.http(), sessions, indexes);
  add_heat_routes(door.http(), sessions, indexes);
  add_query_routes(door.http(), sessions, totals);
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

TestServer::~TestServer() { stop(); }

void TestServer::stop() {
  shelf.stop();
  hub.stop();
  door.stop();
}

Answer TestServer::get(const std::string& path) { return answer_of(client().Get(path)); }

Answer TestServer::del(const std::string& path) { return answer_of(client().Delete(path)); }

Answer TestServer::post(const std::string& path, const std::string& body, const std::string& type) {
  return answer_of(client().Post(path, body, type));
}

Answer TestServer::patch(const std::string& path, const json& body) {
  return answer_of(client().Patch(path, body.dump(), "application/json"));
}

httplib::Client TestServer::client() const {
  return http_client("http://127.0.0.1:" + std::to_string(port));
}

bool TestServer::wait_until_loaded() {
  std::optional<ModelEntry> now;
  return eventually([&] {
           now = shelf.current();
           return !now || now->state != ModelState::Loading;
         }) &&
         now && now->state == ModelState::Loaded;
}

std::string TestServer::generate(const json& body) {
  const Answer accepted = post("/api/v1/generate", body.dump());
  EXPECT_EQ(accepted.status, 202) << accepted.body;
  return accepted.status == 202 ? accepted.body["id"].get<std::string>() : "";
}

json TestServer::state_of(const std::string& id) { return get("/api/v1/generate/" + id).body; }

json TestServer::when_ended(const std::string& id) {
  json last;
  EXPECT_TRUE(eventually([&] {
    last = state_of(id);
    return last["state"] != "queued" && last["state"] != "running";
  }));
  return last;
}

}  // namespace tt::test
