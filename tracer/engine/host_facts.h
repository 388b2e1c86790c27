// Host information for a session's metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// "host.cpu", "host.cores", "host.allowed_processors" (of the affinity), "host.cpu_limit",
// "host.ram_bytes", "host.kernel", "host.disk" (of `model`), "host.devices" (for offloading
// layers), "library.llama", "library.ggml"... in a fixed order; values that cannot be read are
// omitted.
std::vector<std::pair<std::string, std::string>> host_facts(const std::filesystem::path& model);

// "Intel(R) Xeon(R) Processor"; empty: not known.
std::string cpu_name();

// The processors that the CPU limits of this process's cgroups allow, such as 1.5; nullopt: no
// limit. `root` contains /proc and the mounts; tests replace it.
std::optional<double> cpu_limit(const std::filesystem::path& root = "/");

// The processors that this process may use: the smallest of those of the machine, those of its
// affinity (taskset, cpuset) and its CPU limit rounded down; at least 1. Every default number of
// threads is this one.
std::int32_t usable_processors(const std::filesystem::path& root = "/");

// Locked memory of this process (mlock), in bytes.
std::uint64_t locked_bytes();

}  // namespace tt
