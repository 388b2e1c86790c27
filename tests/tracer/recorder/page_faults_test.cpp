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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <format>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "analysis/aggregate/breakdown.h"
#include "tests/analysis/aggregate/naive_faults.h"
#include "tests/support/child_process.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/format/access/access.h"
#include "tracer/modelgen/model_writer.h"

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

// A generated model in a folder on a disk that every user may read.
class DiskModel {
 public:
  explicit DiskModel(const modelgen::ModelSpec& spec) {
    fs::create_directories(folder_);
    const auto report = modelgen::write_model(spec, folder_ / "model.gguf");
    if (!report) throw std::runtime_error(report.error().message);
    files = report->files;
    for (const fs::path& file : files) {
      const int fd = open(file.c_str(), O_RDONLY);
      EXPECT_EQ(fsync(fd), 0);
      close(fd);
    }
  }
  ~DiskModel() { fs::remove_all(folder_); }
  DiskModel(const DiskModel&) = delete;
  DiskModel& operator=(const DiskModel&) = delete;
  std::vector<fs::path> files;

 private:
  const fs::path folder_ = fs::current_path() / ("page_faults_models_" + std::to_string(getpid()));
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
Recorded record_without_pages(const std::vector<fs::path>& files, std::int32_t threads = 1) {
  Recorded out;
  ModelOptions options;
  options.repack = false;
  ContextOptions context = TracedModel::small_context();
  context.threads = threads;
  out.model = std::make_unique<TracedModel>(files.front(), context, options);
  std::uint64_t before = 0;
  out.run = out.model->run(greedy_tokens(8, 6), [&](std::uint32_t generated) {
    if (generated != 3) return;
    for (const fs::path& file : files) drop_pages(file);
    before = PageFaults::count();
  });
  out.counted = PageFaults::count() - before;
  return out;
}

void copy_model(const DiskFile& to) {
  fs::copy_file(kTestPaths.bundled_model, to.path);
  to.sync();
}

using Pages = std::set<std::pair<std::uint32_t, std::uint64_t>>;  // file, page

// The pages of the files of which a step reads any byte.
Pages pages_read(const SessionReader& reader, const Step& step) {
  Pages pages;
  const auto graph = graph_of(reader, step);
  for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
    if (access.range.empty() || access.touched.v == 0) return;
    const std::uint64_t end = access.range.offset + access.range.length;
    for (std::uint64_t page = access.range.offset / kPage; page * kPage < end; ++page)
      pages.emplace(access.range.file, page);
  });
  return pages;
}

// Each page that is read faults, in an op that reads it; once, if one thread reads. Returns the
// number of faults in slices of experts.
std::size_t expect_every_page(const Recorded& recorded, bool one_thread = true) {
  const SessionReader reader = recorded.run.reader();
  const std::vector<Step> steps = recorded.run.steps();
  const std::vector<NaiveFault> faults = naive_faults(reader);
  const auto at_model =
      std::ranges::find_if(faults, [](const auto& of) { return !of.file.empty(); });
  if (at_model == faults.end()) {
    ADD_FAILURE() << "no fault in the model";
    return 0;
  }
  const StepId first = at_model->step.id;
  Pages faulted;
  std::uint64_t reported = 0, in_step = 0;
  std::size_t in_experts = 0;
  for (const NaiveFault& of : faults) {
    reported += of.step.id >= first;
    if (of.file.empty() || of.step.id != first) continue;  // the program's own pages
    ++in_step;
    faulted.emplace(of.file.file, of.file.offset / kPage);
    in_experts += of.expert >= 0;
    EXPECT_TRUE(of.op.has_value());
    EXPECT_TRUE(of.access.has_value());
    EXPECT_EQ(of.of_access.op.v, of.op.value_or(kNone)) << "not by the op that ran";
    EXPECT_GE(of.fault.at, of.step.begin);
    EXPECT_LE(of.fault.at, of.step.end);
  }
  const Pages read = pages_read(reader, steps[first.v]);
  EXPECT_EQ(faulted, read);
  if (one_thread) {
    EXPECT_EQ(in_step, read.size()) << "a page faulted twice";
  }
  // The other counts: the kernel's, of the whole process; the breakdown's, by tensor.
  EXPECT_GE(recorded.counted, reported);
  EXPECT_LE(recorded.counted, reported + 20);
  const auto index = SessionIndex::build(reader);
  EXPECT_TRUE(index.has_value());
  const auto by_tensor = breakdown(index.value(), {.by = Axis::Tensor});
  EXPECT_TRUE(by_tensor.has_value());
  EXPECT_EQ(by_tensor.value().total.all.faults, static_cast<double>(faults.size()));
  std::printf("%zu page faults recorded, %llu counted by the kernel, %zu pages read by step %u\n",
              static_cast<std::size_t>(reported), static_cast<unsigned long long>(recorded.counted),
              read.size(), first.v);
  return in_experts;
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
  const Recorded recorded = record_without_pages({model.path});
  EXPECT_EQ(recorded.run.recording.losses, LossCounters{});
  if (recorded.model->faults().records_addresses()) {
    EXPECT_EQ(recorded.model->faults().source(), "perf");
    expect_every_page(recorded);
  } else {  // this kernel does not allow perf events
    EXPECT_TRUE(recorded.model->faults().source().starts_with("getrusage: perf_event_open: "));
    expect_only_counts(recorded);
  }
}

