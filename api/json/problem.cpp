#include "api/json/problem.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/json/json.h"

namespace tt {

namespace {

struct Row {
  ErrorCode error_code;
  int status;
  const char* code;
  const char* title;
};

constexpr std::array kRows = {
    Row{ErrorCode::BadJson, 400, "bad_json", "The body is not a JSON object"},
    Row{ErrorCode::BadRequest, 400, "bad_request", "Invalid request"},
    Row{ErrorCode::BadPrompt, 422, "bad_prompt", "Invalid prompt"},
    Row{ErrorCode::TooLong, 413, "too_long", "The prompt is too long"},
    Row{ErrorCode::BodyTooLarge, 413, "body_too_large", "The body is too large"},
    Row{ErrorCode::NotFound, 404, "not_found", "Not found"},
    Row{ErrorCode::Damaged, 500, "session_damaged", "The session file is damaged"},
    Row{ErrorCode::NotASession, 500, "not_a_session", "The file is not a session"},
    Row{ErrorCode::NewerVersion, 500, "newer_version", "The file is from a newer version"},
    Row{ErrorCode::DiskFull, 507, "disk_full", "The disk is full"},
    Row{ErrorCode::StorageFailed, 500, "storage_failed", "The file cannot be read or written"},
    Row{ErrorCode::NotStopped, 409, "not_stopped", "The request is not stopped"},
    Row{ErrorCode::SessionRunning, 409, "session_running", "The session is being recorded"},
    Row{ErrorCode::SessionExists, 409, "session_exists", "The session id already exists"},
    Row{ErrorCode::SessionReadOnly, 409, "session_elsewhere", "The session is read-only"},
    Row{ErrorCode::QuotaReached, 507, "quota_reached", "The storage quota is reached"},
    Row{ErrorCode::ModelLoading, 503, "model_loading", "The model is still loading"},
    Row{ErrorCode::ModelFailed, 503, "model_failed", "The model cannot be loaded"},
    Row{ErrorCode::ModelDamaged, 422, "model_damaged", "The model files are damaged"},
    Row{ErrorCode::ModelNotLoaded, 409, "model_not_loaded", "The model is not loaded"},
    Row{ErrorCode::ModelBusy, 409, "model_busy", "The model is busy"},
    Row{ErrorCode::ModelChanged, 409, "model_changed", "The model file has changed"},
    Row{ErrorCode::QueueFull, 503, "queue_full", "The request queue is full"},
    Row{ErrorCode::Stopping, 503, "stopping", "The server is stopping"},
    Row{ErrorCode::BadQuery, 400, "bad_query", "Invalid SQL statement"},
    Row{ErrorCode::QueryNotAllowed, 403, "query_refused", "The statement is not allowed"},
    Row{ErrorCode::QueryStopped, 422, "query_stopped", "The query limit was exceeded"},
    Row{ErrorCode::TooManyQueries, 503, "queries_busy", "Too many concurrent queries"},
    Row{ErrorCode::Unauthorized, 401, "unauthorized", "API key required"},
    Row{ErrorCode::TooManyAttempts, 429, "too_many_attempts", "Too many failed login attempts"},
    Row{ErrorCode::TooManyConnections, 503, "too_many_connections", "Too many connections"},
    Row{ErrorCode::MethodNotAllowed, 405, "method_not_allowed", "Method not allowed"},
    Row{ErrorCode::Timeout, 408, "timeout", "The request took too long"},
    Row{ErrorCode::BodyType, 415, "unsupported_media_type", "Unsupported media type"},
    Row{ErrorCode::Forbidden, 403, "refused", "Forbidden"},
    Row{ErrorCode::Internal, 500, "internal", "Internal server error"},
};

const Row& row_of(ErrorCode error_code) {
  const auto* row = std::ranges::find(kRows, error_code, &Row::error_code);
  return row == kRows.end() ? kRows.back() : *row;
}

ErrorCode error_code_of(TraceError::Kind kind) {
  switch (kind) {
    case TraceError::Kind::NotFound:
      return ErrorCode::NotFound;
    case TraceError::Kind::NotASession:
      return ErrorCode::NotASession;
    case TraceError::Kind::NewerVersion:
      return ErrorCode::NewerVersion;
    case TraceError::Kind::Damaged:
      return ErrorCode::Damaged;
    case TraceError::Kind::Running:
      return ErrorCode::SessionRunning;
    case TraceError::Kind::Exists:
      return ErrorCode::SessionExists;
    case TraceError::Kind::NotManaged:
      return ErrorCode::SessionReadOnly;
    case TraceError::Kind::DiskFull:
      return ErrorCode::DiskFull;
    case TraceError::Kind::ReadOnly:
    case TraceError::Kind::Io:
    case TraceError::Kind::WalUnsupported:
      return ErrorCode::StorageFailed;
    case TraceError::Kind::Cancelled:
      return ErrorCode::Stopping;
  }
  return ErrorCode::Internal;
}

ErrorCode error_code_of(SubmitError::Kind kind) {
  switch (kind) {
    case SubmitError::Kind::NotReady:
      return ErrorCode::ModelLoading;
    case SubmitError::Kind::LoadFailed:
      return ErrorCode::ModelFailed;
    case SubmitError::Kind::Changed:
      return ErrorCode::ModelChanged;
    case SubmitError::Kind::Full:
      return ErrorCode::QueueFull;
    case SubmitError::Kind::BadRequest:
      return ErrorCode::BadPrompt;
    case SubmitError::Kind::TooLong:
      return ErrorCode::TooLong;
    case SubmitError::Kind::Stopping:
      return ErrorCode::Stopping;
  }
  return ErrorCode::Internal;
}

}  // namespace

int status_of(ErrorCode error_code) { return row_of(error_code).status; }
int status_of(const Problem& problem) {
  return problem.status != 0 ? problem.status : status_of(problem.error_code);
}
const char* code_of(ErrorCode error_code) { return row_of(error_code).code; }

std::string text_of(const Problem& problem) {
  const Row& row = row_of(problem.error_code);
  Json json{{"type", "about:blank"},
            {"title", row.title},
            {"status", status_of(problem)},
            {"code", row.code},
            {"detail", problem.detail}};
  if (problem.position) json["position"] = *problem.position;
  if (problem.progress)
    json["progress"] = {{"read_bytes", problem.progress->read_bytes},
                        {"all_bytes", problem.progress->all_bytes}};
  return text_of(json);
}

Problem problem_of(const TraceError& error) { return {error_code_of(error.kind), error.message}; }
Problem problem_of(const SubmitError& error) { return {error_code_of(error.kind), error.message}; }

Problem problem_of_status(int status, std::string detail) {
  const ErrorCode error_code = status == 404   ? ErrorCode::NotFound
                               : status == 413 ? ErrorCode::BodyTooLarge
                               : status == 405 ? ErrorCode::MethodNotAllowed
                               : status == 408 ? ErrorCode::Timeout
                               : status == 415 ? ErrorCode::BodyType
                               : status == 403 ? ErrorCode::Forbidden
                               : status < 500  ? ErrorCode::BadRequest
                                               : ErrorCode::Internal;
  return {error_code, std::move(detail), status};
}

}  // namespace tt
