// Page faults of a model whose pages are not in memory, compared with the kernel's count and
// with the bytes that the steps read.
#include "tracer/recorder/page_faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "analysis/aggregate/breakdown.h"
#include "tests/analysis/aggregate/naive_faults.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPage = 4096;

// A file on a disk: in the build folder, as the folder for temporary files may be in memory.
struct DiskFile {
  fs::path path = fs::current_path() / ("page_faults_" + std::to_string(getpid()));
  ~DiskFile() { fs::remove(path); }
  void sync() const {
    const int fd = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(fsync(fd), 0);
    close(fd);
  }
};

// Drops the pages of a file from this process and from the page cache, and disables readahead.
void drop_pages(const fs::path& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(file.string())) continue;
    std::uint64_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    auto* at = std::bit_cast<void*>(begin);
    EXPECT_EQ(madvise(at, end - begin, MADV_RANDOM), 0);
    EXPECT_EQ(madvise(at, end - begin, MADV_DONTNEED), 0);
  }
  const int fd = open(file.c_str(), O_RDONLY);
  EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(fd);
}

struct Recorded {
  std::unique_ptr<TracedModel> model;
  TracedModel::Run run;
  std::uint64_t counted = 0;  // by the kernel, since the pages were dropped
};

// The pages are dropped before the step of the third generated token.
Recorded record_without_pages(const fs::path& file) {
  Recorded out;
  ModelOptions options;
  options.repack = false;
  out.model = std::make_unique<TracedModel>(file, TracedModel::small_context(), options);
  std::uint64_t before = 0;
  out.run = out.model->run(greedy_tokens(8, 6), [&](std::uint32_t generated) {
    if (generated != 3) return;
    drop_pages(file);
    before = PageFaults::count();
  });
  out.counted = PageFaults::count() - before;
  return out;
}

void copy_model(const DiskFile& to) {
  fs::copy_file(kTestPaths.bundled_model, to.path);
  to.sync();
}

// The pages of the file of which a step reads any byte.
std::set<std::uint64_t> pages_read(const SessionReader& reader, const Step& step) {
  std::set<std::uint64_t> pages;
  const auto graph = graph_of(reader, step);
  for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
    if (access.range.empty() || access.touched.v == 0) return;
    const std::uint64_t end = access.range.offset + access.range.length;
    for (std::uint64_t page = access.range.offset / kPage; page * kPage < end; ++page)
      pages.insert(page);
  });
  return pages;
}

// Each page that is read faults once, in an op that reads it.
void expect_every_page(const Recorded& recorded) {
  const SessionReader reader = recorded.run.reader();
  const std::vector<Step> steps = recorded.run.steps();
  const std::vector<NaiveFault> faults = naive_faults(reader);
  const auto at_model =
      std::ranges::find_if(faults, [](const auto& of) { return !of.file.empty(); });
  ASSERT_NE(at_model, faults.end());
  const StepId first = at_model->step.id;
  std::set<std::uint64_t> faulted;
  std::uint64_t reported = 0, in_step = 0;
  for (const NaiveFault& of : faults) {
    reported += of.step.id >= first;
    if (of.file.empty() || of.step.id != first) continue;  // the program's own pages
    ++in_step;
    faulted.insert(of.file.offset / kPage);
    EXPECT_TRUE(of.op.has_value());
    ASSERT_TRUE(of.access.has_value());
    EXPECT_EQ(of.of_access.op.v, of.op.value_or(kNone)) << "not by the op that ran";
    EXPECT_GE(of.fault.at, of.step.begin);
    EXPECT_LE(of.fault.at, of.step.end);
  }
  const std::set<std::uint64_t> read = pages_read(reader, steps[first.v]);
  EXPECT_EQ(faulted, read);
  EXPECT_EQ(in_step, read.size()) << "a page faulted twice";
  // The other counts: the kernel's, of the whole process; the breakdown's, by tensor.
  EXPECT_GE(recorded.counted, reported);
  EXPECT_LE(recorded.counted, reported + 20);
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const auto by_tensor = breakdown(*index, {.by = Axis::Tensor});
  ASSERT_TRUE(by_tensor.has_value());
  EXPECT_EQ(by_tensor->total.all.faults, static_cast<double>(faults.size()));
  std::printf("%zu page faults recorded, %llu counted by the kernel, %zu pages read by step %u\n",
              static_cast<std::size_t>(reported), static_cast<unsigned long long>(recorded.counted),
              read.size(), first.v);
}

