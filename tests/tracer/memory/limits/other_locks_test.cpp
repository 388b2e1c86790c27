#include "tracer/memory/limits/other_locks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <format>
#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

void add_process(const TempFolder& root, int id, const std::string& name, int locked_kib) {
  const auto folder = root.path() / "proc" / std::to_string(id);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "comm") << name << "\n";
  std::ofstream(folder / "status") << std::format(
      "Name:\t{}\nVmPeak:\t  900 kB\nVmLck:\t{:8} kB\nThreads:\t4\n", name, locked_kib);
}

TEST(OtherLocks, AreThoseOfOurOtherProcesses) {
  const TempFolder root;
  EXPECT_EQ(other_locks(root.path()), OtherLocks{});
  add_process(root, 10, "tt-server", 2048);
  add_process(root, 11, "tt-server", 0);  // without a budget
  add_process(root, 12, "tt", 1024);
  add_process(root, 13, "postgres", 4096);
  add_process(root, ::getpid(), "tt-server", 8192);
  std::filesystem::create_directories(root.path() / "proc/sys");
  EXPECT_EQ(other_locks(root.path()), (OtherLocks{.processes = 2, .bytes = 3 << 20}));
}

TEST(OtherLocks, AreSummedInOneSentence) {
  EXPECT_EQ(other_locks_text({}, 5 << 20, 9 << 20), "");
  EXPECT_EQ(other_locks_text({.processes = 1, .bytes = 3 << 20}, 5 << 20, 16 << 20),
            "1 other process of tensor-trace on this machine has locked 3 MiB: 8 MiB together, of "
            "16 MiB.");
  EXPECT_EQ(other_locks_text({.processes = 2, .bytes = 3 << 20}, 0, 16 << 20),
            "2 other processes of tensor-trace on this machine have locked 3 MiB: 3 MiB together, "
            "of 16 MiB.");
}

}  // namespace
}  // namespace tt::test
