// Adapts a ByteSink to an Arrow output stream.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include <optional>

#include "api/exchange/rows/byte_sink.h"

namespace tt::exchange {

// Converts an Arrow error.
TraceError trace_error(const arrow::Status& status);

// The sink must outlive it. The original error of the sink is kept for the caller.
class SinkStream final : public arrow::io::OutputStream {
 public:
  explicit SinkStream(const ByteSink& sink) : sink_(sink) {}
  arrow::Status Close() override;
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* data, std::int64_t bytes) override;
  using arrow::io::OutputStream::Write;

  // Returns the sink's original error if there was one, else the converted Arrow error.
  TraceError error(const arrow::Status& status) const;
  std::expected<void, TraceError> check(const arrow::Status& status) const;

 private:
  const ByteSink& sink_;
  std::optional<TraceError> error_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace tt::exchange
