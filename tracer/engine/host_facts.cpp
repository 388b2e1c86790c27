#include "tracer/engine/host_facts.h"

#include <llama.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <format>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tracer/engine/backends.h"
#include "tracer/recorder/machine_state.h"
#include "tracer/text/join.h"

namespace tt {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return {};
}

namespace {

// The block device that holds the file: "vda", or "vda (rotational)".
std::string disk_of(const std::filesystem::path& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) != 0) return {};
  const std::filesystem::path link =
      std::format("/sys/dev/block/{}:{}", major(facts.st_dev), minor(facts.st_dev));
  std::error_code error;
  const auto device = std::filesystem::canonical(link, error);
  if (error) return {};
  std::string name = device.filename().string();
  std::ifstream rotational(device / "queue/rotational");
  if (char flag = '0'; rotational >> flag && flag == '1') name += " (rotational)";
  return name;
}

std::optional<double> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  double number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

// "QUOTA PERIOD" of cgroup v2, or two files of cgroup v1; no quota: "max", or negative.
std::optional<double> cpu_limit_of(const std::filesystem::path& group) {
  std::optional<double> quota = number_in(group / "cpu.cfs_quota_us"),
                        period = number_in(group / "cpu.cfs_period_us");
  if (std::ifstream in(group / "cpu.max"); in) {
    double first = 0, second = 0;
    if (!(in >> first >> second)) return std::nullopt;
    quota = first;
    period = second;
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// Of the affinity of this thread, which threads that it starts inherit.
std::int32_t allowed_processors() {
  const auto online = static_cast<std::int32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  // The kernel rejects a set that is smaller than its own; its size is not known.
  for (std::size_t processors = 1024; processors <= (1U << 20); processors *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(processors), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    if (set != nullptr && ::sched_getaffinity(0, bytes, set.get()) == 0)
      return std::clamp(CPU_COUNT_S(bytes, set.get()), 1, online);
  }
  return online;
}

// The library writes its text into one string that all threads share: a server that answers a
// request while it loads a model would free it twice.
std::string library_features() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return llama_print_system_info();
}

}  // namespace

std::optional<double> cpu_limit(const std::filesystem::path& root) {
  std::optional<double> smallest;
  for (const auto& stat : cpu_group_files(root)) {
    const auto limit = cpu_limit_of(stat.parent_path());
    if (limit && (!smallest || *limit < *smallest)) smallest = limit;
  }
  return smallest;
}

std::int32_t usable_processors(const std::filesystem::path& root) {
  double usable = allowed_processors();
  if (const auto limit = cpu_limit(root)) usable = std::min(usable, *limit);
  return std::max(1, static_cast<std::int32_t>(usable));
}

std::vector<std::pair<std::string, std::string>> host_facts(const std::filesystem::path& model) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) facts.emplace_back(name, std::move(value));
  };
  add("host.cpu", cpu_name());
  add("host.cores", std::to_string(std::thread::hardware_concurrency()));
  add("host.allowed_processors", std::to_string(allowed_processors()));
  if (const auto limit = cpu_limit()) add("host.cpu_limit", std::format("{:.2f}", *limit));
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  if (pages > 0) add("host.ram_bytes", std::to_string(pages * ::sysconf(_SC_PAGESIZE)));
  if (utsname name{}; ::uname(&name) == 0) {
    add("host.kernel", std::format("{} {} {}", name.sysname, name.release, name.machine));
  }
  add("host.disk", disk_of(model));
  add("host.devices", join(offload_devices()));
  const LibraryVersions versions = library_versions();
  add("library.llama", versions.llama);
  add("library.ggml", versions.ggml);
  add("library.features", library_features());
  add("library.ggml_commit", versions.ggml_commit);
  add("library.tested", versions.tested ? "yes" : "no");
  return facts;
}

std::uint64_t locked_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmLck:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace tt
