// The ring between a traced program and the collector: both ends in one process.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <format>
#include <random>
#include <string>
#include <vector>

#include "attach/agent/ring.h"
#include "attach/collector/records.h"
#include "attach/collector/ring_reader.h"
#include "tests/support/temp_folder.h"

namespace tt::attach {
namespace {

namespace fs = std::filesystem;

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    setenv(kFolderVariable, folder_.path().c_str(), 1);
    setenv(kCapacityVariable, "65536", 1);
    EXPECT_TRUE(ring_.open());
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      reader_ = std::make_unique<RingReader>(*RingReader::open(entry.path()));
  }
  ~RingTest() override {
    unsetenv(kFolderVariable);
    unsetenv(kCapacityVariable);
  }
  test::TempFolder folder_;
  Ring ring_;
  std::unique_ptr<RingReader> reader_;
};

TEST_F(RingTest, LeavesNoFile) {
  EXPECT_EQ(reader_->pid(), getpid());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

// Against a queue, with records of random sizes that wrap around the end.
TEST_F(RingTest, GivesWhatWasWrittenInOrder) {
  std::mt19937 random(7);
  std::deque<std::string> expected;
  std::uint64_t used = 0, refused = 0, read = 0;
  const auto bytes_of = [](const std::string& text) {
    return padded(sizeof(RecordHead) + 4 + padded(text.size(), 4), 8);
  };
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      const std::string text(random() % 9000, static_cast<char>('a' + i % 26));
      const bool fits = used + bytes_of(text) <= 65536;
      EXPECT_EQ(ring_.write_text(RecordKind::Message, text.c_str()), fits);
      refused += fits ? 0 : 1;
      if (fits) {
        expected.push_back(text);
        used += bytes_of(text);
      }
    } else if (const auto record = reader_->next()) {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(parse_text(record->body), expected.front());
      used -= bytes_of(expected.front());
      expected.pop_front();
      ++read;
    } else {
      EXPECT_TRUE(expected.empty());
    }
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(read, 5000U);
  EXPECT_FALSE(reader_->damaged());
}

// The last eighth is for graphs, and for steps without times.
TEST_F(RingTest, KeepsRoomForTokens) {
  EXPECT_TRUE(ring_.fits(65536 - 8192, true));
  EXPECT_FALSE(ring_.fits(65536 - 8191, true));
  EXPECT_TRUE(ring_.fits(65536, false));
  EXPECT_FALSE(ring_.fits(65537, false));
}

TEST_F(RingTest, CountsLostSteps) {
  ring_.count_lost_step();
  ring_.count_lost_step();
  EXPECT_EQ(reader_->steps_lost(), 2U);
}

// Any bytes instead of a record give no record.
TEST(AttachRecords, DamagedBytesAreRefused) {
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(random() % 600);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (const auto graph = parse_graph(bytes)) {
      for (const std::uint32_t node : graph->graph.nodes)
        ASSERT_LT(node, graph->graph.tensors.size());
    }
    if (const auto step = parse_step(bytes)) {
      ASSERT_EQ(step->times.size(), step->head.times);
    }
  }
}

}  // namespace
}  // namespace tt::attach
