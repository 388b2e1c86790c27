#include "server/sessions/move_file.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <format>

namespace tt {

namespace fs = std::filesystem;

std::expected<void, std::error_code> move_file(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  std::error_code error(errno, std::generic_category());
  // Fallback for file systems without RENAME_NOREPLACE: a hard link does not replace a file
  // either.
  if (error == std::errc::invalid_argument || error == std::errc::function_not_supported) {
    fs::create_hard_link(from, to, error);
    if (!error) fs::remove(from, error);
    if (!error) return {};
  }
  return std::unexpected(error);
}

std::expected<void, std::error_code> move_session_file(const fs::path& from, const fs::path& to) {
  if (auto moved = move_file(from, to); !moved) return moved;
  std::error_code ignored;
  for (const char* with : {"-wal", "-journal"})
    fs::rename(from.string() + with, to.string() + with, ignored);
  for (const char* with : {"-shm", "-reserve"}) fs::remove(from.string() + with, ignored);
  return {};
}

std::expected<void, TraceError> remove_session_file(const fs::path& file) {
  std::error_code failed, ignored;
  fs::remove(file, failed);
  if (failed) return std::unexpected(file_error(file, failed));
  for (const char* with : {"-wal", "-journal", "-shm", "-reserve"})
    fs::remove(file.string() + with, ignored);
  return {};
}

TraceError file_error(const fs::path& file, std::error_code error) {
  using Kind = TraceError::Kind;
  if (error == std::errc::no_such_file_or_directory)
    return {Kind::NotFound, file.string() + " does not exist any more"};
  if (error == std::errc::no_space_on_device ||
      error == std::error_code(EDQUOT, std::generic_category()))
    return {Kind::DiskFull, "The disk that holds " + file.string() + " is full. Free some space."};
  if (error == std::errc::read_only_file_system || error == std::errc::permission_denied ||
      error == std::errc::operation_not_permitted) {
    return {Kind::ReadOnly,
            std::format("{} cannot be changed ({}). Check the permissions of its folder.",
                        file.string(), error.message())};
  }
  return {Kind::Io, std::format("{}: {}", file.string(), error.message())};
}

}  // namespace tt
