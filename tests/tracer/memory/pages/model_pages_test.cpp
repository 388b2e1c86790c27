// Reading and dropping of a mapped file's pages, and of blocks of them.
#include "tracer/memory/pages/model_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tracer/memory/pages/block_reader.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using Range = BlockReader::Range;

TEST(BlockReader, EveryRangeIsReadOnceUnlessItIsCancelled) {
  std::mutex mutex;
  std::map<std::uint64_t, int> reads;
  BlockReader reader([&](const Range& range) {
    const std::lock_guard lock(mutex);
    ++reads[range.address];
  });
  std::mt19937 random(1);
  std::map<std::uint64_t, bool> cancelled;
  for (std::uint64_t address = 1; address <= 1000; ++address) reader.submit({address, 2});
  for (std::uint64_t address = 1; address <= 1000; ++address) {
    if (random() % 4 == 0) {
      reader.cancel({address, 2});
      const std::lock_guard lock(mutex);
      cancelled[address] = reads[address] == 0;
    } else {
      reader.wait({address, 2});
      const std::lock_guard lock(mutex);
      ASSERT_EQ(reads[address], 1) << address;
    }
  }
  const std::lock_guard lock(mutex);
  for (const auto& [address, times] : reads) EXPECT_EQ(times, cancelled[address] ? 0 : 1);
}

TEST(BlockReader, ReadsAreInFlightTogetherAndWaitReturnsAfterTheRead) {
  std::atomic<std::size_t> running{0}, most{0}, done{0};
  {
    BlockReader reader([&](const Range&) {
      const std::size_t now = ++running;
      for (std::size_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      // Until the others have begun, too.
      for (int i = 0; i < 2000 && most < BlockReader::kThreads; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --running;
      ++done;
    });
    for (std::uint64_t i = 0; i < BlockReader::kThreads; ++i) reader.submit({i, 1});
    reader.wait({BlockReader::kThreads, 1});  // was not submitted
    for (std::uint64_t i = 0; i < BlockReader::kThreads; ++i) reader.wait({i, 1});
    EXPECT_EQ(done, BlockReader::kThreads);
  }
  EXPECT_GE(most, BlockReader::kThreads);
}

// A file on a disk (pages of a tmpfs cannot be dropped), mapped.
class ModelPagesTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 4096;

  ModelPagesTest() {
    std::vector<char> page(page_bytes());
    std::ofstream out(file_, std::ios::binary);
    for (std::uint64_t i = 0; i < kPages; ++i) {
      std::ranges::fill(page, static_cast<char>(i % 127));
      out.write(page.data(), static_cast<std::streamsize>(page.size()));
    }
    out.close();
    const int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fdatasync(fd);
    mapped_ =
        static_cast<char*>(::mmap(nullptr, kPages * page_bytes(), PROT_READ, MAP_SHARED, fd, 0));
    ::close(fd);
  }
  ~ModelPagesTest() override {
    ::munmap(mapped_, kPages * page_bytes());
    fs::remove(file_);
  }
  MappedPages pages(std::uint64_t from, std::uint64_t to) const {
    return {.offset = from * page_bytes(),
            .address = reinterpret_cast<std::uint64_t>(mapped_) + from * page_bytes(),
            .length = (to - from) * page_bytes()};
  }
  // How many pages of the part are in memory.
  std::uint64_t resident(std::uint64_t from, std::uint64_t to) const {
    std::vector<unsigned char> state(to - from);
    EXPECT_EQ(::mincore(mapped_ + from * page_bytes(), (to - from) * page_bytes(), state.data()),
              0);
    return static_cast<std::uint64_t>(
        std::ranges::count_if(state, [](unsigned char page) { return (page & 1) != 0; }));
  }
  bool is_right(std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t i = from; i < to; ++i)
      if (mapped_[i * page_bytes()] != static_cast<char>(i % 127)) return false;
    return true;
  }

  const fs::path file_ = fs::current_path() / ("model_pages_" + std::to_string(::getpid()));
  char* mapped_ = nullptr;
  const std::vector<ModelFile> files_{
      {.path = file_.string(), .size = kPages * page_bytes(), .header_hash = {}}};
};

TEST_F(ModelPagesTest, ReadsWhatIsAskedForAndDropsIt) {
  ASSERT_NE(mapped_, MAP_FAILED);
  const std::uint64_t block = block_bytes() / page_bytes();
  ModelPages model(files_);
  for (const bool blocks : {false, true}) {
    // Blocks are huge pages of the page cache: kernels before 5.18, and file systems without large
    // folios, have none. Pages have been tested by then.
    if (blocks && (block == 0 || kPages < 5 * block))
      GTEST_SKIP() << "the page cache of this machine has no huge pages";
    SCOPED_TRACE(blocks);
    const MappedPages all = pages(0, kPages);
    model.set_fault_around(all, false);
    model.release(all);
    model.release_files();
    ASSERT_EQ(resident(0, kPages), 0U);
    // Three whole blocks, and pages before and after them.
    const std::uint64_t unit = blocks ? block : 512;
    const std::uint64_t from = unit - 100, to = 4 * unit + 50;
    if (blocks) {
      model.use_blocks(pages(from, to));
      EXPECT_TRUE(model.is_block(pages(unit, 2 * unit)));
      EXPECT_TRUE(model.is_block(pages(3 * unit, 4 * unit)));
      EXPECT_FALSE(model.is_block(pages(0, unit)));
      EXPECT_FALSE(model.is_block(pages(4 * unit, 5 * unit)));
      EXPECT_FALSE(model.is_block(pages(unit, 3 * unit)));
    }
    model.submit(pages(from, to));
    EXPECT_TRUE(model.wait(pages(from, to)));
    EXPECT_EQ(resident(from, to), to - from);
    EXPECT_EQ(resident(0, kPages), to - from) << "and nothing else";
    EXPECT_TRUE(is_right(from, to));
    model.release(pages(2 * unit, 3 * unit));
    EXPECT_EQ(resident(2 * unit, 3 * unit), 0U);
    EXPECT_EQ(resident(0, kPages), to - from - unit);
    // Also without submit(), and what was dropped again.
    EXPECT_TRUE(model.wait(pages(2 * unit, 3 * unit)));
    EXPECT_EQ(resident(from, to), to - from);
    EXPECT_TRUE(is_right(from, to));
    model.release(pages(from, to));
    EXPECT_EQ(resident(0, kPages), 0U);
    if (blocks) {
      // Given up while it is being read.
      model.submit(pages(from, to));
      model.release(pages(from, to));
      EXPECT_EQ(resident(unit, 4 * unit), 0U);
    }
    model.forget_blocks();
    EXPECT_FALSE(model.is_block(pages(unit, 2 * unit)));
  }
}

}  // namespace
}  // namespace tt::test
