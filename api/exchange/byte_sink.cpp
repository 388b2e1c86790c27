#include "api/exchange/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <format>
#include <system_error>
#include <utility>

namespace tt::exchange {
namespace {

namespace fs = std::filesystem;

fs::path making(const fs::path& path) { return path.string() + "-new"; }

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
  const int file =
      open(making(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return std::unexpected(system_error(path));
  return OutputFile(path, file);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  close(file_);
  std::error_code ignored;
  fs::remove(making(path_), ignored);
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
  if (!failed) fs::rename(making(path_), path_, failed);
  if (!failed) return {};
  std::error_code ignored;
  fs::remove(making(path_), ignored);
  return std::unexpected(error_of(path_, failed));
}

OutputFolder::OutputFolder(fs::path path) : path_(std::move(path)), making_(making(path_)) {}

std::expected<OutputFolder, TraceError> OutputFolder::create(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path, failed)) {
    return std::unexpected(TraceError{
        TraceError::Kind::Exists, path.string() + " exists. Choose another name, or remove it."});
  }
  OutputFolder folder(path);
  fs::remove_all(folder.making_, failed);  // of an export that was killed
  fs::create_directories(folder.making_, failed);
  if (failed) return std::unexpected(error_of(path, failed));
  return folder;
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), making_(std::exchange(other.making_, {})) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!making_.empty()) fs::remove_all(making_, ignored);
}

std::expected<void, TraceError> OutputFolder::commit() {
  std::error_code failed;
  fs::rename(making_, path_, failed);
  if (failed) return std::unexpected(error_of(path_, failed));
  making_.clear();
  return {};
}

}  // namespace tt::exchange
