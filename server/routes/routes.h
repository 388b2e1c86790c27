// The HTTP routes of api/openapi.yaml, by resource. Handlers parse, call and
// answer; they run on the door's workers, several at a time. What they are
// given outlives the server.
#pragma once

#include <filesystem>
#include <functional>

#include "api/json/server_json.h"
#include "server/http/route_contract.h"
#include "server/http/static_files.h"
#include "server/live/generation_streams.h"
#include "server/models/model_shelf.h"
#include "server/observability/metrics.h"
#include "server/sessions/retention.h"
#include "server/sessions/session_shelf.h"
#include "server/sessions/session_store.h"

namespace httplib {
class Server;
}

namespace tt {

// Versions, machine, room. `rest` adds what others know: models, clients, queue.
void add_server_routes(httplib::Server& http, const Retention& retention,
                       const std::filesystem::path& data_dir,
                       std::function<void(ServerFacts&)> rest);
void add_model_routes(httplib::Server& http, ModelShelf& shelf);
void add_gguf_routes(httplib::Server& http, ModelShelf& shelf);
void add_generate_routes(httplib::Server& http, ModelShelf& shelf, GenerationStreams& streams,
                         Retention& retention);
void add_session_routes(httplib::Server& http, SessionStore& sessions);
// The files of sessions: download and import.
void add_session_file_routes(httplib::Server& http, SessionStore& sessions, Retention& retention);
// A session in the formats of other tools.
void add_export_routes(httplib::Server& http, SessionStore& sessions, Retention& retention);
// What a session recorded: tokens, templates, nodes, tensors, steps, ops, accesses.
void add_trace_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes);
// Where its bytes, accesses and times went: pictures, breakdowns, the order of reads.
void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes);
// SQL over a session.
void add_query_routes(httplib::Server& http, SessionStore& sessions, TotalsShelf& totals);
// Layers of it, and whole graphs, as JSON and as DOT; how small its weights are.
void add_graph_routes(httplib::Server& http, SessionStore& sessions);
// How experts were used.
void add_expert_routes(httplib::Server& http, SessionStore& sessions);
// Attention heads and the KV cache.
void add_head_routes(httplib::Server& http, SessionStore& sessions);
// The order in which weights are read, and what memory would save of it.
void add_pattern_routes(httplib::Server& http, SessionStore& sessions);
// What is said about sessions as a whole: whether a recording is sound, what two
// of them have in common, and the report.
void add_report_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes);
void add_metrics_routes(httplib::Server& http, const Metrics& metrics, MetricsPorts ports);
// The contract: /api/openapi.json, and as a page, /api/docs, where `page` has it.
void add_docs_routes(httplib::Server& http, const StaticFiles& page);
// Last: everything else is a file of the page, or is not there. From here on
// unknown methods and query parameters are refused.
void add_page_routes(httplib::Server& http, const StaticFiles& files,
                     const RouteContract& contract);

}  // namespace tt