// The pages stay in memory, but are no longer mapped. The kernel maps several of them per fault.
TEST(PageFaults, MinorFaultsAreRecordedOnRequest) {
  const DiskFile model;
  copy_model(model);
  ModelOptions options;
  options.repack = false;
  TracedModel traced(model.path, TracedModel::small_context(), options);
  GenerationRequest request = greedy_tokens(8, 6);
  request.minor_faults = true;
  // The kernel's count of this thread, which evaluates: around the step after the third token.
  const auto kernel_count = [] {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return static_cast<std::uint64_t>(usage.ru_minflt);
  };
  std::uint64_t before = 0, counted = 0;
  const auto unmap = [&](std::uint32_t generated) {
    if (generated == 4) counted = kernel_count() - before;
    if (generated != 3) return;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with(model.path.string())) continue;
      std::uint64_t begin = 0, end = 0;
      char dash = 0;
      std::istringstream(line) >> std::hex >> begin >> dash >> end;
      EXPECT_EQ(madvise(std::bit_cast<void*>(begin), end - begin, MADV_DONTNEED), 0);
    }
    before = kernel_count();
  };
  const auto run = traced.run(request, unmap);
  const SessionReader reader = run.reader();
  const std::vector<NaiveFault> faults = naive_faults(reader, FaultKind::Minor);
  if (traced.faults().minor_source() != "perf") {  // this kernel does not allow perf events
    EXPECT_TRUE(traced.faults().minor_source().starts_with("perf_event_open: "));
    EXPECT_TRUE(faults.empty());
    return;
  }
  const Step step = run.steps()[3];
  const Pages read = pages_read(reader, step);
  std::uint64_t of_step = 0, in_model = 0;
  for (const NaiveFault& of : faults) {
    if (of.step.id != step.id) continue;
    ++of_step;
    EXPECT_TRUE(of.op.has_value());
    EXPECT_GE(of.fault.at, of.step.begin);
    EXPECT_LE(of.fault.at, of.step.end);
    if (of.file.empty()) continue;  // new memory
    ++in_model;
    EXPECT_TRUE(read.contains({of.file.file, of.file.offset / kPage}));
    EXPECT_EQ(of.of_access.op.v, of.op.value_or(kNone)) << "not by the op that ran";
  }
  EXPECT_GT(in_model, 5U);
  // Of sampling and recording, too.
  EXPECT_LE(of_step, counted);
  EXPECT_GE(of_step + 20, counted);
  EXPECT_GE(step.conditions.minor_faults.value_or(0), of_step) << "of the whole process";
  std::printf("%llu minor page faults, %llu counted by the kernel, %zu pages read\n",
              static_cast<unsigned long long>(of_step), static_cast<unsigned long long>(counted),
              read.size());

  const auto without = traced.run(greedy_tokens(8, 6), unmap);
  EXPECT_TRUE(naive_faults(without.reader(), FaultKind::Minor).empty());
  EXPECT_GE(without.steps()[3].conditions.minor_faults.value_or(0), in_model) << "still counted";
}

