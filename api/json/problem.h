// Errors of the HTTP API: RFC 9457 (application/problem+json) with one table of codes.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "tracer/format/model/trace_error.h"
#include "tracer/request/job.h"

namespace tt {

// All error codes visible to clients: `code` in the body and in openapi.yaml. The table in
// problem.cpp maps each to an HTTP status.
enum class ErrorCode {
  BadJson,          // bad_json: the body is not a JSON object
  BadRequest,       // bad_request: a field or parameter is invalid
  BadPrompt,        // bad_prompt: valid, but unsupported by this model
  TooLong,          // too_long: the prompt has too many tokens
  BodyTooLarge,     // body_too_large
  NotFound,         // not_found: no such route, session, step or request
  Damaged,          // session_damaged
  NotASession,      // not_a_session
  NewerVersion,     // newer_version: written by a newer tensor-trace
  DiskFull,         // disk_full
  StorageFailed,    // storage_failed: I/O error
  SessionRunning,   // session_running: still being recorded, cannot be modified
  SessionExists,    // session_exists: the id is already in use
  SessionReadOnly,  // session_elsewhere: the file is outside the data directory, read-only
  NotStopped,       // not_stopped: only while a breakpoint has stopped the request
  QuotaReached,     // quota_reached: the data quota leaves no room for more sessions
  ModelLoading,     // model_loading: retry shortly
  ModelFailed,     // model_failed: the model could not be loaded; status 422 if the file is refused
  ModelDamaged,    // model_damaged: not valid GGUF
  ModelNotLoaded,  // model_not_loaded: load it first
  ModelBusy,       // model_busy: in use by a running request
  ModelChanged,    // model_changed: the file changed after loading
  QueueFull,       // queue_full
  Stopping,        // stopping
  BadQuery,        // bad_query: SQL syntax or name error
  QueryNotAllowed,  // query_refused: the statement may only read the session
  QueryStopped,     // query_stopped: time or memory limit exceeded
  TooManyQueries,   // queries_busy: too many concurrent queries
  // Reported by the HTTP front end before a route is called:
  Unauthorized,        // unauthorized: API key or cookie missing or wrong
  TooManyAttempts,     // too_many_attempts: repeated wrong keys
  TooManyConnections,  // too_many_connections: in total or per client
  MethodNotAllowed,    // method_not_allowed
  Timeout,             // timeout: the request body did not arrive in time
  BodyType,            // unsupported_media_type: wrong Content-Type
  Forbidden,           // refused: cross-site request or unknown Host
  Internal             // internal: a bug in the server
};

// How far the server is with what the client asks again for.
struct ProblemProgress {
  std::uint64_t read_bytes = 0, all_bytes = 0;
  friend bool operator==(const ProblemProgress&, const ProblemProgress&) = default;
};

struct Problem {
  ErrorCode error_code = ErrorCode::Internal;
  std::string detail;  // human-readable: what is wrong and what to do
  int status = 0;      // nonzero: overrides the status of the code, such as 426 or 431
  std::optional<std::uint32_t> position{};  // byte offset in the client's text
  std::optional<ProblemProgress> progress{};
  friend bool operator==(const Problem&, const Problem&) = default;
};

template <class Value>
using OrProblem = std::expected<Value, Problem>;

inline std::unexpected<Problem> bad_request(std::string detail) {
  return std::unexpected(Problem{ErrorCode::BadRequest, std::move(detail)});
}

int status_of(ErrorCode error_code);
int status_of(const Problem& problem);
const char* code_of(ErrorCode error_code);
std::string text_of(const Problem& problem);  // the JSON body

Problem problem_of(const TraceError& error);
Problem problem_of(const SubmitError& error);

// For error responses that the HTTP library creates itself.
Problem problem_of_status(int status, std::string detail);

}  // namespace tt
