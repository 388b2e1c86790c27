#include "server/sessions/session_trash.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <format>
#include <optional>
#include <ranges>
#include <string_view>
#include <system_error>

#include "server/sessions/move_file.h"
#include "server/sessions/session_files.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

// File name: <restore deadline, Unix seconds>-<id>.ttrace
std::optional<DeletedSession> deleted_session(const fs::directory_entry& entry) {
  std::error_code failed;
  if (entry.symlink_status(failed).type() != fs::file_type::regular ||
      entry.path().extension() != ".ttrace") {
    return std::nullopt;
  }
  const std::string name = entry.path().stem().string();
  std::int64_t seconds = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, seconds);
  constexpr std::int64_t kLatest = 9'000'000'000;  // in nanoseconds it fits in 64 bits
  if (error != std::errc{} || seconds < 0 || seconds > kLatest || rest == end || *rest != '-')
    return std::nullopt;
  std::string id(rest + 1, end);
  if (!is_session_id(id)) return std::nullopt;
  std::uintmax_t bytes = entry.file_size(failed);
  if (failed) return std::nullopt;
  if (const auto wal = fs::file_size(entry.path().string() + "-wal", failed); !failed) bytes += wal;
  return DeletedSession{.id = std::move(id),
                        .restore_until_utc_ns = seconds * 1'000'000'000,
                        .path = entry.path(),
                        .bytes = bytes};
}

// A symbolic link could lead outside the data folder.
bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::directory;
}

bool is_full(std::error_code error) {
  return error == std::errc::no_space_on_device ||
         error == std::error_code(EDQUOT, std::generic_category());
}

}  // namespace

std::int64_t utc_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

SessionTrash::SessionTrash(const fs::path& data_folder, UtcClock now)
    : folder_(data_folder / ".deleted"), now_(std::move(now)) {}

std::expected<DeletedSession, TraceError> SessionTrash::put(const std::string& id,
                                                            const fs::path& file) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(file, failed);
  const auto remove_now = [&]() -> std::expected<DeletedSession, TraceError> {
    if (auto removed = remove_session_file(file); !removed) return std::unexpected(removed.error());
    return DeletedSession{.id = id, .restore_until_utc_ns = now_(), .path = file, .bytes = bytes};
  };
  if (!failed) fs::create_directory(folder_, failed);
  if (is_full(failed)) return remove_now();
  if (!failed && !is_folder(folder_)) failed = std::make_error_code(std::errc::not_a_directory);
  if (failed) return std::unexpected(file_error(folder_, failed));
  // The same id was deleted, imported and deleted again within one second: use the next
  // second.
  for (std::int64_t seconds = (now_() + kRestorePeriod.count()) / 1'000'000'000;; ++seconds) {
    const fs::path to = folder_ / std::format("{}-{}.ttrace", seconds, id);
    const auto moved = move_session_file(file, to);
    if (moved) {
      return DeletedSession{
          .id = id, .restore_until_utc_ns = seconds * 1'000'000'000, .path = to, .bytes = bytes};
    }
    if (is_full(moved.error())) return remove_now();
    if (moved.error() != std::errc::file_exists)
      return std::unexpected(file_error(file, moved.error()));
  }
}

std::expected<void, TraceError> SessionTrash::restore(const std::string& id, const fs::path& file) {
  const std::vector<DeletedSession> deleted = all();
  for (const DeletedSession& last : deleted | std::views::reverse) {
    if (last.id != id || is_expired(last)) continue;
    const auto moved = move_session_file(last.path, file);
    if (moved) return {};
    if (moved.error() == std::errc::file_exists) {
      return std::unexpected(TraceError{
          TraceError::Kind::Exists,
          std::format("A session \"{}\" already exists. Delete or download it first.", id)});
    }
    return std::unexpected(file_error(last.path, moved.error()));
  }
  return std::unexpected(TraceError{
      TraceError::Kind::NotFound,
      std::format("There is no deleted session \"{}\". A deleted session is kept for an hour, or "
                  "until its disk space is needed",
                  id)});
}

std::vector<DeletedSession> SessionTrash::all() const {
  std::vector<DeletedSession> all;
  if (!is_folder(folder_)) return all;
  std::error_code failed;
  for (fs::directory_iterator file(folder_, failed), end; !failed && file != end;
       file.increment(failed)) {
    if (auto deleted = deleted_session(*file)) all.push_back(*std::move(deleted));
  }
  std::ranges::sort(all, {}, &DeletedSession::restore_until_utc_ns);
  return all;
}

std::expected<void, TraceError> SessionTrash::purge(const DeletedSession& session) {
  return remove_session_file(session.path);
}

}  // namespace tt
