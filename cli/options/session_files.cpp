#include "cli/options/session_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "tracer/text/utf8.h"

namespace tt::cli {

namespace fs = std::filesystem;

namespace {

bool is_pattern(const std::string& text) {
  std::error_code none;
  return text.find_first_of("*?[") != std::string::npos && !fs::exists(text, none);
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Not by a pattern: the name of the folder may have the letters of one.
std::vector<std::string> sessions_in(const fs::path& folder) {
  std::error_code none;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".ttrace" && !path.filename().string().starts_with('.'))
      paths.push_back(path.string());
  }
  return paths;
}

// A run folder is none: opening it says what to do.
bool is_folder_of_sessions(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none) && !fs::exists(path / "trace_metadata.json", none);
}

std::string name_of(const fs::path& path, bool with_folder) {
  fs::path name = with_folder ? path : path.filename();
  if (name.extension() == ".ttrace") name.replace_extension();
  return to_valid_utf8(name.string());
}

TraceError nothing(const std::string& text) { return {TraceError::Kind::NotFound, text}; }

}  // namespace

CLI::Option* add_session_files(CLI::App& command, std::vector<std::string>& arguments) {
  return command
      .add_option("file", arguments,
                  "Session file (.ttrace). Several files, a folder, or a pattern in quotes: all of "
                  "them together")
      ->required()
      ->expected(1, -1)
      ->type_name("FILE");
}

std::expected<SessionFiles, TraceError> session_files(const std::vector<std::string>& arguments) {
  SessionFiles files;
  std::set<std::string> paths;
  for (const std::string& argument : arguments) {
    const bool folder = is_folder_of_sessions(argument);
    if (!folder && !is_pattern(argument)) {
      paths.insert(argument);
      continue;
    }
    files.set = true;
    const auto found = folder ? sessions_in(argument) : matches(argument);
    if (found.empty()) {
      return std::unexpected(
          nothing(folder ? std::format("{} is a folder without sessions (*.ttrace)", argument)
                         : std::format("no file matches {}", argument)));
    }
    paths.insert(found.begin(), found.end());
  }
  files.set = files.set || paths.size() > 1;
  std::map<std::string, int> uses;
  for (const std::string& path : paths) ++uses[name_of(path, false)];
  std::map<std::string, std::string> by_name;
  for (const std::string& path : paths) {
    const std::string name = name_of(path, uses[name_of(path, false)] > 1);
    if (!by_name.emplace(name, path).second)
      return std::unexpected(nothing(std::format("two of the files would be called {}", name)));
  }
  for (auto& [name, path] : by_name) {
    files.names.push_back(name);
    files.paths.push_back(path);
  }
  return files;
}

}  // namespace tt::cli
