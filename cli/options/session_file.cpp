#include "cli/options/session_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "cli/terminal/standard_output.h"
#include "tracer/format/file/input_file.h"
#include "tracer/text/nearest.h"

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
  if (!fs::exists(file, none) && !none) return not_found(file);
  if (fs::file_size(file, none) == 0 && !none)
    return error("is empty. Copy it again, or record another session: tt record");
  auto opened = InputFile::open(file);
  if (!opened) return opened.error();
  std::string begin(4, '\0');
  opened->stream().read(begin.data(), std::ssize(begin));
  if (begin == "GGUF") return error("is a model, not a session. tt gguf lists what is in it.");
  if (begin.starts_with('{'))
    return error(
        std::format("is a log, not a session. Create a session from it: tt import {} -o "
                    "s.ttrace",
                    file.string()));
  return std::nullopt;
}

// Of a file that ends too early: how much of it there is, from its header; empty: it is whole, or
// another process is still writing it, or was killed while it did.
std::string missing_part(const fs::path& file) {
  std::error_code failed;
  for (const char* journal : {"-wal", "-journal"})
    if (fs::exists(fs::path(file) += journal, failed)) return "";
  std::array<unsigned char, 32> head{};
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(head.data()), head.size());
  std::uint64_t page = std::uint64_t{head[16]} << 8 | head[17], pages = 0;
  if (page == 1) page = 65'536;
  for (std::size_t i = 28; i < head.size(); ++i) pages = pages << 8 | head[i];
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed || size >= page * pages) return "";
  return std::format("{} is cut off: it has {} of {} bytes. Copy it again.", file.string(), size,
                     page * pages);
}

}  // namespace

TraceError not_found(const fs::path& file) {
  constexpr std::size_t kMaxFiles = 1000;
  std::vector<std::string> names;
  std::error_code failed;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, failed), end;
       !failed && entry != end && names.size() < kMaxFiles; entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return {TraceError::Kind::NotFound, std::format("{} does not exist{}", file.string(),
                                                  did_you_mean(file.filename().string(), names))};
}

CLI::Option* add_session_file(CLI::App& command, std::string& file, const std::string& name,
                              const std::string& description) {
  return command.add_option(name, file, description)->required()->type_name("FILE");
}

void recover_if_unfinished(const std::string& file) {
  if (!is_marked_running(file)) return;
  const auto recovered = recover_session(file);
  if (!recovered) return;
  print_message("tt: the recording of {} was not finished; recovered {}", file,
                counted(recovered->steps, "step"));
}

std::expected<SessionReader, TraceError> open_session(const std::string& file) {
  if (auto other = other_kind(file)) return std::unexpected(*std::move(other));
  recover_if_unfinished(file);
  // Some verbs can show its begin.
  if (const std::string cut = missing_part(file); !cut.empty()) print_message("{}", cut);
  return SessionReader::open(file).transform_error([](TraceError error) {
    if (error.kind == TraceError::Kind::NotASession)
      error.message +=
          ". tt record writes session files; tt import creates one from a log or a run folder.";
    return error;
  });
}

}  // namespace tt::cli