// Only the count of faults is recorded, for the step that had them.
void expect_only_counts(const Recorded& recorded) {
  std::vector<StepFaults> faults;
  const SessionReader reader = recorded.run.reader();
  ASSERT_TRUE(reader.for_each_faults(StepId{0}, UINT32_MAX, [&](const StepFaults& of) {
    faults.push_back(of);
    return true;
  }));
  std::uint64_t all = 0;
  for (const StepFaults& of : faults) {
    EXPECT_TRUE(of.faults.empty());
    all += of.count;
  }
  EXPECT_GT(all, 50U);
  EXPECT_LE(all, recorded.counted);
  EXPECT_GE(all + 20, recorded.counted);
}

TEST(PageFaults, MatchPagesThatStepReads) {
  const DiskFile model;
  copy_model(model);
  const Recorded recorded = record_without_pages(model.path);
  EXPECT_EQ(recorded.run.recording.losses, LossCounters{});
  if (recorded.model->faults().records_addresses()) {
    EXPECT_EQ(recorded.model->faults().source(), "perf");
    expect_every_page(recorded);
  } else {  // this kernel does not allow perf events
    EXPECT_TRUE(recorded.model->faults().source().starts_with("getrusage: perf_event_open: "));
    expect_only_counts(recorded);
  }
}

// Like the seccomp rules of a container.
void forbid_perf_events() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(rules), .filter = rules};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// In a thread of its own, as the filter is permanent.
TEST(PageFaults, AreCountedWithoutPerfEvents) {
  const DiskFile model;
  copy_model(model);
  std::thread([&] {  // the filter applies to this thread and those that it starts
    forbid_perf_events();
    const Recorded recorded = record_without_pages(model.path);
    EXPECT_FALSE(recorded.model->faults().records_addresses());
    EXPECT_EQ(recorded.model->faults().source(),
              "getrusage: perf_event_open: Operation not permitted");
    expect_only_counts(recorded);
  })
      .join();
}

// Pages of a file that are not in memory: each faults once.
class ColdPages {
 public:
  explicit ColdPages(std::size_t count) : bytes_(count * kPage) {
    std::ofstream(file_.path) << std::string(bytes_, 'x');
    file_.sync();
    const int fd = open(file_.path.c_str(), O_RDONLY);
    at_ = static_cast<const volatile char*>(mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
    drop_pages(file_.path);
  }
  ~ColdPages() { munmap(const_cast<char*>(at_), bytes_); }
  ColdPages(const ColdPages&) = delete;
  ColdPages& operator=(const ColdPages&) = delete;

  void touch(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) (void)at_[i * kPage];
  }
  std::uint64_t address(std::size_t page) const {
    return reinterpret_cast<std::uint64_t>(at_) + page * kPage;
  }

 private:
  DiskFile file_;
  std::size_t bytes_;
  const volatile char* at_;
};

// More faults than the buffer holds: lost ones are counted.
TEST(PageFaults, LostFaultsAreCounted) {
  constexpr std::size_t kPages = 3 * PageFaults::kRingCapacity;
  const ColdPages pages(kPages);
  const auto faults = PageFaults::watch();
  std::vector<PageFault> reported;
  std::size_t at_first = 0;
  std::thread([&] {
    // A CPU reports its lost events with its next event.
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    const auto take = [&] { std::thread([&] { faults->take(reported); }).join(); };
    const std::uint64_t before = PageFaults::count();
    faults->start();
    pages.touch(0, kPages - 10);
    take();
    at_first = reported.size();
    pages.touch(kPages - 10, kPages);
    take();
    faults->stop();
    EXPECT_GE(PageFaults::count() - before, kPages);
  }).join();
  if (!faults->records_addresses()) {
    EXPECT_TRUE(reported.empty());
    return;
  }
  EXPECT_GT(at_first, PageFaults::kRingCapacity / 2);
  EXPECT_LT(at_first, kPages - 10);
  EXPECT_EQ(reported.size() + faults->lost(), kPages);
  EXPECT_TRUE(std::ranges::is_sorted(reported, {}, [](const PageFault& f) { return f.at.v; }));
}

// The recorder's thread is started by a watched thread and has page faults of its own.
TEST(PageFaults, ExcludeThoseOfConsumerThread) {
  constexpr std::size_t kPages = 40;
  const ColdPages pages(kPages);
  const auto faults = PageFaults::watch();
  std::vector<PageFault> reported;
  faults->start();
  pages.touch(0, kPages / 2);
  std::thread([&] {
    pages.touch(kPages / 2, kPages);
    faults->take(reported);
  }).join();
  faults->stop();
  if (!faults->records_addresses()) {
    EXPECT_TRUE(reported.empty());
    return;
  }
  std::set<std::uint64_t> faulted, expected;
  for (std::size_t page = 0; page < kPages / 2; ++page) expected.insert(pages.address(page));
  for (const PageFault& fault : reported) {
    if (fault.address >= pages.address(0) && fault.address < pages.address(kPages)) {
      faulted.insert(fault.address);
    }
  }
  EXPECT_EQ(faulted, expected);
}

}  // namespace
}  // namespace tt::test
