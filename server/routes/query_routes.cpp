// SQL queries on a session, or on several. A statement occupies a worker while it runs, so only a
// few run concurrently; its time and memory are limited (statement_check.h, analysis/sql/query.h).
// If it has no rows in time, its response is begun without them.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/exchange/columnar/query_parquet.h"
#include "api/json/query_json.h"
#include "api/json/set_json.h"
#include "server/frontend/arrival.h"
#include "server/http/concurrency_limit.h"
#include "server/http/responses.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/set_selection.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr int kMaxQueries = 2;
constexpr std::size_t kOpenSessions = 4;  // of a set; each has decoded graphs in memory
// Checked between instructions, each of which can allocate a few values of 256 KiB more.
constexpr std::uint64_t kMaxQueryMemory = 160u << 20;
constexpr std::size_t kChunkBytes = 64u << 10;  // response buffer size
constexpr std::chrono::seconds kPatience{4};    // from the arrival of a request to its response
constexpr std::chrono::milliseconds kDisconnectCheckInterval{200};

std::unique_ptr<QueryWriter> writer_of(QueryFormat format,
                                       const std::vector<std::string>& columns) {
  if (format == QueryFormat::Parquet) return std::make_unique<exchange::QueryParquet>(columns);
  return std::make_unique<QueryText>(format, columns);
}

// Streams the rows of a query in chunks; a Parquet file is one chunk, its last.
class Rows {
 public:
  Rows(sql::Query query, QueryFormat format, ConcurrencyLimit::Slot slot)
      : slot_(std::move(slot)),
        query_(std::move(query)),
        writer_(writer_of(format, query_.columns())) {
    writer_->begin(buffer_);
  }

  // Fills the buffer for the first time, on a thread of its own. Returns whether it is full or the
  // query has ended by `deadline`; the functions below except send() are called only then.
  bool fill_until(std::chrono::steady_clock::time_point deadline) {
    // Deferred (until first_error()) only if no thread can be started.
    first_ = std::async(std::launch::async | std::launch::deferred, [this] { return fill(); });
    return first_.wait_until(deadline) != std::future_status::timeout;
  }
  std::optional<sql::QueryError> first_error() { return first_.get(); }
  bool ended() const { return ended_; }
  std::optional<std::uint32_t> readable_steps() const { return query_.readable_steps(); }
  std::string take() { return std::exchange(buffer_, {}); }

  // Returns false when the client has disconnected, or when an error cannot be represented in
  // the format.
  bool send(httplib::DataSink& sink) {
    if (first_.valid()) {
      if (first_.wait_for(kDisconnectCheckInterval) == std::future_status::timeout)
        return sink.is_writable();
      if (const auto error = first_.get()) complete_ = writer_->end(false, &*error, buffer_);
    }
    sent_ = true;
    fill();
    const std::string chunk = take();
    if (!chunk.empty() && !sink.write(chunk.data(), chunk.size())) return false;
    if (!ended_) return true;
    if (complete_) sink.done();
    return complete_;
  }

 private:
  // Fills the buffer until it is full or the query has ended. Returns an error only before
  // anything was sent.
  std::optional<sql::QueryError> fill() {
    while (!ended_ && buffer_.size() < kChunkBytes) {
      auto row = query_.next();
      if (row && *row != nullptr) {
        const auto written = writer_->row(**row, buffer_);
        if (written) continue;
        row = std::unexpected(written.error());
      }
      ended_ = true;
      if (!row && !sent_) return row.error();
      complete_ = writer_->end(query_.truncated(), row ? nullptr : &row.error(), buffer_);
    }
    return std::nullopt;
  }

  ConcurrencyLimit::Slot slot_;
  sql::Query query_;
  std::unique_ptr<QueryWriter> writer_;
  std::string buffer_;
  bool sent_ = false, ended_ = false, complete_ = true;
  std::future<std::optional<sql::QueryError>> first_;  // last: its thread uses the others
};

// Runs a statement and sends its rows. `prepare(limits, keep_going)` opens the sessions.
template <class Prepare>
void run(const QueryBody& body, sql::TablesOf tables, StatementCheck& statements,
         ConcurrencyLimit& limit, const Request& request, Response& response, Prepare prepare) {
  auto slot = limit.take();
  if (!slot) {
    return respond(response, Problem{ErrorCode::TooManyQueries,
                                     "Too many statements are running. Try again in a moment."});
  }
  const ContinueCheck connected = while_connected(request);
  if (const auto planned = statements.check(body.sql, connected, tables); !planned)
    return respond(response, planned.error());
  auto query = prepare({.time = body.timeout,
                        .rows = body.limit,
                        .memory = kMaxQueryMemory,
                        .bounded_values = true,
                        .open_sessions = kOpenSessions},
                       connected);
  if (!query) return respond(response, problem_of(query.error()));
  const auto rows = std::make_shared<Rows>(*std::move(query), body.format, *std::move(slot));
  response.set_header("Cache-Control", "no-store");
  const char* type = content_type_of(body.format);
  if (rows->fill_until(arrival_of(request) + kPatience)) {
    if (const auto error = rows->first_error()) return respond(response, problem_of(*error));
    set_damage_header(response, rows->readable_steps());
    if (rows->ended()) return response.set_content(rows->take(), type);
  }
  response.set_chunked_content_provider(
      type, [rows](std::size_t, httplib::DataSink& sink) { return rows->send(sink); });
}

void run_on_session(SessionStore& sessions, TotalsCache& totals, StatementCheck& statements,
                    ConcurrencyLimit& limit, const Request& request, Response& response) {
  const auto body = parse_query_body(request.body);
  if (!body) return respond(response, body.error());
  const std::string& id = request.path_params.at("id");
  const auto tag = sessions.tag(id);  // before opening: the file may change while rows are sent
  auto reader = sessions.open(id);
  if (!reader) return respond(response, problem_of(reader.error()));
  const auto prepare = [&](const sql::QueryLimits& limits, const ContinueCheck& connected) {
    return sql::Query::prepare(
        *std::move(reader), body->sql, limits, connected,
        [&totals, id, tag](auto times, const SessionReader& of, const ContinueCheck& keep_going) {
          return totals.get_or_build(times, id, tag, of, keep_going);
        });
  };
  run(*body, sql::TablesOf::Session, statements, limit, request, response, prepare);
}

void run_on_set(SessionStore& sessions, StatementCheck& statements, ConcurrencyLimit& limit,
                const Request& request, Response& response) {
  const auto body = parse_set_query_body(request.body);
  if (!body) return respond(response, body.error());
  const auto ids = select_set(sessions, body->sessions, kMaxQuerySessions);
  if (!ids) return respond(response, ids.error());
  const auto prepare = [&](const sql::QueryLimits& limits, const ContinueCheck& connected) {
    const auto open = [&sessions, ids = *ids](std::size_t i) { return sessions.open(ids[i]); };
    return sql::Query::prepare({.names = *ids, .open = open}, body->query.sql, limits, connected);
  };
  run(body->query, sql::TablesOf::Set, statements, limit, request, response, prepare);
}

}  // namespace

void add_query_routes(httplib::Server& http, SessionStore& sessions, TotalsCache& totals,
                      StatementCheck& statements) {
  const auto limit = std::make_shared<ConcurrencyLimit>(kMaxQueries);
  http.Post("/api/v1/sessions/:id/query", [&, limit](const Request& request, Response& response) {
    run_on_session(sessions, totals, statements, *limit, request, response);
  });
  http.Post("/api/v1/sets/query", [&, limit](const Request& request, Response& response) {
    run_on_set(sessions, statements, *limit, request, response);
  });
}

}  // namespace tt
