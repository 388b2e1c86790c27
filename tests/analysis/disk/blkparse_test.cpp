// Text of blkparse and filefrag, and from sectors to bytes of files.
#include "analysis/disk/blkparse.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "analysis/disk/file_extents.h"

namespace tt {
namespace {

BlockTrace trace_of(const std::string& text) {
  std::istringstream in(text);
  auto trace = parse_blkparse(in);
  EXPECT_TRUE(trace.has_value());
  return trace ? *std::move(trace) : BlockTrace{};
}

// The output of blkparse 1.2 with every kind of line: queued, merged, plugged and remapped
// requests, writes, flushes, a program with a space in its name, a message and the summary.
constexpr const char* kText =
    R"(  8,0    0        1     0.000000000   697  Q  RA 2048 + 256 [llama server]
  8,0    0        2     0.000001210   697  G  RA 2048 + 256 [llama server]
  8,0    0        3     0.000002000   697  P   N [llama server]
  8,0    0        4     0.000003000   697  I  RA 2048 + 256 [llama server]
  8,0    0        5     0.000004000   697  U   N [llama server] 1
  8,0    0        6     0.000005500   697  D  RA 2048 + 256 [llama server]
  8,0    0        0     0.000006000     0  m   N cfq697A   /a dispatch
  8,0    1        1     0.000400250     0  C  RA 2048 + 256 [0]
  8,0    1        2     0.000500000    42  A  WS 4096 + 8 <- (8,1) 2048
  8,0    1        3     0.000500100    42  Q  WS 4096 + 8 [jbd2/sda1-8]
  8,0    1        4     0.000500200    42  D  WS 4096 + 8 [jbd2/sda1-8]
  8,0    1        5     0.000600000    42  D  FN [kworker/0:1H]
  8,0    1        6     0.000650000    42  C  FN 0 [0]
  8,0    1        7     0.000700000     0  C  WS 4096 + 8 [0]
259,12   3       11     1.009507758   698  Q   R 223490 + 8 [cat]
259,12   3       12     1.009508000   698  M   R 223498 + 8 [cat]
259,12   3       13     1.009509000   698  D   R 223490 + 16 [cat]
  8,0    0        7     2.000000000   697  D   R 9000 + 8 [llama server]
  8,0    0        8     2.000100000   697  R   R 9000 + 8 [0]
  8,0    0        9     2.000200000   697  D   R 9000 + 8 [llama server]
  8,0    1        9     2.000900000     0  C   R 9000 + 8 [0]
CPU0 (8,0):
 Reads Queued:           2,      132KiB	 Writes Queued:           1,        4KiB
Total (259,12):
Throughput (R/W): 92KiB/s / 4KiB/s
Events (8,0): 19 entries
Skips: 0 forward (0 -   0.0%)
)";

TEST(Blkparse, TakesReadsSentToEachDisk) {
  const BlockTrace trace = trace_of(kText);
  EXPECT_EQ(trace.events, 21U);
  ASSERT_EQ(trace.disks.size(), 2U);
  EXPECT_EQ(to_text(trace.disks[0].id), "8,0");
  EXPECT_EQ(trace.disks[0].action, 'D');
  // The second one was sent twice.
  EXPECT_EQ(trace.disks[0].reads, (std::vector<DiskRead>{{.issued_ns = 5500,
                                                          .completed_ns = 400'250,
                                                          .sector = 2048,
                                                          .sectors = 256,
                                                          .readahead = true},
                                                         {.issued_ns = 2'000'000'000,
                                                          .completed_ns = 2'000'900'000,
                                                          .sector = 9000,
                                                          .sectors = 8}}));
  EXPECT_EQ(to_text(trace.disks[1].id), "259,12");
  EXPECT_EQ(trace.disks[1].reads, (std::vector<DiskRead>{{.issued_ns = 1'009'509'000,
                                                          .completed_ns = std::nullopt,
                                                          .sector = 223'490,
                                                          .sectors = 16}}));
}

// LVM and software RAID pass requests on: there is no D.
TEST(Blkparse, TakesQueuedReadsOfDisksWithoutD) {
  const BlockTrace trace = trace_of(
      "253,0 0 2 0.000020000 9 C R 80 + 8 [0]\n253,0 0 1 0.000010000 9 Q R 80 + 8 [a]\n"
      "253,0 0 3 0.000030000 9 Q R 88 + 8 [a]\n");
  ASSERT_EQ(trace.disks.size(), 1U);
  EXPECT_EQ(trace.disks[0].action, 'Q');
  ASSERT_EQ(trace.disks[0].reads.size(), 2U);
  EXPECT_EQ(trace.disks[0].reads[0].completed_ns, 20'000);
}

TEST(Blkparse, IgnoresWhatIsNoEvent) {
  for (const std::string& text :
       {std::string(), std::string("hello\n"), std::string("\x07tae\0\0\x01\xff", 8),
        std::string("8,0 0 1 0.5 9 D R 80 + 8 [a]\n"), std::string("8,0 0 1 1.000000000\n"),
        std::string("8 0 1 1.000000000 9 D R 80 + 8\n"),
        std::string("-8,0 0 1 1.000000000 9 D R 80 + 8\n")}) {
    std::istringstream in(text);
    const auto trace = parse_blkparse(in);
    ASSERT_FALSE(trace.has_value()) << text;
    EXPECT_TRUE(trace.error().message.contains("blkparse -i")) << trace.error().message;
  }
  // Events, but no usable request.
  for (const char* request : {"80 + 0", "80 + -8", "80 * 8", "99999999999999999999 + 8",
                              "36028797018963967 + 4294967295", ""}) {
    const BlockTrace trace = trace_of(std::string("8,0 0 1 1.000000000 9 D R ") + request + "\n");
    EXPECT_EQ(trace.events, 1U);
    EXPECT_TRUE(trace.disks.empty()) << request;
  }
}

TEST(Blkparse, StopsWhenCancelled) {
  std::istringstream in(kText);
  const auto trace = parse_blkparse(in, [] { return false; });
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(trace.error().kind, TraceError::Kind::Cancelled);
}

TEST(FileExtents, ReadsListOfFilefrag) {
  std::istringstream in(R"(Filesystem type is: ef53
File size of /models/a is b (1).gguf is 251658240 (61440 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..   32767:      34816..     67583:  32768:
   1:    32768..   61439:      69632..     98303:  28672:      67584: last,eof
/models/a is b (1).gguf: 2 extents found
File size of b.gguf is 3000 (3 blocks of 1024 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:          0..         0:      0:             not_aligned,inline
   1:        1..       1:         99..        99:      1:             unwritten
   2:        2..       2:        100..       100:      1:             last,shared,eof
b.gguf: 1 extent found
)");
  const auto files = parse_filefrag(in);
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(
      *files,
      (std::vector<ListedFile>{
          {.path = "/models/a is b (1).gguf",
           .extents = {{.offset = 0, .disk = 34816U * 4096, .length = 32768U * 4096},
                       {.offset = 32768U * 4096, .disk = 69632U * 4096, .length = 28672U * 4096}}},
          {.path = "b.gguf", .extents = {{.offset = 2048, .disk = 102'400, .length = 1024}}}}));
  std::istringstream nothing("   0:        0..   32767:      34816..     67583:  32768:\n");
  const auto none = parse_filefrag(nothing);
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(none.error().message.contains("filefrag -v"));
}

TEST(FileExtents, MapsBytesOfTheDiskToFiles) {
  ExtentMap map;
  map.add(0,
          {{.offset = 0, .disk = 1000, .length = 100}, {.offset = 100, .disk = 500, .length = 50}},
          10'000);
  // Shares its begin with the other file.
  map.add(1, {{.offset = 0, .disk = 1060, .length = 80}}, 10'000);
  const auto parts = [&](std::uint64_t disk, std::uint64_t length) {
    std::vector<FileRange> found;
    map.for_each(disk, length, [&](const FileRange& range) { found.push_back(range); });
    return found;
  };
  EXPECT_EQ(parts(0, 10'500), std::vector<FileRange>{});
  EXPECT_EQ(parts(10'490, 20), (std::vector<FileRange>{{0, 100, 10}}));
  EXPECT_EQ(parts(10'540, 1000), (std::vector<FileRange>{{0, 140, 10}, {0, 0, 100}, {1, 40, 40}}));
  EXPECT_EQ(parts(11'139, 1), (std::vector<FileRange>{{1, 79, 1}}));
  EXPECT_EQ(parts(11'140, 1), std::vector<FileRange>{});
}

}  // namespace
}  // namespace tt
