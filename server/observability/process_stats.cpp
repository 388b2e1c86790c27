#include "server/observability/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace tt {

namespace {

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fields of /proc/self/stat after the program name, which may contain any characters. The
// first element is field 3 of proc(5).
std::vector<std::string> stat_fields() {
  const std::string text = text_of_file("/proc/self/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

double boot_utc_seconds() {
  std::istringstream lines(text_of_file("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

}  // namespace

ProcessStats process_stats() {
  ProcessStats stats;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto fields = stat_fields(); fields.size() >= 22) {
    const auto field = [&](std::size_t number) { return std::stoull(fields[number - 3]); };
    stats.cpu_seconds = static_cast<double>(field(14) + field(15)) / ticks;
    stats.threads = field(20);
    stats.start_utc_seconds = boot_utc_seconds() + static_cast<double>(field(22)) / ticks;
    stats.virtual_bytes = field(23);
    stats.resident_bytes = field(24) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = limit.rlim_cur;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end;
       at.increment(failed)) {
    ++stats.open_fds;
  }
  // One descriptor is the directory being read. If it cannot be opened, all descriptors are in
  // use.
  if (stats.open_fds > 0) --stats.open_fds;
  if (failed == std::errc::too_many_files_open) stats.open_fds = stats.max_fds;
  return stats;
}

}  // namespace tt
