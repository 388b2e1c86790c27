#include "cli/options/session_file.h"

#include <cstdio>
#include <print>

namespace tt::cli {

namespace {

// Closes the file on return, because recovery needs exclusive access.
bool is_marked_running(const std::string& file) {
  const auto reader = SessionReader::open(file);
  if (!reader) return false;
  const auto info = reader->info();
  return info && info->state == SessionState::Running;
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
  std::println(stderr, "tt: the recording of {} was not finished; recovered {} steps", file,
               recovered->steps);
}

std::expected<SessionReader, TraceError> open_session(const std::string& file) {
  recover_if_unfinished(file);
  return SessionReader::open(file);
}

}  // namespace tt::cli
