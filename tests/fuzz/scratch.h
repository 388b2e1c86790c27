// A folder for the files of one input at a time, in /dev/shm if it exists.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "tests/fuzz/limits.h"

namespace tt::fuzz {

class Scratch {
 public:
  Scratch() {
    std::string name = std::filesystem::is_directory("/dev/shm")
                           ? "/dev/shm/tt-fuzz-XXXXXX"
                           : (std::filesystem::temp_directory_path() / "tt-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) report_finding("no folder for the inputs");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove_all(entry.path());
  }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tt::fuzz
