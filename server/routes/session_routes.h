// Registers the HTTP routes of recorded sessions, which need no model: library session_server,
// without llama.cpp. Handlers run on several worker threads concurrently. All arguments must
// outlive the server.
#pragma once

#include "server/http/query_queue.h"
#include "server/http/route_contract.h"
#include "server/http/statement_check.h"
#include "server/http/static_files.h"
#include "server/sessions/retention.h"
#include "server/sessions/session_cache.h"
#include "server/sessions/session_store.h"

namespace httplib {
class Server;
}

namespace tt {

// What the routes use.
struct SessionServices {
  SessionStore& sessions;
  Retention& retention;
  CacheRoom& caches;  // of the two caches below
  IndexCache& indexes;
  TotalsCache& totals;
  QueryQueue& queue;
  StatementCheck& statements;
  const StaticFiles& page;
};

// All routes of this header except those of the page.
void add_session_routes(httplib::Server& http, const SessionServices& services);

// The parts of add_session_routes(), by resource.
// List, rename, delete, restore.
void add_session_list_routes(httplib::Server& http, SessionStore& sessions);
// Export in the formats of other tools, and as one file with the page.
void add_export_routes(httplib::Server& http, SessionStore& sessions, Retention& retention,
                       const StaticFiles& page);
// Recorded data: tokens, templates, nodes, tensors, steps, ops, accesses.
void add_trace_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                      QueryQueue& queue);
// The analyses of analysis/analyses.h.
void add_analysis_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                         QueryQueue& queue);
// Captured values of an op: picture, file.
void add_values_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue);
// Heat maps, memory maps and timelines.
void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                     QueryQueue& queue);
// SQL queries on a session, or on several.
void add_query_routes(httplib::Server& http, SessionStore& sessions, TotalsCache& totals,
                      StatementCheck& statements);
// Comparison of two sets of sessions, and what holds for other sessions.
void add_set_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                    QueryQueue& queue);
// Graphs of layers, steps and templates as JSON and DOT.
void add_graph_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue);
// Validation, comparison of two sessions, findings, report.
void add_report_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                       QueryQueue& queue);

// Call last: files of the web UI and 404 for everything else. Also installs the check of paths,
// methods and query parameters against the contract.
void add_page_routes(httplib::Server& http, const StaticFiles& files,
                     const RouteContract& contract);

}  // namespace tt
