// tt disk: a recording of blkparse beside a real session, whose model is where the kernel says.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Extent {
  std::uint64_t offset = 0, disk = 0, length = 0;
};

// One call per extent, unlike tt.
std::vector<Extent> extents_of(const fs::path& path) {
  std::vector<Extent> extents;
  const int file = ::open(path.c_str(), O_RDONLY);
  EXPECT_GE(file, 0);
  for (;;) {
    alignas(fiemap) char memory[sizeof(fiemap) + sizeof(fiemap_extent)] = {};
    auto* query = reinterpret_cast<fiemap*>(memory);
    query->fm_start = extents.empty() ? 0 : extents.back().offset + extents.back().length;
    query->fm_length = FIEMAP_MAX_OFFSET - query->fm_start;
    query->fm_flags = FIEMAP_FLAG_SYNC;
    query->fm_extent_count = 1;
    if (::ioctl(file, FS_IOC_FIEMAP, query) != 0 || query->fm_mapped_extents == 0) break;
    const fiemap_extent& one = query->fm_extents[0];
    extents.push_back({.offset = one.fe_logical, .disk = one.fe_physical, .length = one.fe_length});
    if ((one.fe_flags & FIEMAP_EXTENT_LAST) != 0) break;
  }
  ::close(file);
  return extents;
}

// A session of a model on a disk, and a recording in which the whole file is read once during the
// first step, in file order, with requests of at most 128 KiB.
class DiskCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        run_tt(folder_, "record -p 'Once upon a time' -n 4 -t 1 --ignore-eos -o a.ttrace").code, 0);
    const fs::path model = kTestPaths.bundled_model;
    extents_ = extents_of(model);
    if (extents_.empty()) {  // a file system without extents, such as tmpfs
      extents_ = {{.offset = 0, .disk = 1U << 20, .length = fs::file_size(model)}};
      list_option_ = " --extents extents.txt";
    }
    std::ofstream blkparse(folder_ / "blkparse.txt"), filefrag(folder_ / "extents.txt");
    filefrag << std::format("File size of {} is {} ({} blocks of 1 bytes)\n", model.string(),
                            fs::file_size(model), fs::file_size(model));
    constexpr std::uint64_t kRequest = 128U << 10;
    int at = 0;
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const Extent& extent = extents_[i];
      filefrag << std::format("{:4}: {:8}..{:8}: {:10}..{:10}: {:6}:\n", i, extent.offset,
                              extent.offset + extent.length - 1, extent.disk,
                              extent.disk + extent.length - 1, extent.length);
      for (std::uint64_t done = 0; done < extent.length; done += kRequest) {
        const std::uint64_t length = std::min(kRequest, extent.length - done);
        for (const char* action : {"D", "C"}) {
          ++at;
          blkparse << std::format("  8,16   0 {:8} {:5}.{:09}   697  {}  RA {} + {} [tt]\n", at, 1,
                                  at, action, (extent.disk + done) / 512, length / 512);
        }
        bytes_ += length;
        ++requests_;
      }
    }
  }

  const test::TempFolder folder_;
  std::vector<Extent> extents_;
  std::string list_option_;  // where the kernel knows no extents
  std::uint64_t bytes_ = 0, requests_ = 0;
};

