#include "attach/collector/ring_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace tt::attach {

std::optional<RingReader> RingReader::open(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  struct stat facts{};
  void* memory = MAP_FAILED;
  if (::fstat(fd, &facts) == 0 && std::cmp_greater(facts.st_size, kRingBegin))
    memory = ::mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
  ::close(fd);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (memory == MAP_FAILED) return std::nullopt;
  auto* header = static_cast<RingHeader*>(memory);
  const std::uint64_t capacity = static_cast<std::uint64_t>(facts.st_size) - kRingBegin;
  if (header->magic != kRingMagic || header->version != kRingVersion ||
      header->capacity != capacity) {
    ::munmap(memory, static_cast<std::size_t>(facts.st_size));
    return std::nullopt;
  }
  return RingReader(header, capacity);
}

RingReader::RingReader(RingHeader* header, std::uint64_t capacity)
    : header_(header), capacity_(capacity), pid_(header->pid) {}

RingReader::RingReader(RingReader&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)),
      capacity_(other.capacity_),
      pid_(other.pid_),
      tail_(other.tail_),
      damaged_(other.damaged_) {}

RingReader::~RingReader() {
  if (header_ != nullptr) ::munmap(header_, kRingBegin + capacity_);
}

void RingReader::copy(std::uint64_t from, void* to, std::size_t bytes) const {
  const std::byte* base = reinterpret_cast<const std::byte*>(header_) + kRingBegin;
  const std::uint64_t place = from % capacity_;
  const std::size_t first = std::min<std::uint64_t>(bytes, capacity_ - place);
  std::memcpy(to, base + place, first);
  std::memcpy(static_cast<std::byte*>(to) + first, base, bytes - first);
}

std::optional<RingReader::Record> RingReader::next() {
  if (damaged_) return std::nullopt;
  const std::uint64_t ready =
      std::atomic_ref(header_->head).load(std::memory_order_acquire) - tail_;
  if (ready == 0) return std::nullopt;
  RecordHead head;
  if (ready >= sizeof head) copy(tail_, &head, sizeof head);
  if (ready > capacity_ || head.bytes < sizeof head || head.bytes > ready || head.bytes % 8 != 0) {
    damaged_ = true;
    return std::nullopt;
  }
  Record record{.kind = head.kind, .body = std::vector<std::byte>(head.bytes - sizeof head)};
  copy(tail_ + sizeof head, record.body.data(), record.body.size());
  tail_ += head.bytes;
  std::atomic_ref(header_->tail).store(tail_, std::memory_order_release);
  return record;
}

void RingReader::pause(bool paused) {
  std::atomic_ref(header_->paused).store(paused ? 1 : 0, std::memory_order_relaxed);
}

std::uint64_t RingReader::steps_lost() const {
  return std::atomic_ref(header_->steps_lost).load(std::memory_order_relaxed);
}

bool RingReader::is_running() const {
  return std::atomic_ref(header_->running).load(std::memory_order_acquire) != 0;
}

}  // namespace tt::attach
