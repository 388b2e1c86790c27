#include "tracer/format/file/session_owner.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace tt {

namespace {

// Of a file in /proc. Empty if its process ends before it is read: iterators of the buffer would
// throw then.
std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text, '\0');
  return text;
}

std::string boot_id() {
  std::string id = text_of("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// Start time of the process in clock ticks since boot; empty: no such process, or a zombie.
// Parses the fields after the command name, which may contain any character, ')' included.
std::string start_of(const std::string& pid) {
  const std::string stat = text_of("/proc/" + pid + "/stat");
  const auto command_end = stat.rfind(')');
  if (command_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(command_end + 1));
  std::string state, field;
  fields >> state;  // field 3
  if (state == "Z" || state == "X") return {};
  for (int i = 4; i <= 22; ++i) fields >> field;
  return field;
}

}  // namespace

Meta owner_of_this_process() {
  const std::string pid = std::to_string(getpid());
  return {{"owner.pid", pid}, {"owner.start", start_of(pid)}, {"owner.boot", boot_id()}};
}

Owner owner_state(const Meta& meta) {
  const auto value = [&](const char* key) {
    const auto found = meta.find(key);
    return found == meta.end() ? std::string() : found->second;
  };
  const auto pid = meta_number(meta, "owner.pid");
  if (!pid || *pid <= 0) return Owner::None;
  if (value("owner.boot") != boot_id()) return Owner::Dead;
  const std::string start = start_of(std::to_string(*pid));
  if (start.empty() || start != value("owner.start")) return Owner::Dead;
  return *pid == getpid() ? Owner::Self : Owner::Alive;
}

}  // namespace tt
