#include "tests/server/support/test_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <optional>

#include "api/openapi/openapi.h"
#include "server/models/debug_requests.h"
#include "tests/server/support/http_client.h"
#include "tests/support/wait.h"
#include "tracer/engine/backends.h"

namespace tt::test {

namespace {

HttpFrontendOptions with_live_limits(HttpFrontendOptions options) {
  options.websocket_message_bytes = kMaxCommandBytes;
  return options;
}

TestResponse to_test_response(const httplib::Result& result) {
  if (!result) return {};
  return {.status = result->status,
          .body = json::parse(result->body, nullptr, false),
          .type = result->get_header_value("Content-Type")};
}

}  // namespace

TestServer::TestServer(const TestServerOptions& options)
    : data(options.data.empty() ? folder.path() : options.data),
      sessions(data, options.elsewhere, options.now),
      retention(
          sessions, options.retention,
          [this](const RemovedSession& session) { removed.push_back(session.id); }, options.now),
      page(options.page),
      contract(openapi_json()),
      frontend(with_live_limits(options.frontend), hub),
      listeners({&hub, &metrics, &streams}),
      sandbox(options.worker),
      model_manager({.folder = options.models,
                     .model = {.path = options.model},
                     .context = options.context,
                     .max_loaded = options.models_loaded,
                     .data_dir = data,
                     .sandbox = &sandbox,
                     .check_models = options.check_models},
                    listeners) {
  hub.start({.send = [this](auto client, auto opcode,
                            auto message) { return frontend.send(client, opcode, message); },
             .close = [this](auto client, auto code) { frontend.close(client, code); },
             .pause = [this](auto client, auto time) { frontend.pause(client, time); },
             .status = [this](const std::string& id) { return model_manager.status(id); },
             .in_flight = [this](const std::string& id,
                                 std::uint32_t from) { return model_manager.in_flight(id, from); },
             .open = [this](const std::string& id) { return sessions.open(id); },
             .debug =
                 [this](const std::string& id, const std::optional<DebugCommand>& command) {
                   return debug_request(model_manager, id, command);
                 }},
            options.live);
  add_all_routes(frontend.http(), {.recorded = {.sessions = sessions,
                                                .retention = retention,
                                                .caches = caches,
                                                .indexes = indexes,
                                                .totals = totals,
                                                .queue = queue,
                                                .statements = statements,
                                                .page = page},
                                   .model_manager = model_manager,
                                   .streams = streams,
                                   .hub = hub,
                                   .metrics = metrics,
                                   .page = page,
                                   .contract = contract,
                                   .data_dir = data,
                                   .log_lines_lost = [] { return 0; }});
  const auto address = frontend.start("127.0.0.1", 0);
  EXPECT_TRUE(address.has_value());
  if (address) port = address->port;
}

TestServer::~TestServer() { stop(); }

void TestServer::stop() {
  model_manager.stop();
  hub.stop();
  frontend.stop();
  queue.join();
}

TestResponse TestServer::get(const std::string& path) {
  return to_test_response(get_when_computed(client(), path));
}

TestResponse TestServer::del(const std::string& path) {
  return to_test_response(client().Delete(path));
}

TestResponse TestServer::post(const std::string& path, const std::string& body,
                              const std::string& type) {
  return to_test_response(client().Post(path, body, type));
}

TestResponse TestServer::patch(const std::string& path, const json& body) {
  return to_test_response(client().Patch(path, body.dump(), "application/json"));
}

httplib::Client TestServer::client() const {
  httplib::Client client = http_client("http://127.0.0.1:" + std::to_string(port));
  // To compress and decompress an answer takes as long as to compute it; tests of it set the
  // header.
  client.set_default_headers({{"Accept-Encoding", "identity"}});
  return client;
}

bool TestServer::wait_until_loaded() {
  std::optional<ModelEntry> now;
  return wait_until([&] {
           now = model_manager.current();
           return !now || now->state != ModelState::Loading;
         }) &&
         now && now->state == ModelState::Loaded;
}

std::string TestServer::generate(const json& body) {
  const TestResponse accepted = post("/api/v1/generate", body.dump());
  EXPECT_EQ(accepted.status, 202) << accepted.body;
  return accepted.status == 202 ? accepted.body["id"].get<std::string>() : "";
}

json TestServer::state_of(const std::string& id) { return get("/api/v1/generate/" + id).body; }

json TestServer::wait_for_end(const std::string& id) {
  json last;
  EXPECT_TRUE(wait_until([&] {
    last = state_of(id);
    return last["state"] != "queued" && last["state"] != "running";
  }));
  return last;
}

}  // namespace tt::test
