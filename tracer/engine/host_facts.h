// What the machine is, for a session's metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// "host.cpu", "host.cores", "host.ram_bytes", "host.kernel", "host.disk" (of
// `model`), "host.devices" (that layers can be given to), "library.llama",
// "library.ggml"... in a fixed order; what cannot be read is left out.
std::vector<std::pair<std::string, std::string>> host_facts(const std::filesystem::path& model);

// Of this process's memory, what the kernel keeps in RAM (mlock); bytes.
std::uint64_t locked_bytes();

}  // namespace tt
