#include "tracer/sandbox/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

namespace {

// ---------------------------------------------------------------- Landlock
// The C library has no functions for it; linux/landlock.h of an older system lacks the later parts.

struct RulesetAttributes {
  std::uint64_t files, network, scopes;  // what is forbidden unless a rule allows it
};
struct PathRule {
  std::uint64_t allowed;
  std::int32_t parent_fd;
} __attribute__((packed));

constexpr std::uint32_t kAskVersion = 1, kPathBeneath = 1;
constexpr std::uint64_t kWriteFile = 1U << 1, kReadFile = 1U << 2, kReadFolder = 1U << 3;

long landlock_version() {
#ifdef SYS_landlock_create_ruleset
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
#else
  return -1;
#endif
}

// All rights over files that this version knows. IOCTL on devices (version 5) stays allowed: a
// process that may open a graphics card needs it.
std::uint64_t file_rights(long version) {
  std::uint64_t rights = (1U << 13) - 1;
  if (version >= 2) rights |= 1U << 13;  // linking and renaming between folders
  if (version >= 3) rights |= 1U << 14;  // truncating
  return rights;
}

void allow(int ruleset, const std::filesystem::path& path, std::uint64_t rights) {
#ifdef SYS_landlock_add_rule
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  struct stat facts{};
  const bool folder = ::fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode);
  const PathRule rule{.allowed = folder ? rights | kReadFolder : rights, .parent_fd = fd};
  ::syscall(SYS_landlock_add_rule, ruleset, kPathBeneath, &rule, 0);
  ::close(fd);
#else
  (void)ruleset, (void)path, (void)rights;
#endif
}

void restrict_files(const FileAccess& access) {
#ifdef SYS_landlock_restrict_self
  const long version = landlock_version();
  if (version < 1) return;
  const RulesetAttributes attributes{
      .files = file_rights(version),
      .network = version >= 4 ? 3U : 0U,  // binding and connecting of TCP
      .scopes = version >= 6 ? 3U : 0U,   // abstract UNIX sockets of, and signals to, others
  };
  // A kernel rejects fields that it does not know.
  std::size_t fields = 1;
  if (version >= 4) fields = 2;
  if (version >= 6) fields = 3;
  const long ruleset =
      ::syscall(SYS_landlock_create_ruleset, &attributes, fields * sizeof(std::uint64_t), 0);
  if (ruleset < 0) return;
  for (const auto& path : access.read) allow(static_cast<int>(ruleset), path, kReadFile);
  for (const auto& path : access.read_and_write)
    allow(static_cast<int>(ruleset), path, kReadFile | kWriteFile);
  ::syscall(SYS_landlock_restrict_self, ruleset, 0);
  ::close(static_cast<int>(ruleset));
#else
  (void)access;
#endif
}

// ---------------------------------------------------------------- seccomp

// What no job needs. They fail with EPERM, which libraries handle.
constexpr auto kForbidden = std::to_array<std::uint32_t>({
    // sockets; those that are open stay usable
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    // programs and other processes
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_pidfd_getfd,
    // what Landlock does not cover of files
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_open_by_handle_at,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
#ifdef SYS_fchmodat2
    SYS_fchmodat2,
#endif
    // io_uring can open files and sockets without these calls
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // the rest of the system
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
});
constexpr auto kFiles = std::to_array<std::uint32_t>({
    SYS_openat, SYS_openat2,   SYS_mkdirat,   SYS_mknodat,  SYS_unlinkat,
    SYS_linkat, SYS_symlinkat, SYS_renameat2, SYS_truncate,
#ifdef SYS_open
    SYS_open,   SYS_creat,     SYS_mkdir,     SYS_mknod,    SYS_rmdir,
    SYS_unlink, SYS_link,      SYS_symlink,   SYS_rename,   SYS_renameat,
#endif
});

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // no filter
#endif

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter answer(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

void forbid_calls(std::span<const std::uint32_t> calls, std::span<const std::uint32_t> more) {
  if (kArchitecture == 0) return;
  std::vector<sock_filter> program;
  program.push_back(load(offsetof(seccomp_data, arch)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  program.push_back(answer(SECCOMP_RET_KILL_PROCESS));
  program.push_back(load(offsetof(seccomp_data, nr)));
  // x86-64: the numbers of its variant with 32-bit pointers, which name the same calls.
  constexpr std::uint32_t kOtherNumbers = 0x40000000;
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOtherNumbers, 0, 1));
  program.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  for (const auto& list : {calls, more}) {
    for (const std::uint32_t call : list) {
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
      program.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
    }
  }
  program.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

// Required by both for a process without privileges: a program that it could start would not gain
// rights by its file.
void give_up_new_privileges() { ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

}  // namespace

void confine_to_computing() {
  give_up_new_privileges();
  restrict_files({});
  forbid_calls(kForbidden, kFiles);
}

void confine_to_files(const FileAccess& access) {
  give_up_new_privileges();
  restrict_files(access);
  forbid_calls(kForbidden, {});
}

std::string missing_confinement() {
  std::string missing;
  if (landlock_version() < 1)
    missing = "This kernel has no Landlock: a model check can open every file of this user.";
  if (kArchitecture == 0 || ::prctl(PR_GET_SECCOMP) < 0) {
    missing += missing.empty() ? "" : " ";
    missing += "There is no seccomp filter: child processes can use the network.";
  }
  return missing;
}

}  // namespace tt
