// A file that is truncated while it is mapped and read.
#include "tracer/format/file/mapping_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPage = 4096;

// A mapped file of 8 pages filled with 7.
struct MappedFile {
  explicit MappedFile(const fs::path& name) : path(name) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    const std::vector<char> content(8 * kPage, 7);
    EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    bytes = static_cast<volatile char*>(::mmap(nullptr, 8 * kPage, PROT_READ, MAP_SHARED, fd, 0));
    ::close(fd);
  }
  ~MappedFile() { ::munmap(const_cast<char*>(bytes), 8 * kPage); }
  MappedRange range() const {
    const auto begin = reinterpret_cast<std::uint64_t>(bytes);
    return {.begin = begin, .end = begin + 8 * kPage};
  }
  fs::path path;
  volatile char* bytes;
};

TEST(MappingGuard, LostPagesAreZeroAndReported) {
  const TempFolder folder;
  const MappedFile file(folder / "a"), other(folder / "b");
  std::atomic<bool> stop{false}, other_stop{false};
  const std::vector ranges = {file.range()}, other_ranges = {other.range()};
  const MappingGuard guard(ranges, stop), other_guard(other_ranges, other_stop);
  fs::resize_file(file.path, 3 * kPage);
  EXPECT_EQ(file.bytes[0], 7);
  EXPECT_EQ(file.bytes[3 * kPage - 1], 7);
  EXPECT_FALSE(guard.lost());
  EXPECT_EQ(file.bytes[5 * kPage + 9], 0);
  EXPECT_TRUE(guard.lost());
  EXPECT_TRUE(stop);
  EXPECT_EQ(file.bytes[4 * kPage], 0) << "another lost page, before the first";
  EXPECT_EQ(file.bytes[8 * kPage - 1], 0);
  EXPECT_EQ(file.bytes[0], 7);
  EXPECT_EQ(other.bytes[7 * kPage], 7);
  EXPECT_FALSE(other_guard.lost());
  EXPECT_FALSE(other_stop);
}

TEST(MappingGuard, OtherSignalsEndTheProcessAsBefore) {
  for (const bool sent : {false, true}) {
    SCOPED_TRACE(sent ? "sent by a process" : "of another mapping");
    const TempFolder folder;
    ChildProcess child([&] {
      const MappedFile file(folder / "a"), other(folder / "b");
      std::atomic<bool> stop{false};
      const std::vector ranges = {file.range()};
      struct sigaction earlier{};
      earlier.sa_handler = [](int) { ::_exit(42); };  // shows that it was called
      ::sigaction(SIGBUS, &earlier, nullptr);
      const MappingGuard guard(ranges, stop);
      if (sent) return ::raise(SIGBUS);
      fs::resize_file(other.path, 0);
      return static_cast<int>(other.bytes[0]);
    });
    EXPECT_EQ(child.wait(), 42);
  }
}

// Truncated between two steps; the next one reads missing pages. The process goes on, also while a
// memory budget pins and reads ahead.
TEST(MappingGuard, RequestOfTruncatedModelFails) {
  const TempFolder folder;
  const fs::path path = folder / "model.gguf";
  constexpr std::uint64_t kBudget = 9U << 20;
  for (const std::uint64_t budget : {MemoryOptions::kOff, kBudget}) {
    SCOPED_TRACE(budget);
    fs::copy_file(generated_model({.shape = "small"}), path, fs::copy_options::overwrite_existing);
    TracedModel model(path, TracedModel::small_context(),
                      {.repack = false, .memory = {.budget = budget}});
    const auto run = model.run(greedy_tokens(3, 8), [&](std::uint32_t generated) {
      if (generated == 3) fs::resize_file(path, 1U << 20);
    });
    EXPECT_EQ(run.result.reason, StopReason::Error);
    EXPECT_NE(run.result.error.find("truncated"), std::string::npos) << run.result.error;
    EXPECT_EQ(run.result.generated, 3U) << "no token of a worthless step";
    EXPECT_TRUE(check_session(run.file).value().empty());
    EXPECT_EQ(model.run(greedy_tokens(3, 8)).result.reason, StopReason::Error);
  }

  TracedModel again(generated_model({.shape = "small"}), TracedModel::small_context(),
                    {.repack = false});
  EXPECT_EQ(again.run(greedy_tokens(3, 8)).result.reason, StopReason::Length);
}

}  // namespace
}  // namespace tt::test
