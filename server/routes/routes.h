// Registers all HTTP routes of api/openapi.yaml. Handlers run on several worker threads
// concurrently. All arguments must outlive the server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "api/json/server_json.h"
#include "server/live/generation_streams.h"
#include "server/live/live_hub.h"
#include "server/models/model_manager.h"
#include "server/observability/metrics.h"
#include "server/routes/session_routes.h"

namespace tt {

// What the routes use.
struct RouteServices {
  SessionServices recorded;
  ModelManager& model_manager;
  GenerationStreams& streams;
  const LiveHub& hub;
  const Metrics& metrics;
  const StaticFiles& page;
  const RouteContract& contract;
  std::filesystem::path data_dir;
  std::filesystem::path program_file{};  // of RecordedProgram; empty: no program is recorded
  std::function<std::uint64_t()> log_lines_lost;
};

// The one place where the routes of the server are listed.
void add_all_routes(httplib::Server& http, const RouteServices& services);

// The parts of add_all_routes() that are not routes of recorded sessions (session_routes.h), by
// resource.
// Versions, host, disk space. `rest` fills in the values of other components: models, clients,
// queue.
void add_server_routes(httplib::Server& http, const Retention& retention,
                       const std::filesystem::path& data_dir,
                       std::function<void(ServerInfo&)> rest);
void add_model_routes(httplib::Server& http, ModelManager& model_manager);
// Values of the weights of model files. Errors can be weighed by what a session read.
void add_weights_routes(httplib::Server& http, ModelManager& model_manager, SessionStore& sessions,
                        QueryQueue& queue);
void add_gguf_routes(httplib::Server& http, ModelManager& model_manager);
void add_generate_routes(httplib::Server& http, ModelManager& model_manager,
                         GenerationStreams& streams, Retention& retention);
void add_debug_routes(httplib::Server& http, ModelManager& model_manager);
// Download and import of session files.
void add_session_file_routes(httplib::Server& http, SessionStore& sessions, Retention& retention);
void add_metrics_routes(httplib::Server& http, const Metrics& metrics, MetricsCallbacks callbacks);
// /api/openapi.json, and the API reference page /api/docs if `page` contains it.
void add_docs_routes(httplib::Server& http, const StaticFiles& page);

}  // namespace tt