// Routed experts in one and in three files, one and two threads.
TEST(PageFaults, MatchPagesOfExpertsAndSplitFiles) {
  for (const int splits : {1, 3}) {
    const DiskModel model({.shape = "moe", .splits = splits});
    ASSERT_EQ(model.files.size(), static_cast<std::size_t>(splits));
    for (const std::int32_t threads : {1, 2}) {
      SCOPED_TRACE(std::format("{} files, {} threads", splits, threads));
      // As in the server, every model has a thread of its own: OpenMP keeps the workers of a
      // thread, and faults are recorded of workers that start after the model was loaded.
      const Recorded recorded = std::async(std::launch::async, [&] {
                                  return record_without_pages(model.files, threads);
                                }).get();
      if (!recorded.model->faults().records_addresses()) {
        expect_only_counts(recorded);
        continue;
      }
      EXPECT_GT(expect_every_page(recorded, threads == 1), 10U) << "in slices of experts";
    }
  }
}

// In a process of its own that is no longer root. If the kernel does not allow an ordinary user to
// have perf events, the faults are counted.
TEST(PageFaults, AreFoundByAnOrdinaryUser) {
  const DiskModel model({.shape = "moe"});
  ensure_backends_loaded();
  ChildProcess child([&] {
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 2;
    const Recorded recorded = record_without_pages(model.files);
    std::printf("as user %u: %s\n", getuid(), recorded.model->faults().source().c_str());
    if (recorded.model->faults().records_addresses()) {
      expect_every_page(recorded);
    } else {
      expect_only_counts(recorded);
    }
    std::fflush(stdout);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
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
    const Recorded recorded = record_without_pages({model.path});
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

// As tt attach does: those of a process that was started before, and of no other one.
TEST(PageFaults, OfAnotherProcess) {
  constexpr std::size_t kPages = 40;
  const ColdPages pages(kPages);
  std::array<int, 2> go{}, done{};
  ASSERT_EQ(pipe(go.data()), 0);
  ASSERT_EQ(pipe(done.data()), 0);
  ChildProcess child([&] {
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) return 1;
    std::thread([&] { pages.touch(0, kPages / 2); }).join();
    return write(done[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1;
  });
  const auto faults = PageFaults::watch(child.pid());
  faults->start();
  char byte = 'x';
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  pages.touch(kPages / 2, kPages);  // this process
  std::vector<PageFault> reported, minor;
  faults->take(reported, minor);
  faults->stop();
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  EXPECT_EQ(child.wait(), 0);
  for (const int fd : {go[0], go[1], done[0], done[1]}) close(fd);
  if (!faults->records_addresses()) {
    EXPECT_TRUE(reported.empty());
    GTEST_SKIP() << faults->source();
  }
  std::set<std::uint64_t> faulted, expected;
  for (std::size_t page = 0; page < kPages / 2; ++page) expected.insert(pages.address(page));
  for (const PageFault& fault : reported)
    if (fault.address >= pages.address(0) && fault.address < pages.address(kPages))
      faulted.insert(fault.address);
  EXPECT_EQ(faulted, expected);
}

// More faults than the buffer holds: lost ones are counted.
TEST(PageFaults, LostFaultsAreCounted) {
  constexpr std::size_t kPages = 3 * PageFaults::kRingCapacity;
  const ColdPages pages(kPages);
  const auto faults = PageFaults::watch();
  std::vector<PageFault> reported, minor;
  std::size_t at_first = 0;
  std::thread([&] {
    // A CPU reports its lost events with its next event.
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    const auto take = [&] { std::thread([&] { faults->take(reported, minor); }).join(); };
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
  std::vector<PageFault> reported, minor;
  faults->start();
  pages.touch(0, kPages / 2);
  std::thread([&] {
    pages.touch(kPages / 2, kPages);
    faults->take(reported, minor);
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
