#include "attach/agent/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace tt::attach {

void Bytes::reserve(size_t bytes) {
  if (bytes <= capacity) return;
  size_t wanted = capacity == 0 ? 65536 : capacity * 2;
  if (wanted < bytes) wanted = bytes;
  auto* grown = static_cast<char*>(realloc(data, wanted));
  if (grown == nullptr) {
    failed = true;
    return;
  }
  data = grown;
  capacity = wanted;
}

void Bytes::add(const void* from, size_t bytes) {
  reserve(size + bytes);
  if (failed || bytes == 0) return;
  memcpy(data + size, from, bytes);
  size += bytes;
}

void Bytes::add_text(const char* text) {
  const auto length = static_cast<uint32_t>(strlen(text));
  constexpr char kZeros[4] = {};
  add(length);
  add(text, length);
  add(kZeros, padded(length, 4) - length);
}

void Bytes::release() {
  free(data);
  *this = {};
}

bool Ring::open() {
  const char* folder = getenv(kFolderVariable);
  if (folder == nullptr || *folder == '\0') return false;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  char path[600], temporary[620];
  snprintf(path, sizeof path, "%s/%d.%lld%09ld%s", folder, static_cast<int>(getpid()),
           static_cast<long long>(now.tv_sec), now.tv_nsec, kRingEnding);
  snprintf(temporary, sizeof temporary, "%s.new", path);
  const int file = ::open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  // Reserved, because a page that a full disk cannot provide would end the program.
  const char* wanted = getenv(kCapacityVariable);
  uint64_t capacity = 0;  // not by strtoull(): a new header makes it a new symbol
  for (; wanted != nullptr && *wanted >= '0' && *wanted <= '9' && capacity < (1ULL << 40U);
       ++wanted)
    capacity = capacity * 10 + static_cast<uint64_t>(*wanted - '0');
  capacity = capacity / 8 * 8;
  if (capacity < (1U << 16U) || capacity > (4ULL << 30U)) capacity = 64U << 20U;
  while (posix_fallocate(file, 0, static_cast<off_t>(kRingBegin + capacity)) != 0 &&
         capacity > (1U << 20U))
    capacity /= 2;
  void* memory = MAP_FAILED;
  if (posix_fallocate(file, 0, static_cast<off_t>(kRingBegin + capacity)) == 0)
    memory = mmap(nullptr, kRingBegin + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    unlink(temporary);
    return false;
  }
  auto* header = static_cast<RingHeader*>(memory);
  *header = RingHeader{};
  header->capacity = capacity;
  header->pid = getpid();
  header->paused = getenv(kPausedVariable) != nullptr;
  if (rename(temporary, path) != 0) {
    unlink(temporary);
    munmap(memory, kRingBegin + capacity);
    return false;
  }
  header_ = header;
  return true;
}

bool Ring::paused() const {
  return header_ != nullptr && __atomic_load_n(&header_->paused, __ATOMIC_RELAXED) != 0;
}

bool Ring::fits(size_t bytes, bool with_times) const {
  const uint64_t used = header_->head - __atomic_load_n(&header_->tail, __ATOMIC_ACQUIRE);
  const uint64_t kept = with_times ? header_->capacity / 8 : 0;
  return used <= header_->capacity && bytes + kept <= header_->capacity - used;
}

void Ring::put(uint64_t at, const void* data, size_t bytes) {
  char* base = reinterpret_cast<char*>(header_) + kRingBegin;
  const uint64_t place = at % header_->capacity;
  const size_t first =
      bytes < header_->capacity - place ? bytes : static_cast<size_t>(header_->capacity - place);
  memcpy(base + place, data, first);
  memcpy(base, static_cast<const char*>(data) + first, bytes - first);
}

bool Ring::write(RecordKind kind, const Part* parts, size_t count) {
  size_t bytes = sizeof(RecordHead);
  for (size_t i = 0; i < count; ++i) bytes += parts[i].bytes;
  bytes = padded(bytes, 8);
  if (header_ == nullptr || bytes > UINT32_MAX || !fits(bytes, false)) return false;
  uint64_t at = header_->head;
  const RecordHead head = {static_cast<uint32_t>(bytes), kind};
  put(at, &head, sizeof head);
  at += sizeof head;
  for (size_t i = 0; i < count; ++i) {
    if (parts[i].bytes > 0) put(at, parts[i].data, parts[i].bytes);
    at += parts[i].bytes;
  }
  __atomic_store_n(&header_->head, header_->head + bytes, __ATOMIC_RELEASE);
  return true;
}

bool Ring::write_text(RecordKind kind, const char* text) {
  Bytes bytes;
  bytes.add_text(text);
  const Part part = {bytes.data, bytes.size};
  const bool written = !bytes.failed && write(kind, &part, 1);
  bytes.release();
  return written;
}

void Ring::count_running(int steps) {
  if (header_ == nullptr) return;  // forked meanwhile
  __atomic_fetch_add(&header_->running, static_cast<uint64_t>(steps), __ATOMIC_RELEASE);
}

void Ring::count_lost_step() { __atomic_fetch_add(&header_->steps_lost, 1, __ATOMIC_RELAXED); }

}  // namespace tt::attach
