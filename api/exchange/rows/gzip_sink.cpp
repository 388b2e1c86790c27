#include "api/exchange/rows/gzip_sink.h"

#include <archive.h>
#include <archive_entry.h>

namespace tt::exchange {

GzipSink::GzipSink(const ByteSink& sink) : sink_(sink), writer_(archive_write_new()) {}

GzipSink::~GzipSink() {
  if (!closed_) archive_write_fail(writer_);
  archive_write_free(writer_);
}

std::expected<std::unique_ptr<GzipSink>, TraceError> GzipSink::open(const ByteSink& sink) {
  std::unique_ptr<GzipSink> opened(new GzipSink(sink));
  archive* const writer = opened->writer_;
  // The format "raw" is the bytes of one entry, without an archive around them. Without the time,
  // the same session gives the same file.
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  const bool done = archive_write_set_format_raw(writer) == ARCHIVE_OK &&
                    archive_write_add_filter_gzip(writer) == ARCHIVE_OK &&
                    archive_write_set_options(writer, "gzip:!timestamp") == ARCHIVE_OK &&
                    archive_write_set_bytes_in_last_block(writer, 1) == ARCHIVE_OK &&
                    archive_write_open2(writer, opened.get(), nullptr, &GzipSink::put, nullptr,
                                        nullptr) == ARCHIVE_OK &&
                    archive_write_header(writer, entry) == ARCHIVE_OK;
  archive_entry_free(entry);
  if (!done) return std::unexpected(opened->failed().error());
  return opened;
}

std::expected<void, TraceError> GzipSink::write(std::string_view bytes) {
  if (archive_write_data(writer_, bytes.data(), bytes.size()) < 0) return failed();
  return {};
}

std::expected<void, TraceError> GzipSink::close() {
  closed_ = true;
  if (archive_write_close(writer_) != ARCHIVE_OK) return failed();
  return {};
}

std::expected<void, TraceError> GzipSink::failed() const {
  if (!sink_status_) return sink_status_;
  const char* const text = archive_error_string(writer_);
  return std::unexpected(
      TraceError{TraceError::Kind::Io, text == nullptr ? "The file cannot be compressed." : text});
}

ssize_t GzipSink::put(archive*, void* self, const void* bytes, std::size_t count) {
  auto& sink = *static_cast<GzipSink*>(self);
  sink.sink_status_ = sink.sink_({static_cast<const char*>(bytes), count});
  return sink.sink_status_ ? static_cast<ssize_t>(count) : -1;
}

}  // namespace tt::exchange
