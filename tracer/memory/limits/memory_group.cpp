#include "tracer/memory/limits/memory_group.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>

#include "tracer/memory/limits/memory_limit.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

bool write_line(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::endl;
  return out.good();
}

}  // namespace

std::unique_ptr<MemoryGroup> MemoryGroup::make(std::uint64_t limit, std::string& problem) {
  static int count = 0;
  problem = "no memory cgroup of this process is visible";
  const MemoryLimitReader reader;
  for (const MemoryLimitReader::Group& own : reader.groups()) {
    const fs::path folder = own.folder / std::format("tt-{}-{}", ::getpid(), count++);
    std::error_code failed;
    fs::create_directory(folder, failed);
    if (failed) {
      problem = std::format("{}: {}", folder.string(), failed.message());
      continue;
    }
    std::unique_ptr<MemoryGroup> group(new MemoryGroup(folder, own.v2));
    if (group->set_limit(limit)) return group;
    problem = std::format("{}: its limit cannot be set: {}", folder.string(), std::strerror(errno));
  }
  return nullptr;
}

MemoryGroup::~MemoryGroup() {
  std::ifstream members(folder_ / "cgroup.procs");
  for (pid_t process = 0; members >> process;)
    write_line(folder_.parent_path() / "cgroup.procs", std::to_string(process));
  ::rmdir(folder_.c_str());
}

bool MemoryGroup::add(pid_t process) const {
  return write_line(folder_ / "cgroup.procs", std::to_string(process));
}

bool MemoryGroup::set_limit(std::uint64_t bytes) const {
  return write_line(folder_ / (v2_ ? "memory.max" : "memory.limit_in_bytes"),
                    std::to_string(bytes));
}

std::uint64_t MemoryGroup::used() const {
  std::ifstream in(folder_ / (v2_ ? "memory.current" : "memory.usage_in_bytes"));
  std::uint64_t bytes = 0;
  in >> bytes;
  return bytes;
}

}  // namespace tt
