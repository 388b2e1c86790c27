#include "tracer/recorder/page_faults.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <expected>
#include <system_error>
#include <utility>

namespace tt {

namespace {

// With its header page, a quarter of the memory that an unprivileged user may lock per
// processor, so that several models can be loaded.
constexpr std::size_t kDataBytes = 128 << 10;

// `thread`: 0: this one.
int open_event(int thread, int processor, std::uint64_t faults) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = faults;
  event.sample_period = 1;
  event.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID;
  event.disabled = 1;
  event.inherit = 1;
  event.inherit_thread = 1;  // not by child processes
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  event.use_clockid = 1;
  event.clockid = CLOCK_MONOTONIC;  // clock of steady_clock
  // The ring is polled: waking a reader would cost tens of microseconds per fault.
  event.watermark = 1;
  event.wakeup_watermark = UINT32_MAX;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &event, thread, processor, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

// The perf ring buffer of one processor: a header page with the read and write positions,
// then the records of both kinds of faults.
struct PageFaults::Ring {
  int event = -1, minor = -1;  // minor: -1 if it cannot be opened
  std::uint64_t minor_id = 0;
  void* memory = MAP_FAILED;

  Ring(int fd, void* mapped) : event(fd), memory(mapped) {}
  Ring(Ring&& other) noexcept
      : event(std::exchange(other.event, -1)),
        minor(std::exchange(other.minor, -1)),
        minor_id(other.minor_id),
        memory(std::exchange(other.memory, MAP_FAILED)) {}
  Ring& operator=(Ring&&) = delete;
  ~Ring() {
    if (memory != MAP_FAILED) munmap(memory, bytes());
    if (minor >= 0) close(minor);
    if (event >= 0) close(event);
  }
  static std::size_t bytes() { return kDataBytes + static_cast<std::size_t>(getpagesize()); }

  // The error is an errno.
  static std::expected<Ring, int> open(int thread, int processor) {
    const int fd = open_event(thread, processor, PERF_COUNT_SW_PAGE_FAULTS_MAJ);
    if (fd < 0) return std::unexpected(errno);
    Ring ring(fd, mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    if (ring.memory == MAP_FAILED) return std::unexpected(errno);
    return ring;
  }
  // Returns 0 or an errno.
  int open_minor(int thread, int processor) {
    minor = open_event(thread, processor, PERF_COUNT_SW_PAGE_FAULTS_MIN);
    if (minor < 0 || ioctl(minor, PERF_EVENT_IOC_SET_OUTPUT, event) != 0 ||
        ioctl(minor, PERF_EVENT_IOC_ID, &minor_id) != 0) {
      const int error = errno;
      if (minor >= 0) close(std::exchange(minor, -1));
      return error;
    }
    return 0;
  }

  // Calls `record(type, numbers)` for each record; a record may wrap around the end of the ring.
  template <class Record>
  void read(Record record) {
    auto& page = *static_cast<perf_event_mmap_page*>(memory);
    const auto* data = static_cast<const std::byte*>(memory) + page.data_offset;
    const std::uint64_t size = page.data_size;
    const auto copy = [&](std::uint64_t from, void* to, std::size_t n) {
      const std::size_t at = from % size, first = std::min<std::size_t>(n, size - at);
      std::memcpy(to, data + at, first);
      std::memcpy(static_cast<std::byte*>(to) + first, data, n - first);
    };
    const std::uint64_t end = std::atomic_ref(page.data_head).load(std::memory_order_acquire);
    std::uint64_t at = page.data_tail;
    while (at < end) {
      perf_event_header header{};
      copy(at, &header, sizeof header);
      std::array<std::uint64_t, 4> numbers{};
      copy(at + sizeof header, &numbers,
           std::min(sizeof numbers, std::size_t{header.size} - sizeof header));
      record(header.type, numbers);
      at += header.size;
    }
    std::atomic_ref(page.data_tail).store(at, std::memory_order_release);
  }
};

std::unique_ptr<PageFaults> PageFaults::watch() { return watch(0); }

std::unique_ptr<PageFaults> PageFaults::watch(int pid) {
  std::vector<Ring> rings;
  std::string minor = "perf";
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  for (int i = 0; i < processors; ++i) {
    auto ring = Ring::open(pid, i);
    if (!ring && ring.error() == ENODEV) continue;  // the processor is offline
    if (!ring) {
      const std::string reason = "perf_event_open: " + std::system_category().message(ring.error());
      return std::unique_ptr<PageFaults>(new PageFaults({}, "getrusage: " + reason, reason));
    }
    if (const int error = ring->open_minor(pid, i); error != 0)
      minor = "perf_event_open: " + std::system_category().message(error);
    rings.push_back(*std::move(ring));
  }
  return std::unique_ptr<PageFaults>(new PageFaults(std::move(rings), "perf", std::move(minor)));
}

PageFaults::PageFaults(std::vector<Ring> rings, std::string source, std::string minor_source)
    : rings_(std::move(rings)),
      source_(std::move(source)),
      minor_source_(std::move(minor_source)) {}
PageFaults::~PageFaults() = default;

void PageFaults::start(bool minor) {
  for (Ring& ring : rings_) {
    ring.read([](auto, const auto&) {});
    ioctl(ring.event, PERF_EVENT_IOC_ENABLE, 0);
    if (minor && ring.minor >= 0) ioctl(ring.minor, PERF_EVENT_IOC_ENABLE, 0);
  }
}

void PageFaults::stop() {
  for (Ring& ring : rings_) {
    ioctl(ring.event, PERF_EVENT_IOC_DISABLE, 0);
    if (ring.minor >= 0) ioctl(ring.minor, PERF_EVENT_IOC_DISABLE, 0);
  }
}

void PageFaults::take(std::vector<PageFault>& major, std::vector<PageFault>& minor) {
  const auto self = static_cast<std::uint32_t>(gettid());
  for (Ring& ring : rings_) {
    ring.read([&](std::uint32_t type, const std::array<std::uint64_t, 4>& numbers) {
      if (type == PERF_RECORD_SAMPLE) {  // pid and tid, time, address, event
        const auto [process, thread] = std::bit_cast<std::array<std::uint32_t, 2>>(numbers[0]);
        if (thread == self) return;
        const bool is_minor = ring.minor >= 0 && numbers[3] == ring.minor_id;
        (is_minor ? minor : major)
            .push_back({.at = Ns{static_cast<std::int64_t>(numbers[1])}, .address = numbers[2]});
      }
      if (type == PERF_RECORD_LOST) lost_ += numbers[1];  // id, count
    });
  }
  // Rings are read one after the other, so records of different rings are not in order.
  for (std::vector<PageFault>* faults : {&major, &minor})
    std::ranges::stable_sort(*faults, {}, [](const PageFault& f) { return f.at.v; });
}

std::uint64_t PageFaults::count() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace tt
