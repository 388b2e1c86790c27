// A copy of the bundled model on a disk, whose pages can be dropped from memory.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/test_paths.h"

namespace tt::test {

// In the build folder, as temporary files may be in memory.
struct ModelOnDisk {
  std::filesystem::path path =
      std::filesystem::current_path() / ("model_on_disk_" + std::to_string(getpid()));
  ModelOnDisk() {
    std::filesystem::copy_file(kTestPaths.bundled_model, path);
    const int fd = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(fsync(fd), 0);
    close(fd);
  }
  ~ModelOnDisk() { std::filesystem::remove(path); }
  ModelOnDisk(const ModelOnDisk&) = delete;
  ModelOnDisk& operator=(const ModelOnDisk&) = delete;

  // From this process and the page cache; nothing is read ahead afterwards.
  void drop_pages() const {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with(path.string())) continue;
      std::uint64_t begin = 0, end = 0;
      char dash = 0;
      std::istringstream(line) >> std::hex >> begin >> dash >> end;
      EXPECT_EQ(madvise(std::bit_cast<void*>(begin), end - begin, MADV_RANDOM), 0);
      EXPECT_EQ(madvise(std::bit_cast<void*>(begin), end - begin, MADV_DONTNEED), 0);
    }
    const int fd = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
  }
};

}  // namespace tt::test
