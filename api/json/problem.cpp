#include "api/json/problem.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/json/json.h"

namespace tt {

namespace {

struct Row {
  Fault fault;
  int status;
  const char* code;
  const char* title;
};

constexpr std::array kRows = {
    Row{Fault::BadJson, 400, "bad_json", "The body is not a JSON object"},
    Row{Fault::BadRequest, 400, "bad_request", "Invalid request"},
    Row{Fault::BadPrompt, 422, "bad_prompt", "Invalid prompt"},
    Row{Fault::TooLong, 413, "too_long", "The prompt is too long"},
    Row{Fault::BodyTooLarge, 413, "body_too_large", "The body is too large"},
    Row{Fault::NotFound, 404, "not_found", "Not found"},
    Row{Fault::Damaged, 500, "session_damaged", "The session file is damaged"},
    Row{Fault::NotASession, 500, "not_a_session", "The file is not a session"},
    Row{Fault::NewerVersion, 500, "newer_version", "The file is from a newer version"},
    Row{Fault::DiskFull, 507, "disk_full", "The disk is full"},
    Row{Fault::StorageFailed, 500, "storage_failed", "The file cannot be read or written"},
    Row{Fault::SessionRunning, 409, "session_running", "The session is being recorded"},
    Row{Fault::SessionExists, 409, "session_exists", "The session id already exists"},
    Row{Fault::SessionElsewhere, 409, "session_elsewhere",
        "The session is read-only"},
    Row{Fault::QuotaReached, 507, "quota_reached", "The storage quota is reached"},
    Row{Fault::ModelLoading, 503, "model_loading", "The model is still loading"},
    Row{Fault::ModelFailed, 503, "model_failed", "The model cannot be loaded"},
    Row{Fault::ModelDamaged, 422, "model_damaged", "The model files are damaged"},
    Row{Fault::ModelNotLoaded, 409, "model_not_loaded", "The model is not loaded"},
    Row{Fault::ModelBusy, 409, "model_busy", "The model is busy"},
    Row{Fault::ModelChanged, 409, "model_changed", "The model file has changed"},
    Row{Fault::QueueFull, 503, "queue_full", "The request queue is full"},
    Row{Fault::Stopping, 503, "stopping", "The server is stopping"},
    Row{Fault::BadQuery, 400, "bad_query", "Invalid SQL statement"},
    Row{Fault::QueryRefused, 403, "query_refused", "The statement is not allowed"},
    Row{Fault::QueryStopped, 422, "query_stopped", "The query limit was exceeded"},
    Row{Fault::QueriesBusy, 503, "queries_busy", "Too many concurrent queries"},
    Row{Fault::NoKey, 401, "unauthorized", "API key required"},
    Row{Fault::TooManyAttempts, 429, "too_many_attempts", "Too many failed login attempts"},
    Row{Fault::TooManyConnections, 503, "too_many_connections", "Too many connections"},
    Row{Fault::MethodNotAllowed, 405, "method_not_allowed", "Method not allowed"},
    Row{Fault::Timeout, 408, "timeout", "The request took too long"},
    Row{Fault::BodyType, 415, "unsupported_media_type", "Unsupported media type"},
    Row{Fault::NotAcceptable, 403, "refused", "Forbidden"},
    Row{Fault::Internal, 500, "internal", "Internal server error"},
};

const Row& row_of(Fault fault) {
  const auto* row = std::ranges::find(kRows, fault, &Row::fault);
  return row == kRows.end() ? kRows.back() : *row;
}

Fault fault_of(TraceError::Kind kind) {
  switch (kind) {
    case TraceError::Kind::NotFound:
      return Fault::NotFound;
    case TraceError::Kind::NotASession:
      return Fault::NotASession;
    case TraceError::Kind::NewerVersion:
      return Fault::NewerVersion;
    case TraceError::Kind::Damaged:
      return Fault::Damaged;
    case TraceError::Kind::Running:
      return Fault::SessionRunning;
    case TraceError::Kind::Exists:
      return Fault::SessionExists;
    case TraceError::Kind::NotOurs:
      return Fault::SessionElsewhere;
    case TraceError::Kind::DiskFull:
      return Fault::DiskFull;
    case TraceError::Kind::ReadOnly:
    case TraceError::Kind::Io:
    case TraceError::Kind::WalUnsupported:
      return Fault::StorageFailed;
    case TraceError::Kind::Cancelled:
      return Fault::Stopping;
  }
  return Fault::Internal;
}

Fault fault_of(SubmitError::Kind kind) {
  switch (kind) {
    case SubmitError::Kind::NotReady:
      return Fault::ModelLoading;
    case SubmitError::Kind::LoadFailed:
      return Fault::ModelFailed;
    case SubmitError::Kind::Changed:
      return Fault::ModelChanged;
    case SubmitError::Kind::Full:
      return Fault::QueueFull;
    case SubmitError::Kind::BadRequest:
      return Fault::BadPrompt;
    case SubmitError::Kind::TooLong:
      return Fault::TooLong;
    case SubmitError::Kind::Stopping:
      return Fault::Stopping;
  }
  return Fault::Internal;
}

}  // namespace

int status_of(Fault fault) { return row_of(fault).status; }
int status_of(const Problem& problem) {
  return problem.status != 0 ? problem.status : status_of(problem.fault);
}
const char* code_of(Fault fault) { return row_of(fault).code; }

std::string text_of(const Problem& problem) {
  const Row& row = row_of(problem.fault);
  Json json{{"type", "about:blank"},
            {"title", row.title},
            {"status", status_of(problem)},
            {"code", row.code},
            {"detail", problem.detail}};
  if (problem.position) json["position"] = *problem.position;
  return text_of(json);
}

Problem problem_of(const TraceError& error) { return {fault_of(error.kind), error.message}; }
Problem problem_of(const SubmitError& error) { return {fault_of(error.kind), error.message}; }

Problem problem_of_status(int status, std::string detail) {
  const Fault fault = status == 404   ? Fault::NotFound
                      : status == 413 ? Fault::BodyTooLarge
                      : status == 405 ? Fault::MethodNotAllowed
                      : status == 408 ? Fault::Timeout
                      : status == 415 ? Fault::BodyType
                      : status == 403 ? Fault::NotAcceptable
                      : status < 500  ? Fault::BadRequest
                                      : Fault::Internal;
  return {fault, std::move(detail), status};
}

}  // namespace tt
