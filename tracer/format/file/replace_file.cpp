#include "tracer/format/file/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <format>
#include <string>
#include <system_error>

namespace tt {

namespace {

bool write_to_disk(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(file) == 0;
}

}  // namespace

bool replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::string draft = std::format("{}.{}", path.string(), ::getpid());
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_to_disk(file, text);
  const bool closed = ::close(file) == 0;
  std::error_code failed;
  if (written && closed) std::filesystem::rename(draft, path, failed);
  if (written && closed && !failed) return true;
  std::filesystem::remove(draft, failed);
  return false;
}

}  // namespace tt
