// A recording of a disk beside a session, with planted offsets and a planted clock, against a
// second computation that counts sectors one by one.
#include "analysis/disk/disk_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <format>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/disk/blkparse.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kStartSector = 2048;  // of the partition
constexpr std::uint32_t kSteps = 6;
constexpr std::int64_t kStepNs = 50 * kMillisecond;

// Two files: 74 and 25 blocks of 4 KiB. The first one is in two pieces, in the wrong order.
constexpr const char* kFilefrag = R"(Filesystem type is: ef53
File size of /models/a-00001-of-00002.gguf is 303104 (74 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..      31:        300..       331:     32:
   1:       32..      73:        200..       241:     42:        332: last,eof
/models/a-00001-of-00002.gguf: 2 extents found
File size of /models/a-00002-of-00002.gguf is 102400 (25 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..      24:        340..       364:     25:             last,eof
)";

struct Place {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};
// What kFilefrag says, by sector of the whole disk.
std::map<std::uint64_t, Place> sector_places() {
  std::map<std::uint64_t, Place> places;
  const auto add = [&](std::uint32_t file, std::uint64_t block, std::uint64_t disk_block,
                       std::uint64_t blocks) {
    for (std::uint64_t sector = 0; sector < blocks * 8; ++sector)
      places[kStartSector + disk_block * 8 + sector] = {file, block * 4096 + sector * 512};
  };
  add(0, 0, 300, 32);
  add(0, 32, 200, 42);
  add(1, 0, 340, 25);
  return places;
}

struct Weight {
  const char* name;
  FileRange file;
};
constexpr std::array kWeights = {Weight{"blk.0.w", {0, 4128, 65'536}},
                                 Weight{"blk.1.w", {0, 70'000, 131'072}},
                                 Weight{"blk.2.w", {1, 544, 65'536}}};
constexpr std::uint64_t address_in(const FileRange& range) {
  return 0x7f0000000000 + (std::uint64_t{range.file} << 30) + range.offset;
}

// An op per weight; the last weight is not used by any step.
struct Planted {
  struct Request {
    std::int64_t at = 0;  // of the recording of the disk
    std::uint64_t sector = 0, sectors = 0;
    bool readahead = false;
    std::uint32_t step = kSteps;  // kSteps: outside of the session
  };
  // late: of ten faults, this number goes on later than a quiet machine would.
  explicit Planted(std::int64_t offset, bool with_faults, unsigned late = 0)
      : clock_offset(offset) {
    // NOLINTNEXTLINE: a fixed seed
    std::mt19937 random(5);
    const auto places = sector_places();
    std::uint64_t sector = 0;
    const auto request = [&](std::int64_t at, std::uint32_t step) {
      // Around the files (blocks 190 to 370), one third right after the previous one.
      if (random() % 3 != 0 || sector == 0) sector = kStartSector + (190 + random() % 180) * 8;
      const std::uint64_t sectors = 8 * (1 + random() % 24);
      requests.push_back({.at = at,
                          .sector = sector,
                          .sectors = sectors,
                          .readahead = random() % 2 == 0,
                          .step = step});
      sector += sectors;
    };
    for (int i = 0; i < 15; ++i) request((i + 1) * kMillisecond, kSteps);  // loading
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      StepFaults of{.step = StepId{step}, .count = 0, .faults = {}};
      for (int i = 0; i < 20; ++i) {
        const std::int64_t at = step * kStepNs + (3 + 2 * i) * kMillisecond;
        request(at - offset, step);
        const Request& last = requests.back();
        const auto place = places.find(last.sector + random() % last.sectors);
        if (!with_faults || place == places.end()) continue;
        for (const Weight& weight : kWeights) {
          const FileRange& file = weight.file;
          if (file.file != place->second.file || place->second.offset < file.offset ||
              place->second.offset >= file.offset + file.length)
            continue;
          // The thread goes on a little after the request was completed.
          const std::int64_t delay = 20'000 + static_cast<std::int64_t>(random() % 50'000);
          const bool is_late = late > 0 && random() % 10 < late;
          of.faults.push_back({.at = Ns{at + kLatency + delay + (is_late ? 120 * delay : 0)},
                               .address = address_in({file.file, place->second.offset, 1})});
          ++faults_of[weight.name];
        }
      }
      std::ranges::sort(of.faults, {}, [](const PageFault& fault) { return fault.at; });
      of.count = of.faults.size();
      faults.push_back(of);
    }
    for (int i = 0; i < 5; ++i) request(kSteps * kStepNs + (5 + i) * kMillisecond - offset, kSteps);

    path = folder.path() / "planted.ttrace";
    auto writer = SessionWriter::create(path, SmallSession::small_info());
    EXPECT_TRUE(writer.has_value());
    const GraphTemplate graph = planted_graph();
    EXPECT_TRUE((*writer)->add_template(TemplateId{1}, graph).has_value());
    Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
    for (const Tensor& tensor : graph.tensors)
      allocation.addresses.push_back(tensor.file.empty() ? 4096 : address_in(tensor.file));
    EXPECT_TRUE((*writer)->add_allocation(allocation).has_value());
    for (std::uint32_t id = 0; id < kSteps; ++id) {
      Step step;
      step.id = StepId{id};
      step.phase = id == 0 ? Phase::Prompt : Phase::Generate;
      step.timing = Timing::Fast;
      step.graph = TemplateId{1};
      step.allocation = AllocationId{1};
      step.begin = step.first_op = Ns{id * kStepNs + kMillisecond};
      step.end = Ns{(id + 1) * kStepNs};
      step.op_ends = {Ns{step.begin.v + 10}, Ns{step.end.v - 10}};
      step.n_tokens = 1;
      step.conditions.disk_read_bytes = 1000 * id;
      EXPECT_TRUE((*writer)->add_step(step).has_value());
      if (faults[id].count > 0) {
        EXPECT_TRUE((*writer)->add_faults(faults[id], step.begin).has_value());
      }
    }
    SessionInfo info = SmallSession::small_info();
    info.state = SessionState::Done;
    EXPECT_TRUE((*writer)->finish(info, {}).has_value());
  }

  static GraphTemplate planted_graph() {
    GraphMaker m;
    auto values = m.leaf(TensorKind::Input, "values", {64});
    for (const Weight& weight : kWeights) {
      const auto elements = static_cast<std::int64_t>(weight.file.length / 4 / 64);
      const auto id = m.weight(weight.name, {64, elements});
      m.graph.tensors[id.v].source = Source::Disk;
      m.graph.tensors[id.v].file = weight.file;
      if (&weight == &kWeights.back()) continue;
      const auto out = m.node("MUL_MAT", "out", {elements}, {id, values});
      values = m.view(out, "first", {64}, 0);
    }
    assign_op_layers(m.graph);
    return std::move(m.graph);
  }

  // As blkparse prints it, with other requests between.
  std::string text() const {
    std::vector<std::pair<std::int64_t, std::string>> lines;
    for (const Request& request : requests) {
      const auto add = [&](std::int64_t at, const char* action, const std::string& by) {
        lines.emplace_back(
            at, std::format("  8,0    1 {:8} {:5}.{:09}   697  {}  R{} {} + {} [{}]\n",
                            lines.size() + 1, at / 1'000'000'000, at % 1'000'000'000, action,
                            request.readahead ? "A" : "", request.sector, request.sectors, by));
      };
      add(request.at - 5000, "Q", "llama server");
      add(request.at, "D", "llama server");
      add(request.at + kLatency, "C", "0");
    }
    lines.emplace_back(7, "  8,0    1        1     0.000000007    42  D  WS 4096 + 8 [jbd2/sda]\n");
    std::ranges::stable_sort(lines, {}, &std::pair<std::int64_t, std::string>::first);
    std::string all;
    for (const auto& [at, line] : lines) all += line;
    return all + "CPU1 (8,0):\n Reads Queued: 1, 4KiB\n";
  }

  std::expected<DiskReads, TraceError> run(const DiskQuery& query = {},
                                           const ContinueCheck& keep_going = never_cancel) const {
    std::istringstream blkparse(text()), filefrag(kFilefrag);
    const auto trace = parse_blkparse(blkparse);
    const auto files = parse_filefrag(filefrag);
    EXPECT_TRUE(trace && files && trace->disks.size() == 1 && files->size() == 2);
    ExtentMap extents;
    for (std::uint32_t file = 0; file < 2; ++file)
      extents.add(file, (*files)[file].extents, kStartSector * kSectorBytes);
    const auto reader = SessionReader::open(path);
    EXPECT_TRUE(reader.has_value());
    return disk_reads(*reader, trace->disks.front().reads, extents, query, keep_going);
  }

  static constexpr std::int64_t kLatency = 200'000;
  const std::int64_t clock_offset;
  std::vector<Request> requests;  // by time
  std::vector<StepFaults> faults;
  std::map<std::string, std::uint64_t> faults_of;
  TempFolder folder;
  std::filesystem::path path;
};

// The second computation.
struct Counted {
  DiskTally total;
  std::array<DiskTally, kSteps> steps;
  std::map<std::string, std::uint64_t> tensor_bytes, tensor_reads, tensor_distinct;
  std::uint64_t distinct = 0, unused = 0, readahead = 0, other = 0, outside_tensors = 0;

  Counted(const Planted& planted, bool whole_recording) {
    const auto places = sector_places();
    std::array<std::vector<int>, 2> read{std::vector<int>(303'104), std::vector<int>(102'400)};
    std::vector<int> used0(303'104);
    for (const Weight& weight : {kWeights[0], kWeights[1]})
      std::fill_n(used0.begin() + static_cast<std::ptrdiff_t>(weight.file.offset),
                  weight.file.length, 1);
    std::int64_t file_before = -1, end_before = 0;
    for (const Planted::Request& request : planted.requests) {
      if (request.step == kSteps && !whole_recording) continue;
      DiskTally one;
      std::map<std::string, bool> touched;
      for (std::uint64_t i = 0; i < request.sectors; ++i) {
        const auto place = places.find(request.sector + i);
        if (place == places.end()) {
          other += 512;
          continue;
        }
        const auto [file, offset] = place->second;
        const auto begin = static_cast<std::int64_t>(offset);
        if (one.bytes.v == 0) {
          one.reads = 1;
          one.sequential = file == file_before && begin >= end_before &&
                           begin - end_before <= std::int64_t{128} * 1024;
        }
        one.bytes.v += 512;
        readahead += request.readahead ? 512 : 0;
        file_before = file;
        end_before = begin + 512;
        for (std::uint64_t byte = offset; byte < offset + 512; ++byte) {
          bool in_tensor = false;
          for (const Weight& weight : kWeights) {
            if (weight.file.file != file || byte < weight.file.offset ||
                byte >= weight.file.offset + weight.file.length)
              continue;
            in_tensor = touched[weight.name] = true;
            ++tensor_bytes[weight.name];
            tensor_distinct[weight.name] += read[file][byte] == 0;
          }
          outside_tensors += !in_tensor;
          if (read[file][byte]++ > 0) continue;
          ++distinct;
          unused += file == 1 || used0[byte] == 0;
        }
      }
      one.sequential_bytes.v = one.sequential * one.bytes.v;
      for (const auto& [name, is] : touched) ++tensor_reads[name];
      for (DiskTally* sum : {&total, request.step < kSteps ? &steps[request.step] : nullptr}) {
        if (sum == nullptr) continue;
        sum->reads += one.reads;
        sum->bytes += one.bytes;
        sum->sequential += one.sequential;
        sum->sequential_bytes += one.sequential_bytes;
      }
    }
  }
};

void expect_equal(const DiskReads& found, const Counted& expected, const Planted& planted) {
  EXPECT_EQ(found.total, expected.total);
  EXPECT_EQ(found.distinct.v, expected.distinct);
  EXPECT_EQ(found.readahead.v, expected.readahead);
  EXPECT_EQ(found.unused.v, expected.unused);
  EXPECT_EQ(found.other.v, expected.other);
  EXPECT_EQ(found.outside_tensors.v, expected.outside_tensors);
  EXPECT_EQ(found.latency_ns, Planted::kLatency);
  EXPECT_EQ(found.used.v, 65'536U + 131'072U);
  EXPECT_EQ(found.use().reread_factor(),
            static_cast<double>(expected.total.bytes.v) / (65'536 + 131'072));
  EXPECT_EQ(found.disk_read_bytes, 15'000U);
  ASSERT_EQ(found.tensors.size(), kWeights.size());
  std::uint64_t before = UINT64_MAX;
  for (const DiskReads::OfTensor& of : found.tensors) {
    SCOPED_TRACE(of.tensor);
    EXPECT_EQ(of.bytes.v, expected.tensor_bytes.at(of.tensor));
    EXPECT_EQ(of.distinct.v, expected.tensor_distinct.at(of.tensor));
    EXPECT_EQ(of.reads, expected.tensor_reads.at(of.tensor));
    const auto faults = planted.faults_of.find(of.tensor);
    EXPECT_EQ(of.faults, faults == planted.faults_of.end() ? 0 : faults->second);
    EXPECT_LE(of.bytes.v, before);
    before = of.bytes.v;
  }
}

TEST(DiskReads, FindsTheClockByPageFaults) {
  for (const std::int64_t offset : {-3'456'789'012, -20 * kMillisecond}) {
    SCOPED_TRACE(offset);
    const Planted planted(offset, true);
    const auto found = planted.run();
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->clock, DiskReads::Clock::Faults);
    EXPECT_LT(std::abs(found->clock_offset_ns - offset), 100'000);
    std::uint64_t faults = 0;
    for (const auto& [name, count] : planted.faults_of) faults += count;
    ASSERT_GT(faults, 20U);
    EXPECT_EQ(found->faults, faults);
    EXPECT_EQ(found->faults_with_place, faults);
    EXPECT_EQ(found->faults_compared, faults);
    EXPECT_EQ(found->faults_agreeing, faults);
    EXPECT_EQ(found->faults_explained, faults);
    const Counted expected(planted, false);
    expect_equal(*found, expected, planted);
    EXPECT_EQ(found->use().bytes_per_fault(), expected.total.bytes.v / faults);
    EXPECT_GT(found->total.sequential, 10U);
    ASSERT_EQ(found->steps.size(), kSteps);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(found->steps[step].reads, expected.steps[step]) << step;
      EXPECT_EQ(found->steps[step].faults, planted.faults[step].count) << step;
      EXPECT_EQ(found->steps[step].used.v, 65'536U + 131'072U);
      EXPECT_EQ(found->steps[step].disk_read_bytes, 1000U * step);
    }
  }
}

// Threads that waited for the disk wait for a processor, too.
TEST(DiskReads, FindsTheClockOfABusyMachine) {
  const Planted planted(-3'456'789'012, true, 6);
  const auto found = planted.run();
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->clock, DiskReads::Clock::Faults);
  EXPECT_LT(std::abs(found->clock_offset_ns - planted.clock_offset), kMillisecond);
  EXPECT_LT(2 * found->faults_agreeing, found->faults_compared);
}

TEST(DiskReads, TakesAGivenClock) {
  const Planted planted(-3'000'000'000, false);
  const auto found = planted.run({.clock_offset_ns = planted.clock_offset});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->clock, DiskReads::Clock::Given);
  const Counted expected(planted, false);
  expect_equal(*found, expected, planted);
  EXPECT_GT(found->reads_outside, 0U);
  EXPECT_EQ(found->use().bytes_per_fault(), std::nullopt);
  // An hour off: nothing was read during the session.
  const auto later = planted.run({.clock_offset_ns = 3'600'000'000'000});
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->total, DiskTally{});
  EXPECT_EQ(later->reads_outside, found->total.reads + found->reads_outside);
}

TEST(DiskReads, WithoutFaultsTheWholeRecordingIsCounted) {
  const Planted planted(-3'000'000'000, false);
  const auto found = planted.run();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->clock, DiskReads::Clock::Unknown);
  EXPECT_TRUE(found->steps.empty());
  expect_equal(*found, Counted(planted, true), planted);
}

TEST(DiskReads, StopsWhenCancelled) {
  const Planted planted(-3'000'000'000, true);
  const auto found = planted.run({}, [] { return false; });
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
