// Where an export's bytes go: a file, a client's connection, a test's string.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "tracer/format/model/trace_error.h"

namespace tt::exchange {

// Takes all of `bytes`, or says why not; then the export ends with that error.
using ByteSink = std::function<std::expected<void, TraceError>(std::string_view bytes)>;

// Collects small writes for a sink. What is left is written by flush() alone.
class BufferedSink {
 public:
  explicit BufferedSink(const ByteSink& sink) : sink_(sink) { text_.reserve(kFlushAt + 4096); }
  // For appending; full() soon after.
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

// A file that is there whole or not at all: written beside itself as NAME-new (or -new2...
// where somebody has that name) and renamed by commit(), which replaces a file that is
// there; behind a link, the file that it leads to. Without commit() nothing is left. What
// is no file (a terminal, a pipe, /dev/null) is written as it is. One thread.
class OutputFile {
 public:
  static std::expected<OutputFile, TraceError> create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  std::expected<void, TraceError> write(std::string_view bytes);
  std::expected<void, TraceError> commit();
  ByteSink sink() {
    return [this](std::string_view bytes) { return write(bytes); };
  }

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path making, int file)
      : path_(std::move(path)), making_(std::move(making)), file_(file) {}
  std::filesystem::path path_, making_;  // making_ is empty where it is written as it is
  int file_;                             // descriptor; -1: closed
};

// All of it in one call.
std::expected<void, TraceError> write_file(const std::filesystem::path& path,
                                           std::string_view text);

// The same for a folder, which must not exist; those that it lies in are made.
class OutputFolder {
 public:
  static std::expected<OutputFolder, TraceError> create(const std::filesystem::path& path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  // Where its files are written meanwhile.
  const std::filesystem::path& path() const { return making_; }
  std::expected<void, TraceError> commit();

 private:
  OutputFolder(std::filesystem::path path, std::filesystem::path making)
      : path_(std::move(path)), making_(std::move(making)) {}
  std::filesystem::path path_, making_;
};

// What errno says of a path, for people.
TraceError system_error(const std::filesystem::path& path);

}  // namespace tt::exchange
