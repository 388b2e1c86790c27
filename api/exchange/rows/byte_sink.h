// Destination of an export: a file, a client connection, a string in tests.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "tracer/format/model/trace_error.h"

namespace tt::exchange {

// Writes all of `bytes` or returns an error, which ends the export.
using ByteSink = std::function<std::expected<void, TraceError>(std::string_view bytes)>;

// Buffers small writes to a sink. The remaining bytes are written only by flush().
class BufferedSink {
 public:
  explicit BufferedSink(const ByteSink& sink) : sink_(sink) { text_.reserve(kFlushAt + 4096); }
  // Append here, then call flush_if_full().
  std::string& text() { return text_; }
  std::expected<void, TraceError> flush_if_full() {
    return text_.size() < kFlushAt ? std::expected<void, TraceError>{} : flush();
  }
  std::expected<void, TraceError> flush() {
    auto written = text_.empty() ? std::expected<void, TraceError>{} : sink_(text_);
    text_.clear();
    return written;
  }

 private:
  static constexpr std::size_t kFlushAt = 256u << 10;
  const ByteSink& sink_;
  std::string text_;
};

// Writes a file atomically: to NAME-new (or NAME-new2, ... if that exists), renamed by
// commit(), which replaces an existing file. Symbolic links are followed. Without commit() the
// temporary file is removed. Anything that is not a regular file (terminal, pipe, /dev/null)
// is written directly. One thread.
class OutputFile {
 public:
  static std::expected<OutputFile, TraceError> create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  std::expected<void, TraceError> write(std::string_view bytes);
  std::expected<void, TraceError> commit();
  // What is written so far is in this file, until commit().
  const std::filesystem::path& written_path() const {
    return temp_path_.empty() ? path_ : temp_path_;
  }
  ByteSink sink() {
    return [this](std::string_view bytes) { return write(bytes); };
  }

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temp_path, int file)
      : path_(std::move(path)), temp_path_(std::move(temp_path)), file_(file) {}
  std::filesystem::path path_, temp_path_;  // temp_path_ is empty when writing directly
  int file_;                                // descriptor; -1: closed
};

// Writes a whole file atomically.
std::expected<void, TraceError> write_file(const std::filesystem::path& path,
                                           std::string_view text);

// The same for a folder, which must not exist. Missing parent folders are created.
class OutputFolder {
 public:
  static std::expected<OutputFolder, TraceError> create(const std::filesystem::path& path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  // Temporary path to write the files to.
  const std::filesystem::path& path() const { return temp_path_; }
  std::expected<void, TraceError> commit();

 private:
  OutputFolder(std::filesystem::path path, std::filesystem::path temp_path)
      : path_(std::move(path)), temp_path_(std::move(temp_path)) {}
  std::filesystem::path path_, temp_path_;
};

// Error message from errno for a path.
TraceError system_error(const std::filesystem::path& path);

}  // namespace tt::exchange
