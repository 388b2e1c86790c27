// old_kernel PROGRAM [ARGUMENTS]: runs a program as on Linux 5.4 (that of Ubuntu 20.04), for
// test.sh: system calls that are newer do not exist there, and fail with ENOSYS. New flags of older
// calls are not refused. Statically linked: it also runs where there is no library.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace {

constexpr unsigned kLastOfLinux54 = 435;  // clone3
static_assert(SYS_clone3 == kLastOfLinux54);

bool forget_newer_calls() {
  constexpr unsigned kMissing = SECCOMP_RET_ERRNO | ENOSYS;
  std::array filter = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastOfLinux54, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, kMissing),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = filter.size(), .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return false;
  return syscall(SYS_close_range, ~0U, ~0U, 0) == -1 && errno == ENOSYS;  // it holds
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (!forget_newer_calls()) {
    std::perror("old_kernel: seccomp");
    return 126;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 127;
}
