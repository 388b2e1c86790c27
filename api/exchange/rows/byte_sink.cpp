#include "api/exchange/rows/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <format>
#include <system_error>
#include <utility>

namespace tt::exchange {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxTempAttempts = 100;  // concurrent or abandoned temporary files

// NAME-new, NAME-new2, ...
fs::path temp_path(const fs::path& path, int attempt) {
  return path.string() + (attempt == 1 ? "-new" : std::format("-new{}", attempt));
}

TraceError error_of(const fs::path& path, const std::error_code& code) {
  using Kind = TraceError::Kind;
  const Kind kind = code == std::errc::no_space_on_device          ? Kind::DiskFull
                    : code == std::errc::no_such_file_or_directory ? Kind::NotFound
                    : code == std::errc::permission_denied         ? Kind::ReadOnly
                                                                   : Kind::Io;
  return {kind, std::format("{}: {}", path.string(), code.message())};
}

}  // namespace

TraceError system_error(const fs::path& path) {
  return error_of(path, {errno, std::generic_category()});
}

std::expected<OutputFile, TraceError> OutputFile::create(const fs::path& path) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return std::unexpected(system_error(path));
    return OutputFile(path, {}, file);
  }
  fs::path target = fs::exists(there) ? fs::canonical(path, none) : path;
  if (none) target = path;
  for (int attempt = 1;; ++attempt) {
    fs::path made = temp_path(target, attempt);
    const int file = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) return OutputFile(std::move(target), std::move(made), file);
    if (errno != EEXIST || attempt == kMaxTempAttempts) return std::unexpected(system_error(made));
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temp_path_(std::exchange(other.temp_path_, {})),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  close(file_);
  std::error_code ignored;
  if (!temp_path_.empty()) fs::remove(temp_path_, ignored);
}

std::expected<void, TraceError> OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error(path_));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::expected<void, TraceError> OutputFile::commit() {
  const bool closed = close(std::exchange(file_, -1)) == 0;
  std::error_code failed;
  if (!closed) failed = {errno, std::generic_category()};
  if (!failed && !temp_path_.empty()) fs::rename(temp_path_, path_, failed);
  if (!failed) return {};
  std::error_code ignored;
  if (!temp_path_.empty()) fs::remove(temp_path_, ignored);
  return std::unexpected(error_of(path_, failed));
}

std::expected<void, TraceError> write_file(const fs::path& path, std::string_view text) {
  auto file = OutputFile::create(path);
  if (!file) return std::unexpected(file.error());
  if (auto written = file->write(text); !written) return written;
  return file->commit();
}

std::expected<OutputFolder, TraceError> OutputFolder::create(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path, failed)) {
    return std::unexpected(TraceError{
        TraceError::Kind::Exists, path.string() + " exists. Choose another name or remove it."});
  }
  // "run/" is the same as "run".
  const fs::path target = path.has_filename() ? path : path.parent_path();
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), failed);
  for (int attempt = 1; !failed && attempt <= kMaxTempAttempts; ++attempt) {
    fs::path made = temp_path(target, attempt);
    if (fs::create_directory(made, failed)) return OutputFolder(target, std::move(made));
    if (fs::exists(made)) failed.clear();  // created by another process: try the next name
  }
  if (!failed) failed = std::make_error_code(std::errc::file_exists);
  return std::unexpected(error_of(path, failed));
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), temp_path_(std::exchange(other.temp_path_, {})) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temp_path_.empty()) fs::remove_all(temp_path_, ignored);
}

std::expected<void, TraceError> OutputFolder::commit() {
  std::error_code failed;
  fs::rename(temp_path_, path_, failed);
  if (failed) return std::unexpected(error_of(path_, failed));
  temp_path_.clear();
  return {};
}

}  // namespace tt::exchange
