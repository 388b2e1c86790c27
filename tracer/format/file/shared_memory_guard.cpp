#include "tracer/format/file/shared_memory_guard.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tracer/format/file/mapping_guard.h"

namespace tt {

// SQLite itself returns it on other systems only, for a file that was replaced.
const int kSharedMemoryLost = SQLITE_IOERR_VNODE;

namespace {

// The index of one file. SQLite maps it once for all connections of the process.
struct SharedIndex {
  std::vector<std::uint64_t> regions;  // their addresses; guarded by State::mutex
  std::list<MappingGuard> guards;      // the same
  std::atomic<bool> lost = false;
};

using FileId = std::pair<dev_t, ino_t>;

struct State {
  sqlite3_vfs* present = nullptr;  // that was the default
  sqlite3_vfs ours{};
  // Held while regions are mapped and unmapped, so that no guard outlives its mapping.
  std::mutex mutex;
  std::map<FileId, std::weak_ptr<SharedIndex>> indexes;
};

// SQLite's list of VFSs is global and has no place for an owner.
State& state() {
  static State one;
  return one;
}

// The methods of one open file: those of the present VFS, except for some below.
struct GuardedFile : sqlite3_io_methods {
  const sqlite3_io_methods* present = nullptr;
  std::optional<FileId> id;
  std::shared_ptr<SharedIndex> index;  // null: nothing is mapped

  bool lost() const { return index != nullptr && index->lost.load(std::memory_order_acquire); }
};

GuardedFile& guarded(sqlite3_file* file) {
  return *const_cast<GuardedFile*>(static_cast<const GuardedFile*>(file->pMethods));
}

int close_file(sqlite3_file* file) {
  const std::unique_ptr<GuardedFile> own(&guarded(file));
  return own->present->xClose(file);
}

// The last connection takes this lock to merge the WAL, without asking for a lock of the index.
int lock_file(sqlite3_file* file, int level) {
  const GuardedFile& own = guarded(file);
  if (level == SQLITE_LOCK_EXCLUSIVE && own.lost()) return kSharedMemoryLost;
  return own.present->xLock(file, level);
}

int map_region(sqlite3_file* file, int region, int bytes, int extend, void volatile** mapped) {
  GuardedFile& own = guarded(file);
  const std::scoped_lock lock(state().mutex);
  if (own.lost()) return kSharedMemoryLost;
  const int code = own.present->xShmMap(file, region, bytes, extend, mapped);
  if (!own.id) return code;
  if (own.index == nullptr) {
    std::weak_ptr<SharedIndex>& known = state().indexes[*own.id];
    own.index = known.lock();
    if (own.index == nullptr) known = own.index = std::make_shared<SharedIndex>();
    if (own.lost()) return kSharedMemoryLost;
  }
  if (code != SQLITE_OK || *mapped == nullptr) return code;
  SharedIndex& index = *own.index;
  const auto begin = reinterpret_cast<std::uint64_t>(*mapped);
  if (std::ranges::contains(index.regions, begin)) return code;
  index.regions.push_back(begin);
  const MappedRange range{.begin = begin, .end = begin + static_cast<std::uint64_t>(bytes)};
  index.guards.emplace_back(std::span(&range, 1), index.lost);
  return code;
}

int lock_region(sqlite3_file* file, int offset, int n, int flags) {
  const GuardedFile& own = guarded(file);
  if ((flags & SQLITE_SHM_LOCK) != 0 && own.lost()) return kSharedMemoryLost;
  return own.present->xShmLock(file, offset, n, flags);
}

int unmap_regions(sqlite3_file* file, int remove) {
  GuardedFile& own = guarded(file);
  const std::scoped_lock lock(state().mutex);
  const int code = own.present->xShmUnmap(file, remove);
  own.index.reset();
  std::erase_if(state().indexes, [](const auto& known) { return known.second.expired(); });
  return code;
}

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  sqlite3_vfs* present = state().present;
  const int code = present->xOpen(present, name, file, flags, out_flags);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0 || file->pMethods->iVersion < 2 ||
      file->pMethods->xShmMap == nullptr) {
    return code;
  }
  auto* own = new (std::nothrow) GuardedFile;
  if (own == nullptr) return code;  // without a guard
  static_cast<sqlite3_io_methods&>(*own) = *file->pMethods;
  own->present = file->pMethods;
  // SQLite finds the connections to one file by these numbers, too.
  struct stat facts{};
  if (name != nullptr && ::stat(name, &facts) == 0) own->id = {facts.st_dev, facts.st_ino};
  own->xClose = close_file;
  own->xLock = lock_file;
  own->xShmMap = map_region;
  own->xShmLock = lock_region;
  own->xShmUnmap = unmap_regions;
  file->pMethods = own;
  return code;
}

}  // namespace

void guard_shared_memory() {
  State& all = state();
  all.present = sqlite3_vfs_find(nullptr);
  if (all.present == nullptr) return;
  all.ours = *all.present;
  all.ours.zName = "guarded";
  all.ours.pNext = nullptr;
  all.ours.xOpen = open_file;
  sqlite3_vfs_register(&all.ours, 1);
}

}  // namespace tt
