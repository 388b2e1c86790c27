// Asks the kernel to read, keep and drop pages of the mapped model files. Everything here is
// advice: the mapping's content stays the same whether it succeeds or not.
//
// Reading ahead is two calls. submit() queues the read and returns (posix_fadvise WILLNEED): many
// can be in flight, which keeps a disk busy. wait() returns when the pages are in memory and
// mapped (MADV_POPULATE_READ), so that the inference thread has no fault at all.
//
// Blocks (use_blocks()) are read as a whole, each into one huge page if the file system has them
// (ext4, XFS, Btrfs): the kernel then needs a twentieth of the time for its bookkeeping, which
// otherwise takes longer than a fast disk needs to read. A fault in a block reads the whole block.
//
// release() takes pages out of this process's mapping and out of the page cache. Pages that
// another process has mapped stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/memory/pages/block_reader.h"
#include "tracer/memory/plan/memory_plan.h"

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

  // From now on the whole blocks in the range are read as blocks. Only where faults do not read
  // around them.
  void use_blocks(const MappedPages& pages);
  // Whether the range is one of these blocks.
  bool is_block(const MappedPages& pages) const;
  void forget_blocks();

 private:
  void submit_pages(const MappedPages& pages) const;
  // Calls f(part, whether it is a block) for the parts of a range, in order.
  template <class F>
  void each_part(const MappedPages& pages, F f) const;

  std::vector<int> files_;                    // descriptors; -1: not open
  std::unordered_set<std::uint64_t> blocks_;  // addresses
  std::unique_ptr<BlockReader> reader_;       // once there are blocks
};

// Size of a block: of a huge page of this system. 0: the kernel cannot read blocks (before Linux
// 5.18, or without huge pages).
std::uint64_t block_bytes();

// Drops the pages of a file that nobody has mapped from the page cache.
void drop_pages(const std::filesystem::path& file);

// Bytes that this process has read from block devices so far; 0: unknown.
std::uint64_t bytes_read_from_disk();

// Of the calling thread, which reads ahead: lower than that of the threads of inference.
void lower_priority();

}  // namespace tt
