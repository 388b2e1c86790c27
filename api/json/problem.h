// What the interface says when it cannot do what was asked: RFC 9457
// (application/problem+json), one table of codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracer/format/model/trace_error.h"
#include "tracer/request/job.h"

namespace tt {

// Every way in which a request can fail, as clients see it: `code` in the body
// and in openapi.yaml. The table in problem.cpp gives each its status.
enum class Fault {
  BadJson,           // bad_json: the body is no JSON object
  BadRequest,        // bad_request: a field or parameter is not what it should be
  BadPrompt,         // bad_prompt: understood, but this model cannot take it
  TooLong,           // too_long: more tokens than fit
  BodyTooLarge,      // body_too_large
  NotFound,          // not_found: no such route, session, step or request
  Damaged,           // session_damaged
  NotASession,       // not_a_session
  NewerVersion,      // newer_version: the file was made by a later tensor-trace
  DiskFull,          // disk_full
  StorageFailed,     // storage_failed: the system refused to read or write
  SessionRunning,    // session_running: it is being recorded, so it stays as it is
  SessionExists,     // session_exists: there is one of that id
  SessionElsewhere,  // session_elsewhere: opened from a file that is not ours to change
  QuotaReached,      // quota_reached: no room for more sessions
  ModelLoading,      // model_loading: try again in a moment
  ModelFailed,       // model_failed: the model could not be loaded
  ModelDamaged,      // model_damaged: its files cannot be read as GGUF
  ModelNotLoaded,    // model_not_loaded: load it first
  ModelBusy,         // model_busy: it works, and is not interrupted
  ModelChanged,      // model_changed: its file is another one than was loaded
  QueueFull,         // queue_full
  Stopping,          // stopping
  BadQuery,          // bad_query: the statement is not understood
  QueryRefused,      // query_refused: it would do more than read the session
  QueryStopped,      // query_stopped: it took its time or memory
  QueriesBusy,       // queries_busy: as many are running as may at a time
  // The door's, before anything else sees the request:
  NoKey,               // unauthorized: neither key nor cookie, or not the right one
  TooManyAttempts,     // too_many_attempts: wrong keys, one after the other
  TooManyConnections,  // too_many_connections: of all clients, or of this one
  MethodNotAllowed,    // method_not_allowed
  Timeout,             // timeout: the request's body did not come
  BodyType,            // unsupported_media_type: the body is said to be something else
  NotAcceptable,       // refused: another site's page, a foreign Host
  Internal             // internal: ours to mend
};

struct Problem {
  Fault fault = Fault::Internal;
  std::string detail;  // for people: what to do
  int status = 0;      // where another one than the fault's is right: 426, 431...
  std::optional<std::uint32_t> position{};  // byte of the client's text that it is about
  friend bool operator==(const Problem&, const Problem&) = default;
};

int status_of(Fault fault);
int status_of(const Problem& problem);
const char* code_of(Fault fault);
std::string text_of(const Problem& problem);  // the JSON body

Problem problem_of(const TraceError& error);
Problem problem_of(const SubmitError& error);

// For a response that the HTTP library made by itself.
Problem problem_of_status(int status, std::string detail);

}  // namespace tt
