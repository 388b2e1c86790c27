#include "cli/options/session_file.h"

#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <optional>
#include <print>
#include <utility>

#include "analysis/common/format_units.h"

namespace tt::cli {

namespace fs = std::filesystem;

namespace {

// Closes the file on return, because recovery needs exclusive access.
bool is_marked_running(const std::string& file) {
  const auto reader = SessionReader::open(file);
  if (!reader) return false;
  const auto info = reader->info();
  return info && info->state == SessionState::Running;
}

// An error that says what to do with a folder, log or model instead; none: it may be a session.
std::optional<TraceError> other_kind(const fs::path& file) {
  const auto error = [&](const std::string& text) {
    return TraceError{TraceError::Kind::NotASession, file.string() + " " + text};
  };
  std::error_code none;
  if (fs::is_directory(file, none)) {
    return error(fs::exists(file / "trace_metadata.json", none)
                     ? std::format("is a run folder. Create a session from it: tt import {} -o "
                                   "s.ttrace",
                                   file.string())
                     : "is a folder, not a session file. tt import creates a session from a run "
                       "folder.");
  }
  std::string begin(4, '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  if (begin == "GGUF") return error("is a model, not a session. tt gguf lists what is in it.");
  if (begin.starts_with('{'))
    return error(
        std::format("is a log, not a session. Create a session from it: tt import {} -o "
                    "s.ttrace",
                    file.string()));
  return std::nullopt;
}

}  // namespace

CLI::Option* add_session_file(CLI::App& command, std::string& file, const std::string& name,
                              const std::string& description) {
  return command.add_option(name, file, description)->required()->type_name("FILE");
}

void recover_if_unfinished(const std::string& file) {
  if (!is_marked_running(file)) return;
  const auto recovered = recover_session(file);
  if (!recovered) return;
  std::println(stderr, "tt: the recording of {} was not finished; recovered {}", file,
               counted(recovered->steps, "step"));
}

std::expected<SessionReader, TraceError> open_session(const std::string& file) {
  if (auto other = other_kind(file)) return std::unexpected(*std::move(other));
  recover_if_unfinished(file);
  return SessionReader::open(file);
}

}  // namespace tt::cli
