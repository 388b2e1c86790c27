// The limit that applies, from recorded files of several kinds of system, and from this one.
#include "tracer/memory/limits/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/support/temp_folder.h"
#include "tracer/memory/limits/memory_group.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1U << 20;

using Files = std::map<std::string, std::string>;

MemoryLimit read_recorded(const Files& files) {
  const TempFolder root;
  for (const auto& [name, content] : files) {
    const fs::path path = root.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  return MemoryLimitReader(root.path()).read();
}

const std::string kMeminfo =
    "MemTotal:        8388608 kB\nMemFree:         1048576 kB\nMemAvailable:    6291456 kB\n";
const std::string kUser = "Name:\ttt\nCapEff:\t0000000000000000\n";
const std::string kV1Mounts =
    "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
const std::string kV2Mounts = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

TEST(MemoryLimit, IsTheRamWithoutGroups) {
  const MemoryLimit limit = read_recorded(
      {{"proc/meminfo", kMeminfo}, {"proc/self/status", kUser}, {"proc/self/cgroup", ""}});
  EXPECT_EQ(limit.source, "RAM");
  EXPECT_EQ(limit.limit, 8192 * kMiB);
  EXPECT_EQ(limit.used, 7168 * kMiB);
  EXPECT_EQ(limit.fixed, 2048 * kMiB);
}

TEST(MemoryLimit, CanBeTheAddressSpace) {
  Files files = {
      {"proc/meminfo", kMeminfo},
      {"proc/self/status",
       kUser + "VmSize:\t 2097152 kB\nRssAnon:\t 204800 kB\nRssShmem:\t 1024 kB\n"},
      {"proc/self/cgroup", ""},
      {"proc/self/limits",
       "Limit                     Soft Limit           Hard Limit           Units     \n"
       "Max file size             1000                 unlimited            bytes     \n"
       "Max address space         3221225472           unlimited            bytes     \n"}};
  const MemoryLimit limit = read_recorded(files);
  EXPECT_EQ(limit.source, "RLIMIT_AS");
  EXPECT_EQ(limit.limit, 3072 * kMiB);
  EXPECT_EQ(limit.used, 2048 * kMiB);
  EXPECT_EQ(limit.fixed, 201 * kMiB);
  files["proc/self/limits"] = "Max address space         unlimited            unlimited  bytes\n";
  EXPECT_EQ(read_recorded(files).source, "RAM");
}

TEST(MemoryLimit, ReadsV1UpTheHierarchy) {
  Files files = {
      {"proc/meminfo", kMeminfo},
      {"proc/self/status", kUser},
      {"proc/self/mountinfo", kV1Mounts},
      {"proc/self/cgroup", "8:cpu:/other\n4:memory:/a/b\n0::/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "471859200\n"},
      {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", "104857600\n"},
      {"sys/fs/cgroup/memory/a/memory.kmem.usage_in_bytes", "1048576\n"},
      {"sys/fs/cgroup/memory/a/memory.stat",
       "cache 10\nrss 11\ntotal_cache 83886080\ntotal_rss 10485760\ntotal_shmem 2097152\n"},
      {"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"}};
  MemoryLimit limit = read_recorded(files);
  EXPECT_EQ(limit.source, "cgroup v1 /a");
  EXPECT_EQ(limit.limit, 450 * kMiB);
  EXPECT_EQ(limit.used, 100 * kMiB);
  EXPECT_EQ(limit.fixed, 13 * kMiB);

  files["sys/fs/cgroup/memory/a/b/memory.limit_in_bytes"] = "209715200";
  limit = read_recorded(files);
  EXPECT_EQ(limit.source, "cgroup v1 /a/b");
  EXPECT_EQ(limit.limit, 200 * kMiB);
}

TEST(MemoryLimit, ReadsV2) {
  const MemoryLimit limit =
      read_recorded({{"proc/meminfo", kMeminfo},
                     {"proc/self/status", kUser},
                     {"proc/self/mountinfo", kV2Mounts},
                     {"proc/self/cgroup", "0::/user.slice/run.scope\n"},
                     {"sys/fs/cgroup/user.slice/memory.max", "max\n"},
                     {"sys/fs/cgroup/user.slice/run.scope/memory.max", "314572800\n"},
                     {"sys/fs/cgroup/user.slice/run.scope/memory.current", "209715200\n"},
                     {"sys/fs/cgroup/user.slice/run.scope/memory.stat",
                      "anon 41943040\nfile 157286400\nkernel 5242880\nshmem 0\n"}});
  EXPECT_EQ(limit.source, "cgroup v2 /user.slice/run.scope");
  EXPECT_EQ(limit.limit, 300 * kMiB);
  EXPECT_EQ(limit.used, 200 * kMiB);
  EXPECT_EQ(limit.fixed, 45 * kMiB);
}

// The kernel slows a group down above memory.high, before memory.max.
TEST(MemoryLimit, CountsMemoryHighOfV2) {
  Files files = {{"proc/meminfo", kMeminfo},
                 {"proc/self/status", kUser},
                 {"proc/self/mountinfo", kV2Mounts},
                 {"proc/self/cgroup", "0::/user.slice/run.scope\n"},
                 {"sys/fs/cgroup/user.slice/memory.max", "max\n"},
                 {"sys/fs/cgroup/user.slice/memory.high", "419430400\n"},
                 {"sys/fs/cgroup/user.slice/memory.current", "314572800\n"},
                 {"sys/fs/cgroup/user.slice/memory.stat", "anon 10485760\n"},
                 {"sys/fs/cgroup/user.slice/run.scope/memory.max", "524288000\n"},
                 {"sys/fs/cgroup/user.slice/run.scope/memory.high", "max\n"}};
  MemoryLimit limit = read_recorded(files);
  EXPECT_EQ(limit.source, "cgroup v2 /user.slice (memory.high)");
  EXPECT_EQ(limit.limit, 400 * kMiB);
  EXPECT_EQ(limit.used, 300 * kMiB);
  EXPECT_EQ(limit.fixed, 10 * kMiB);

  files["sys/fs/cgroup/user.slice/run.scope/memory.high"] = "314572800\n";
  EXPECT_EQ(read_recorded(files).source, "cgroup v2 /user.slice/run.scope (memory.high)");
  // A memory.high that is not below memory.max has no effect.
  files["sys/fs/cgroup/user.slice/run.scope/memory.max"] = "209715200\n";
  limit = read_recorded(files);
  EXPECT_EQ(limit.source, "cgroup v2 /user.slice/run.scope");
  EXPECT_EQ(limit.limit, 200 * kMiB);
}

// In a container the path can be one of the host, of which only the own part is mounted.
TEST(MemoryLimit, FindsGroupOfContainer) {
  for (const char* cgroup : {"0::/docker/abc\n", "0::/\n"}) {
    SCOPED_TRACE(cgroup);
    const MemoryLimit limit =
        read_recorded({{"proc/meminfo", kMeminfo},
                       {"proc/self/status", kUser},
                       {"proc/self/mountinfo",
                        "30 24 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"},
                       {"proc/self/cgroup", cgroup},
                       {"sys/fs/cgroup/memory.max", "1073741824\n"},
                       {"sys/fs/cgroup/memory.current", "1000\n"}});
    EXPECT_EQ(limit.source, "cgroup v2 /");
    EXPECT_EQ(limit.limit, 1024 * kMiB);
  }
}

TEST(MemoryLimit, MissingFilesAreNoLimit) {
  EXPECT_EQ(read_recorded({}).limit, 0U);
  EXPECT_EQ(read_recorded({{"proc/meminfo", kMeminfo},
                           {"proc/self/cgroup", "garbage\n4:memory\n0::\n"},
                           {"proc/self/mountinfo", "one two\n- cgroup2\n"}})
                .source,
            "RAM");
}

TEST(MemoryLimit, RootMayLockAll) {
  const auto lock_limit = [](const char* capabilities) {
    return read_recorded({{"proc/meminfo", kMeminfo},
                          {"proc/self/status", std::string("CapEff:\t") + capabilities + "\n"}})
        .lock_limit;
  };
  EXPECT_EQ(lock_limit("000001ffffffffff"), UINT64_MAX);
  EXPECT_NE(lock_limit("0000000000000000"), 0U);  // RLIMIT_MEMLOCK of this process
}

TEST(MemoryLimit, FollowsARealGroup) {
  std::string problem;
  const auto group = MemoryGroup::make(300 * kMiB, problem);
  // Only root and owners of a delegated cgroup may make one; recorded folders are tested above.
  if (!group) GTEST_SKIP() << problem;
  ASSERT_TRUE(group->add(::getpid()));
  const MemoryLimitReader reader;
  MemoryLimit limit = reader.read();
  EXPECT_EQ(limit.limit, 300 * kMiB);
  EXPECT_TRUE(limit.source.starts_with(group->v2() ? "cgroup v2 " : "cgroup v1 "));
  const std::uint64_t before = limit.fixed;
  std::vector<char> memory(64 * kMiB, 1);
  limit = reader.read();
  EXPECT_GT(limit.used, 60 * kMiB) << memory[5];
  EXPECT_GT(limit.fixed, before + 60 * kMiB);
  ASSERT_TRUE(group->set_limit(200 * kMiB));
  EXPECT_EQ(reader.read().limit, 200 * kMiB);
}

}  // namespace
}  // namespace tt::test
