// A sink that compresses (gzip). One thread.
#pragma once

#include <memory>
#include <string_view>

#include "api/exchange/rows/byte_sink.h"

struct archive;

namespace tt::exchange {

class GzipSink {
 public:
  // `sink` receives the compressed bytes; it must outlive this object.
  static std::expected<std::unique_ptr<GzipSink>, TraceError> open(const ByteSink& sink);
  ~GzipSink();
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;

  std::expected<void, TraceError> write(std::string_view bytes);
  // Writes the end. Without it, readers see that the file is incomplete.
  std::expected<void, TraceError> close();

 private:
  explicit GzipSink(const ByteSink& sink);
  std::expected<void, TraceError> failed() const;
  static ssize_t put(archive*, void* self, const void* bytes, std::size_t count);

  const ByteSink& sink_;
  std::expected<void, TraceError> sink_status_;
  archive* writer_;
  bool closed_ = false;
};

}  // namespace tt::exchange
