#include "tracer/memory/limits/other_locks.h"

#include <unistd.h>

#include <format>
#include <fstream>
#include <system_error>

#include "tracer/memory/limits/mebibytes.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

// "VmLck:      12 kB" of /proc/PID/status; 0: none, or not readable.
std::uint64_t locked_by(const fs::path& process) {
  std::ifstream status(process / "status");
  std::uint64_t kib = 0;
  for (std::string name; status >> name;) {
    if (name == "VmLck:") {
      status >> kib;
      break;
    }
    std::getline(status, name);
  }
  return kib * 1024;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

OtherLocks other_locks(const fs::path& root) {
  OtherLocks others;
  const std::string own = std::to_string(::getpid());
  std::error_code error;
  for (fs::directory_iterator entry(root / "proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string id = entry->path().filename();
    if (!is_number(id) || id == own) continue;
    std::string name;
    std::getline(std::ifstream(entry->path() / "comm"), name);
    if (name != "tt-server" && name != "tt") continue;
    const std::uint64_t bytes = locked_by(entry->path());
    if (bytes == 0) continue;
    ++others.processes;
    others.bytes += bytes;
  }
  return others;
}

std::string other_locks_text(const OtherLocks& others, std::uint64_t own, std::uint64_t limit) {
  if (others.processes == 0) return "";
  return std::format(
      "{} other {} of tensor-trace on this machine {} locked {}: {} together, of {}.",
      others.processes, others.processes == 1 ? "process" : "processes",
      others.processes == 1 ? "has" : "have", mebibytes(others.bytes),
      mebibytes(others.bytes + own), mebibytes(limit));
}

}  // namespace tt
