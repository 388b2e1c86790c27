// Asks the kernel to read, keep and drop pages of the mapped model files. Everything here is
// advice: the mapping's content stays the same whether it succeeds or not.
//
// Reading ahead is two calls. submit() queues the read and returns (posix_fadvise WILLNEED): many
// can be in flight, which keeps a disk busy. wait() returns when the pages are in memory and
// mapped (MADV_POPULATE_READ), so that the inference thread has no fault at all.
//
// release() takes pages out of this process's mapping and out of the page cache. Pages that
// another process has mapped stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/memory/memory_plan.h"

namespace tt {

class ModelPages {
 public:
  // Files that cannot be opened are not read ahead.
  explicit ModelPages(std::span<const ModelFile> files);
  ~ModelPages();
  ModelPages(const ModelPages&) = delete;
  ModelPages& operator=(const ModelPages&) = delete;

  void submit(const MappedPages& pages) const;
  bool wait(const MappedPages& pages) const;  // false: could not be read, for example truncated
  void release(const MappedPages& pages) const;
  // Drops all pages of the files that are not mapped.
  void release_files() const;
  // Locks the pages in memory, reading them if necessary. Returns an error number; 0: locked.
  int lock(const MappedPages& pages) const;
  void unlock(const MappedPages& pages) const;
  // Whether a page fault also reads the pages around it (the kernel's default). Without, only
  // what is asked for is read.
  void set_fault_around(const MappedPages& pages, bool on) const;

 private:
  std::vector<int> files_;  // descriptors; -1: not open
};

// Drops the pages of a file that nobody has mapped from the page cache.
void drop_pages(const std::filesystem::path& file);

// Bytes that this process has read from block devices so far; 0: unknown.
std::uint64_t bytes_read_from_disk();

}  // namespace tt
