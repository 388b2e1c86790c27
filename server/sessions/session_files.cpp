#include "server/sessions/session_files.h"

#include <algorithm>
#include <format>
#include <ranges>
#include <system_error>
#include <utility>

namespace tt {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = ".ttrace";
constexpr std::size_t kMaxIdLength = 200;

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_plain_file(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::regular;
}

// The session files in a folder. The error is the system error message.
std::expected<std::vector<fs::path>, std::string> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end;
       file.increment(failed)) {
    if (file->path().extension() == kExtension && is_plain_file(file->path()))
      files.push_back(file->path());
  }
  if (failed) return std::unexpected(failed.message());
  return files;
}

}  // namespace

bool is_session_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdLength && id.front() != '.' &&
         std::ranges::all_of(id, is_id_character);
}

SessionFiles::SessionFiles(fs::path folder, std::vector<fs::path> external)
    : folder_(std::move(folder)), external_(std::move(external)) {}

fs::path SessionFiles::path_of(const std::string& id) const {
  return folder_ / (id + std::string(kExtension));
}

std::expected<std::vector<SessionFile>, TraceError> SessionFiles::all() const {
  const auto files = files_in(folder_);
  if (!files) {
    return std::unexpected(
        TraceError{TraceError::Kind::Io,
                   "Cannot list the session folder " + folder_.string() + ": " + files.error()});
  }
  std::vector<SessionFile> all = external();
  for (const fs::path& file : *files) {
    std::string id = file.stem().string();
    if (is_session_id(id)) all.push_back({.id = std::move(id), .path = file});
  }
  return all;
}

std::optional<SessionFile> SessionFiles::find(const std::string& id) const {
  if (!is_session_id(id)) return std::nullopt;
  if (fs::path path = path_of(id); is_plain_file(path))
    return SessionFile{.id = id, .path = std::move(path)};
  if (external_.empty()) return std::nullopt;
  for (SessionFile& file : external())
    if (file.id == id) return std::move(file);
  return std::nullopt;
}

std::vector<SessionFile> SessionFiles::external() const {
  std::vector<SessionFile> found;
  const std::scoped_lock lock(mutex_);
  const auto add = [&](const fs::path& given) {
    std::error_code none;
    const fs::path file = fs::canonical(given, none);
    // Skip duplicates and files of the data folder that are reached through another path.
    if (none || fs::equivalent(file.parent_path(), folder_, none) ||
        std::ranges::contains(found, file, &SessionFile::path)) {
      return;
    }
    found.push_back({.id = id_for(file), .path = file, .owned = false});
  };
  for (const fs::path& given : external_) {
    std::error_code none;
    if (!fs::is_directory(given, none)) {
      add(given);
      continue;
    }
    auto files = files_in(given).value_or(std::vector<fs::path>{});
    std::ranges::sort(files);  // so that equal names get the same ids on every start
    std::ranges::for_each(files, add);
  }
  return found;
}

std::string SessionFiles::id_for(const fs::path& file) const {
  const auto known = ids_.find(file);
  if (known != ids_.end()) return known->second;
  constexpr std::size_t kRoomForNumber = 10;
  std::string name = file.stem().string().substr(0, kMaxIdLength - kRoomForNumber);
  std::ranges::replace_if(name, [](char c) { return !is_id_character(c); }, '-');
  if (name.empty() || name.front() == '.') name.insert(0, "-");
  const auto taken = [&](const std::string& id) {
    return is_plain_file(path_of(id)) || std::ranges::contains(ids_ | std::views::values, id);
  };
  std::string id = name;
  for (int n = 2; taken(id); ++n) id = std::format("{}-{}", name, n);
  ids_[file] = id;
  return id;
}

}  // namespace tt
