#include "tracer/memory/model_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace tt {

namespace {

void* pointer(const MappedPages& pages) {
  return reinterpret_cast<void*>(pages.address);  // NOLINT: an address of the mapping
}

}  // namespace

ModelPages::ModelPages(std::span<const ModelFile> files) {
  for (const ModelFile& file : files)
    files_.push_back(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
}

ModelPages::~ModelPages() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

void ModelPages::submit(const MappedPages& pages) const {
  // Per call, the kernel reads at most the larger of its readahead size and the disk's request size
  // (usually 1280 KiB). wait() reads what is beyond it.
  constexpr std::uint64_t kRequest = 512U << 10;
  const int file = pages.file < files_.size() ? files_[pages.file] : -1;
  if (file < 0) return;
  for (std::uint64_t at = 0; at < pages.length; at += kRequest) {
    ::posix_fadvise(file, static_cast<off_t>(pages.offset + at),
                    static_cast<off_t>(std::min(kRequest, pages.length - at)), POSIX_FADV_WILLNEED);
  }
}

bool ModelPages::wait(const MappedPages& pages) const {
  int result = 0;
  do {
    result = ::madvise(pointer(pages), pages.length, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  return result == 0;
}

void ModelPages::release(const MappedPages& pages) const {
  const int file = pages.file < files_.size() ? files_[pages.file] : -1;
  ::madvise(pointer(pages), pages.length, MADV_DONTNEED);
  if (file >= 0) {
    ::posix_fadvise(file, static_cast<off_t>(pages.offset), static_cast<off_t>(pages.length),
                    POSIX_FADV_DONTNEED);
  }
}

void ModelPages::release_files() const {
  for (const int file : files_)
    if (file >= 0) ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

int ModelPages::lock(const MappedPages& pages) const {
  return ::mlock(pointer(pages), pages.length) == 0 ? 0 : errno;
}

void ModelPages::unlock(const MappedPages& pages) const { ::munlock(pointer(pages), pages.length); }

void ModelPages::set_fault_around(const MappedPages& pages, bool on) const {
  ::madvise(pointer(pages), pages.length, on ? MADV_NORMAL : MADV_RANDOM);
}

void drop_pages(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

std::uint64_t bytes_read_from_disk() {
  constexpr std::uint64_t kBlock = 512;  // unit of ru_inblock
  struct rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_inblock) * kBlock;
}

}  // namespace tt
