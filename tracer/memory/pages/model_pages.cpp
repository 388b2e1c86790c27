#include "tracer/memory/pages/model_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

namespace tt {

namespace {

void* pointer(const MappedPages& pages) {
  return reinterpret_cast<void*>(pages.address);  // NOLINT: an address of the mapping
}

bool populate(void* at, std::uint64_t length) {
  int result = 0;
  do {
    result = ::madvise(at, length, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  return result == 0;
}

BlockReader::Range range_of(const MappedPages& pages) { return {pages.address, pages.length}; }

}  // namespace

ModelPages::ModelPages(std::span<const ModelFile> files) {
  for (const ModelFile& file : files)
    files_.push_back(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
}

ModelPages::~ModelPages() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

template <class F>
void ModelPages::each_part(const MappedPages& pages, F f) const {
  const std::uint64_t block = block_bytes();
  if (blocks_.empty() || block == 0) {
    f(pages, false);
    return;
  }
  const auto part = [&](std::uint64_t from, std::uint64_t to) {
    return MappedPages{.file = pages.file,
                       .offset = pages.offset + from,
                       .address = pages.address + from,
                       .length = to - from};
  };
  std::uint64_t done = 0;
  for (std::uint64_t at = (block - pages.offset % block) % block; at + block <= pages.length;
       at += block) {
    if (!blocks_.contains(pages.address + at)) continue;
    if (at > done) f(part(done, at), false);
    f(part(at, at + block), true);
    done = at + block;
  }
  if (done < pages.length) f(part(done, pages.length), false);
}

void ModelPages::use_blocks(const MappedPages& pages) {
  const std::uint64_t block = block_bytes();
  if (block == 0) return;
  const std::uint64_t skip = (block - pages.offset % block) % block;
  if (pages.length < skip + block) return;
  const std::uint64_t count = (pages.length - skip) / block;
  const std::uint64_t first = pages.address + skip;
  // Refused where the kernel was built without huge pages for files: all is read page by page then.
  if (::madvise(reinterpret_cast<void*>(first), count * block,  // NOLINT: as above
                MADV_HUGEPAGE) != 0)
    return;
  for (std::uint64_t i = 0; i < count; ++i) blocks_.insert(first + i * block);
  if (reader_ == nullptr) {
    reader_ = std::make_unique<BlockReader>([](const BlockReader::Range& range) {
      populate(reinterpret_cast<void*>(range.address), range.length);  // NOLINT: as above
    });
  }
}

bool ModelPages::is_block(const MappedPages& pages) const {
  return blocks_.contains(pages.address) && pages.length == block_bytes();
}

void ModelPages::forget_blocks() {
  reader_.reset();
  for (const std::uint64_t address : std::exchange(blocks_, {})) {
    ::madvise(reinterpret_cast<void*>(address), block_bytes(),  // NOLINT: as above
              MADV_NOHUGEPAGE);
  }
}

void ModelPages::submit(const MappedPages& pages) const {
  each_part(pages, [&](const MappedPages& part, bool is_block) {
    if (is_block) {
      reader_->submit(range_of(part));
    } else {
      submit_pages(part);
    }
  });
}

void ModelPages::submit_pages(const MappedPages& pages) const {
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
  bool read = true;
  each_part(pages, [&](const MappedPages& part, bool is_block) {
    if (is_block) reader_->wait(range_of(part));
    // Also a block: the kernel may have dropped it.
    read = populate(pointer(part), part.length) && read;
  });
  return read;
}

void ModelPages::release(const MappedPages& pages) const {
  each_part(pages, [&](const MappedPages& part, bool is_block) {
    if (is_block) reader_->cancel(range_of(part));
  });
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
  each_part(pages, [&](const MappedPages& part, bool is_block) {
    if (is_block) reader_->wait(range_of(part));
  });
  return ::mlock(pointer(pages), pages.length) == 0 ? 0 : errno;
}

void ModelPages::unlock(const MappedPages& pages) const { ::munlock(pointer(pages), pages.length); }

void ModelPages::set_fault_around(const MappedPages& pages, bool on) const {
  ::madvise(pointer(pages), pages.length, on ? MADV_NORMAL : MADV_RANDOM);
}

std::uint64_t block_bytes() {
  static const std::uint64_t bytes = [] {
    constexpr std::uint64_t kMaxBlock = 4U << 20;  // larger ones cannot be spread over the weights
    utsname system{};
    int version = 0, revision = 0;
    if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &version, &revision) != 2 ||
        std::pair(version, revision) < std::pair(5, 18))
      return std::uint64_t{0};
    std::ifstream in("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    std::uint64_t size = 0;
    return in >> size && size <= kMaxBlock ? size : std::uint64_t{0};
  }();
  return bytes;
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

void lower_priority() {
  // Where more threads run than there are processors, a larger value delays reads that inference
  // then waits for.
  constexpr int kNice = 1;
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kNice);
}

}  // namespace tt
