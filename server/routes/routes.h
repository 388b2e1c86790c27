// Registers the HTTP routes of api/openapi.yaml, by resource. Handlers run on several worker
// threads concurrently. All arguments must outlive the server.
#pragma once

#include <filesystem>
#include <functional>

#include "api/json/server_json.h"
#include "server/http/route_contract.h"
#include "server/http/static_files.h"
#include "server/live/generation_streams.h"
#include "server/models/model_manager.h"
#include "server/observability/metrics.h"
#include "server/sessions/retention.h"
#include "server/sessions/session_cache.h"
#include "server/sessions/session_store.h"

namespace httplib {
class Server;
}

namespace tt {

// Versions, host, disk space. `rest` fills in the values of other components: models, clients,
// queue.
void add_server_routes(httplib::Server& http, const Retention& retention,
                       const std::filesystem::path& data_dir,
                       std::function<void(ServerInfo&)> rest);
void add_model_routes(httplib::Server& http, ModelManager& model_manager);
void add_gguf_routes(httplib::Server& http, ModelManager& model_manager);
void add_generate_routes(httplib::Server& http, ModelManager& model_manager,
                         GenerationStreams& streams, Retention& retention);
void add_session_routes(httplib::Server& http, SessionStore& sessions);
// Download and import of session files.
void add_session_file_routes(httplib::Server& http, SessionStore& sessions, Retention& retention);
// Export in the formats of other tools.
void add_export_routes(httplib::Server& http, SessionStore& sessions, Retention& retention);
// Recorded data: tokens, templates, nodes, tensors, steps, ops, accesses.
void add_trace_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes);
// Aggregates: heat maps, breakdowns, hot and cold data, sequentiality.
void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes);
// SQL queries on a session.
void add_query_routes(httplib::Server& http, SessionStore& sessions, TotalsCache& totals);
// Graphs of layers, steps and templates as JSON and DOT; compressibility of the weights.
void add_graph_routes(httplib::Server& http, SessionStore& sessions);
// Expert usage.
void add_expert_routes(httplib::Server& http, SessionStore& sessions);
// Attention heads and the KV cache.
void add_head_routes(httplib::Server& http, SessionStore& sessions);
// Order of weight reads and cache hit estimates.
void add_pattern_routes(httplib::Server& http, SessionStore& sessions);
// Validation, comparison, report.
void add_report_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes);
void add_metrics_routes(httplib::Server& http, const Metrics& metrics, MetricsCallbacks callbacks);
// /api/openapi.json, and the API reference page /api/docs if `page` contains it.
void add_docs_routes(httplib::Server& http, const StaticFiles& page);
// Call last: files of the web UI and 404 for everything else. Also installs the check of
// methods and query parameters.
void add_page_routes(httplib::Server& http, const StaticFiles& files,
                     const RouteContract& contract);

}  // namespace tt
