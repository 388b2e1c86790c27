#include "api/exchange/columnar/sink_stream.h"

#include <arrow/result.h>
#include <arrow/status.h>

namespace tt::exchange {

TraceError trace_error(const arrow::Status& status) {
  using Kind = TraceError::Kind;
  const Kind kind = status.IsCancelled() ? Kind::Cancelled : Kind::Io;
  return {kind, status.message()};
}

arrow::Status SinkStream::Close() {
  closed_ = true;
  return arrow::Status::OK();
}

arrow::Status SinkStream::Write(const void* data, std::int64_t bytes) {
  auto written = sink_({static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
  if (!written) {
    error_ = written.error();
    return arrow::Status::IOError(error_->message);
  }
  position_ += bytes;
  return arrow::Status::OK();
}

TraceError SinkStream::error(const arrow::Status& status) const {
  return error_ ? *error_ : trace_error(status);
}

std::expected<void, TraceError> SinkStream::check(const arrow::Status& status) const {
  if (status.ok()) return {};
  return std::unexpected(error(status));
}

}  // namespace tt::exchange
