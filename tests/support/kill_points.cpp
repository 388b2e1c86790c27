#include "tests/support/kill_points.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace tt::test {
namespace {

std::atomic<std::uint64_t> change_count{0};
std::atomic<std::uint64_t> kill_at{0};  // 0: none
std::atomic<Torn> torn_mode{Torn::No};
std::atomic<bool> session_began{false};

[[noreturn]] void die() {
  for (;;) raise(SIGKILL);
}

bool reached_kill_point() { return ++change_count == kill_at; }

void change() {
  if (reached_kill_point()) die();
}

bool is_file(int fd) {
  struct stat what{};
  return fd > STDERR_FILENO && fstat(fd, &what) == 0 && S_ISREG(what.st_mode);
}

template <class Function>
Function* libc_function(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// When preloaded into tt-server with TT_TEST_DIE_IN_FINISH=n, the process dies before the nth
// file change of finishing a session that it began. Finishing starts by removing the file that
// reserves disk space for it.
void kill_in_finish(const char* removed) {
  const char* nth = std::getenv("TT_TEST_DIE_IN_FINISH");
  if (nth == nullptr || !session_began || kill_at != 0) return;
  if (std::string_view(removed).ends_with(".ttrace-reserve"))
    die_before_change(std::strtoull(nth, nullptr, 10));
}

}  // namespace

std::uint64_t changes() { return change_count; }

void die_before_change(std::uint64_t nth, Torn torn) {
  torn_mode = torn;
  kill_at = change_count + nth;
}

}  // namespace tt::test

using namespace tt::test;

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const libc = libc_function(&::write, "write");
  if (is_file(fd) && reached_kill_point()) {
    if (torn_mode == Torn::Half) libc(fd, bytes, size / 2);
    die();
  }
  return libc(fd, bytes, size);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  static auto* const libc = libc_function(&::pwrite64, "pwrite64");
  if (reached_kill_point()) {
    if (torn_mode == Torn::Half) libc(fd, bytes, size / 2, at);
    die();
  }
  return libc(fd, bytes, size, at);
}

// Written data survives a kill whether it was flushed or not: tests need not wait for the disk.
int fdatasync(int) { return 0; }
int fsync(int) { return 0; }

int ftruncate64(int fd, off64_t size) noexcept {
  static auto* const libc = libc_function(&::ftruncate64, "ftruncate64");
  change();
  return libc(fd, size);
}

int posix_fallocate(int fd, off_t offset, off_t size) {
  static auto* const libc = libc_function(&::posix_fallocate, "posix_fallocate");
  change();
  return libc(fd, offset, size);
}

int unlink(const char* path) noexcept {
  static auto* const libc = libc_function(&::unlink, "unlink");
  change();
  return libc(path);
}

int remove(const char* path) noexcept {
  static auto* const libc = libc_function(&::remove, "remove");
  kill_in_finish(path);
  change();
  return libc(path);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  static auto* const libc = libc_function(&::renameat2, "renameat2");
  change();
  session_began = true;
  return libc(from_folder, from, to_folder, to, flags);
}

}  // extern "C"
