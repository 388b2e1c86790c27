#include "tracer/memory/limits/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace tt {

namespace fs = std::filesystem;

namespace {

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // missing, or "max"
}

// "name value" per line; in /proc/meminfo "name: value kB".
std::map<std::string, std::uint64_t, std::less<>> fields_of(const fs::path& file) {
  std::map<std::string, std::uint64_t, std::less<>> fields;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, unit;
    std::uint64_t value = 0;
    if (!(words >> name >> value)) continue;
    if (name.ends_with(':')) name.pop_back();
    if (words >> unit && unit == "kB") value *= 1024;
    fields[name] = value;
  }
  return fields;
}

template <class Fields>
std::uint64_t value_in(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? 0 : found->second;
}

// CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK.
bool may_lock_all(const fs::path& root) {
  constexpr unsigned kIpcLock = 14;
  std::ifstream in(root / "proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("CapEff:")) continue;
    const std::size_t at = line.find_first_not_of("\t ", 7);
    std::uint64_t bits = 0;
    if (at != std::string::npos)
      std::from_chars(line.data() + at, line.data() + line.size(), bits, 16);
    return (bits >> kIpcLock & 1U) != 0;
  }
  return false;
}

std::uint64_t lock_limit(const fs::path& root) {
  rlimit limit{};
  if (may_lock_all(root) || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur;
}

// RLIMIT_AS, which counts mapped files, too; nullopt: none.
std::optional<std::uint64_t> address_space_limit(const fs::path& root) {
  constexpr std::string_view kName = "Max address space";
  std::ifstream in(root / "proc/self/limits");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kName)) continue;
    std::istringstream words(line.substr(kName.size()));
    std::uint64_t limit = 0;
    if (words >> limit) return limit;
  }
  return std::nullopt;  // "unlimited"
}

struct Mount {
  std::string root, point;  // the folder of the hierarchy that is mounted, and where
};

// Where the memory controller (v1), or cgroup v2, is mounted.
std::optional<Mount> find_mount(const fs::path& root, bool v2) {
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word, type, source, options;
    Mount mount;
    words >> word >> word >> word >> mount.root >> mount.point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    const bool found =
        v2 ? type == "cgroup2" : type == "cgroup" && ("," + options + ",").contains(",memory,");
    if (found) return mount;
  }
  return std::nullopt;
}

fs::path below(const fs::path& root, const fs::path& absolute) {
  return root.empty() ? absolute : root / absolute.relative_path();
}

}  // namespace

std::uint64_t reserve_of(std::uint64_t limit) {
  constexpr std::uint64_t kMinReserve = 12U << 20;
  return std::max(kMinReserve, limit / 50);
}

std::uint64_t free_for_weights(const MemoryLimit& limit, std::uint64_t resident) {
  // Page cache of others in the group that is left to them: programs, session files.
  constexpr std::uint64_t kOthersCache = 12U << 20;
  const std::uint64_t reserve = reserve_of(limit.limit);
  const std::uint64_t ours = std::min(limit.used, resident);
  const std::uint64_t others = std::min(limit.used - ours, limit.fixed + kOthersCache);
  return limit.limit > reserve + others ? limit.limit - reserve - others : 0;
}

MemoryLimitReader::MemoryLimitReader(const fs::path& root) : root_(root.empty() ? "/" : root) {
  std::ifstream in(root_ / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (v2 || ("," + controllers + ",").contains(",memory,"))
      add_groups(line.substr(second + 1), v2);
  }
}

void MemoryLimitReader::add_groups(const std::string& cgroup, bool v2) {
  const auto mount = find_mount(root_, v2);
  if (!mount) return;
  // In a container, the path can be that of the host while only the container's part is mounted.
  fs::path group = cgroup;
  if (mount->root != "/" && cgroup.starts_with(mount->root))
    group = "/" + cgroup.substr(mount->root.size());
  const fs::path top = below(root_, mount->point);
  std::error_code ignored;
  if (!fs::exists(top / group.relative_path(), ignored)) group = "/";
  for (;; group = group.parent_path()) {
    groups_.push_back({.folder = top / group.relative_path(), .name = group.string(), .v2 = v2});
    if (!group.has_relative_path()) break;
  }
}

namespace {

constexpr const char* kHigh = "memory.high";

// The limit of a group, and the file that has it. Above memory.high (v2) a group is not killed, but
// the kernel slows its processes down and takes pages from them, so it counts as much as
// memory.max.
std::pair<std::uint64_t, const char*> limit_of(const MemoryLimitReader::Group& group) {
  std::pair<std::uint64_t, const char*> least{UINT64_MAX, ""};
  const auto consider = [&](const char* file) {
    const auto limit = number_in(group.folder / file);
    if (limit && *limit < least.first) least = {*limit, file};
  };
  consider(group.v2 ? "memory.max" : "memory.limit_in_bytes");
  if (group.v2) consider(kHigh);
  return least;
}

}  // namespace

MemoryLimit MemoryLimitReader::read() const {
  const auto memory = fields_of(root_ / "proc/meminfo");
  MemoryLimit result;
  result.limit = value_in(memory, "MemTotal");
  result.used = result.limit - std::min(result.limit, value_in(memory, "MemFree"));
  result.fixed = result.limit - std::min(result.limit, value_in(memory, "MemAvailable"));
  result.source = "RAM";
  result.lock_limit = lock_limit(root_);
  if (const auto limit = address_space_limit(root_); limit && *limit < result.limit) {
    const auto status = fields_of(root_ / "proc/self/status");
    result.limit = *limit;
    result.used = value_in(status, "VmSize");
    result.fixed = value_in(status, "RssAnon") + value_in(status, "RssShmem");
    result.source = "RLIMIT_AS";
  }
  for (const Group& group : groups_) {
    const auto [limit, file] = limit_of(group);
    if (limit >= result.limit) continue;
    const auto stat = fields_of(group.folder / "memory.stat");
    result.limit = limit;
    result.used = number_in(group.folder / (group.v2 ? "memory.current" : "memory.usage_in_bytes"))
                      .value_or(0);
    result.fixed = group.v2
                       ? value_in(stat, "anon") + value_in(stat, "shmem") + value_in(stat, "kernel")
                       : value_in(stat, "total_rss") + value_in(stat, "total_shmem") +
                             number_in(group.folder / "memory.kmem.usage_in_bytes").value_or(0);
    result.source = (group.v2 ? "cgroup v2 " : "cgroup v1 ") + group.name;
    if (file == kHigh) result.source += " (memory.high)";
  }
  return result;
}

}  // namespace tt