TEST_F(DiskCommand, MapsSectorsToTensorsAndSteps) {
  // In a container the disk below the file system is not known, so the start is given.
  const Result result =
      run_tt(folder_, "disk a.ttrace blkparse.txt --partition-start 0 --clock-offset -1 --json" +
                          list_option_);
  ASSERT_EQ(result.code, 0) << result.err;
  const json disk = json::parse(result.out);
  EXPECT_EQ(disk["disk"], "8,16");
  EXPECT_EQ(disk["action"], "D");
  EXPECT_EQ(disk["clock"]["source"], "given");
  EXPECT_EQ(disk["reads"]["reads"], requests_);
  EXPECT_EQ(disk["reads"]["bytes_read"], bytes_);
  EXPECT_EQ(disk["reads"]["distinct_bytes"], bytes_);
  EXPECT_EQ(disk["reads"]["readahead_bytes"], bytes_);
  // All but the first one of each extent, or of all if the extents are in order.
  EXPECT_GE(disk["reads"]["sequential_reads"], requests_ - extents_.size());
  EXPECT_LT(disk["reads"]["sequential_reads"], requests_);
  EXPECT_EQ(disk["reads"]["other_files_bytes"], 0);
  std::uint64_t of_tensors = 0;
  for (const json& tensor : disk["tensors"]) {
    EXPECT_EQ(tensor["bytes_read"], tensor["size_bytes"]) << tensor;
    EXPECT_EQ(tensor["distinct_bytes"], tensor["size_bytes"]) << tensor;
    EXPECT_GT(tensor["reads"], 0);
    of_tensors += tensor["bytes_read"].get<std::uint64_t>();
  }
  EXPECT_GT(disk["tensors"].size(), 10U);
  EXPECT_EQ(disk["reads"]["outside_tensors_bytes"], bytes_ - of_tensors);
  ASSERT_EQ(disk["steps"].size(), 4U);
  EXPECT_EQ(disk["steps"][0]["bytes_read"], bytes_);
  EXPECT_EQ(disk["steps"][1]["bytes_read"], 0);
  // As SQL says.
  const Result sql = run_tt(folder_, "sql a.ttrace 'SELECT mapped_bytes FROM step ORDER BY step'");
  ASSERT_EQ(sql.code, 0) << sql.err;
  for (std::size_t step = 0; step < 4; ++step)
    EXPECT_TRUE(sql.out.contains(disk["steps"][step]["mapped_bytes"].dump())) << sql.out;
}

TEST_F(DiskCommand, TakesAListOfExtents) {
  const std::string rest = " --partition-start 0 --clock-offset -1 --json";
  const Result asked = run_tt(folder_, "disk a.ttrace blkparse.txt" + list_option_ + rest);
  const Result listed = run_tt(folder_, "disk a.ttrace blkparse.txt --extents extents.txt" + rest);
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.out, asked.out);
  const Result text = run_tt(
      folder_, "disk a.ttrace blkparse.txt --extents extents.txt --partition-start 0 --limit 3");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.contains("clock      unknown")) << text.out;
  EXPECT_TRUE(text.out.contains(std::format("{} requests of the model files", requests_)))
      << text.out;
  EXPECT_TRUE(text.out.contains("token_embd.weight")) << text.out;
}

TEST_F(DiskCommand, SaysWhatDoesNotFit) {
  const auto fails = [&](const std::string& arguments, const char* message, int code = 1) {
    const Result result = run_tt(folder_, "disk a.ttrace " + arguments);
    EXPECT_EQ(result.code, code) << arguments;
    EXPECT_TRUE(result.err.contains(message)) << arguments << ": " << result.err;
  };
  fails("none.txt", "none.txt cannot be read: No such file");
  fails("a.ttrace", "blkparse -i");
  fails("blkparse.txt --extents none.txt", "none.txt cannot be read: No such file");
  fails("blkparse.txt --extents blkparse.txt", "filefrag -v");
  fails("blkparse.txt --partition-start 0 --disk 8,1" + list_option_, "it has 8,16");
  fails("blkparse.txt --partition-start 4096000000" + list_option_, "--partition-start");
  fails("", "recording", 2);
  std::ofstream(folder_ / "other.txt")
      << "File size of other.gguf is 1 (1 blocks of 4096 bytes)\n"
         "File size of another.gguf is 1 (1 blocks of 4096 bytes)\n";
  fails("blkparse.txt --extents other.txt", "has no extents of");
  std::ofstream(folder_ / "two.txt") << "8,0 0 1 0.000000000 9 D R 80 + 8 [a]\n"
                                        "9,0 0 1 0.000000000 9 D R 80 + 8 [a]\n";
  fails("two.txt --extents extents.txt", "8,0 (1 read); 9,0 (1 read)");
}

}  // namespace
}  // namespace tt
