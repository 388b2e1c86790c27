// Starts a program of the relocatable archive (package/package.sh) with the loader and the
// libraries of the archive.
//
// The kernel takes the loader (ld.so) from an absolute path that is written into the program, so a
// program that can be moved cannot have its own. This file is in the place of the program; it maps
// the loader into its own process, gives it the path of the real program and jumps to it. It does
// not execute the loader: /proc/self/exe would then be the loader, beside which nothing is found,
// and ps would list all programs as ld-linux. So the programs need not know that they were moved.
//
//   bin/tt                          this file; TT_LIBRARIES is /../lib/tensor-trace
//   lib/tensor-trace/ld.so          the loader
//   lib/tensor-trace/tt             the real program, beside its libraries
//
// Linked without any library, not even libc, which would set up the thread before the loader does.
#include <elf.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kNone = 0;

long call(long number, std::uintptr_t a = 0, std::uintptr_t b = 0, std::uintptr_t c = 0,
          std::uintptr_t d = 0, std::uintptr_t e = 0, std::uintptr_t f = 0) {
  long result = 0;
  register std::uintptr_t fourth asm("r10") = d;
  register std::uintptr_t fifth asm("r8") = e;
  register std::uintptr_t sixth asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::size_t length(const char* text) {
  std::size_t bytes = 0;
  while (text[bytes] != '\0') ++bytes;
  return bytes;
}

[[noreturn]] void fail(const char* path, const char* problem) {
  for (const char* text : {"tensor-trace: ", path, ": ", problem, "\n"})
    call(SYS_write, 2, address(text), length(text));
  call(SYS_exit_group, 127);
  __builtin_unreachable();
}

// The programs keep pointers to these for as long as they run.
char loader_path[2 * PATH_MAX];   // NOLINT(*-avoid-non-const-global-variables)
char program_path[2 * PATH_MAX];  // NOLINT(*-avoid-non-const-global-variables)

char* append(char* end, const char* text) {
  while (*text != '\0') *end++ = *text++;
  *end = '\0';
  return end;
}

// Sets the two paths from the place of this file.
void find_files() {
  static char self[PATH_MAX];
  const long bytes = call(SYS_readlink, address("/proc/self/exe"), address(self), sizeof self - 1);
  if (bytes <= 0) fail("/proc/self/exe", "cannot be read; is /proc mounted?");
  self[bytes] = '\0';
  char* name = self + bytes;
  while (name[-1] != '/') --name;
  name[-1] = '\0';
  append(append(append(loader_path, self), TT_LIBRARIES), "/ld.so");
  append(append(append(append(program_path, self), TT_LIBRARIES), "/"), name);
}

std::uintptr_t page_of(std::uintptr_t at) { return at & ~(kPage - 1); }

int protection_of(const Elf64_Phdr& segment) {
  return ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) |
         ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

std::uintptr_t map(std::uintptr_t at, std::uintptr_t bytes, int protection, int flags, int file,
                   std::uintptr_t offset) {
  const long mapped = call(SYS_mmap, at, bytes, static_cast<std::uintptr_t>(protection),
                           static_cast<std::uintptr_t>(MAP_PRIVATE | flags),
                           static_cast<std::uintptr_t>(file), offset);
  if (mapped < 0) fail(loader_path, "cannot be mapped; may programs on this file system run?");
  return static_cast<std::uintptr_t>(mapped);
}

struct Loader {
  std::uintptr_t entry = 0;
  std::uintptr_t headers = 0;  // program headers, in memory
  std::uintptr_t header_count = 0;
};

Loader map_loader() {
  const long opened = call(SYS_open, address(loader_path), O_RDONLY | O_CLOEXEC);
  if (opened < 0) fail(loader_path, "cannot be opened; unpack the whole archive");
  const int file = static_cast<int>(opened);
  alignas(Elf64_Ehdr) static char head[kPage];
  const long read = call(SYS_read, static_cast<std::uintptr_t>(file), address(head), sizeof head);
  const auto& elf = *reinterpret_cast<const Elf64_Ehdr*>(head);
  if (read < static_cast<long>(sizeof elf) || elf.e_ident[0] != ELFMAG0 ||
      elf.e_phoff + elf.e_phnum * sizeof(Elf64_Phdr) > static_cast<std::uintptr_t>(read))
    fail(loader_path, "is damaged; unpack the archive again");
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(head + elf.e_phoff);

  std::uintptr_t end = 0;
  for (const Elf64_Phdr* segment = segments; segment < segments + elf.e_phnum; ++segment)
    if (segment->p_type == PT_LOAD) end = segment->p_vaddr + segment->p_memsz;
  const std::uintptr_t base = map(kNone, end, PROT_NONE, MAP_ANONYMOUS, -1, 0);
  for (const Elf64_Phdr* segment = segments; segment < segments + elf.e_phnum; ++segment) {
    if (segment->p_type != PT_LOAD) continue;
    const int protection = protection_of(*segment);
    const std::uintptr_t begin = base + segment->p_vaddr, begin_page = page_of(begin);
    const std::uintptr_t from_file = begin + segment->p_filesz, all = begin + segment->p_memsz;
    map(begin_page, from_file - begin_page, protection, MAP_FIXED, file,
        page_of(segment->p_offset));
    if (all == from_file) continue;
    // The rest of the last page of the file, and whole pages after it, are zero.
    const std::uintptr_t next_page = page_of(from_file + kPage - 1);
    for (std::uintptr_t at = from_file; at < next_page && at < all; ++at)
      *reinterpret_cast<volatile char*>(at) = 0;  // NOLINT(performance-no-int-to-ptr)
    if (all > next_page)
      map(next_page, all - next_page, protection, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
  }
  call(SYS_close, static_cast<std::uintptr_t>(file));
  return {.entry = base + elf.e_entry, .headers = base + elf.e_phoff, .header_count = elf.e_phnum};
}

}  // namespace

// `stack` is what the kernel wrote: number of arguments, arguments, 0, variables, 0, pairs of the
// auxiliary vector. Writes the same for the loader below it, as if the loader had been started by
//   ld.so --library-path '$ORIGIN' --argv0 ARGUMENT0 PROGRAM ARGUMENTS...
// and jumps to it. $ORIGIN, the folder of the program, because a path with a colon would be two.
extern "C" [[noreturn, gnu::used]] void launch(std::uintptr_t* stack) {
  find_files();
  const Loader loader = map_loader();

  const std::uintptr_t count = stack[0];
  const std::uintptr_t* const arguments = stack + 1;
  const std::uintptr_t own[] = {address(loader_path),
                                address("--library-path"),
                                address("$ORIGIN"),
                                address("--argv0"),
                                count > 0 ? arguments[0] : address(program_path),
                                address(program_path)};
  constexpr std::size_t kOwn = sizeof own / sizeof own[0];
  const std::size_t rest = count > 0 ? count - 1 : 0;
  const std::uintptr_t* const variables = arguments + count + 1;
  const std::uintptr_t* auxiliary = variables;
  while (*auxiliary++ != 0) {
  }
  const std::uintptr_t* end = auxiliary;
  while (end[0] != AT_NULL) end += 2;
  end += 2;

  const std::size_t words = 1 + kOwn + rest + 1 + static_cast<std::size_t>(end - variables);
  auto* const written =
      static_cast<std::uintptr_t*>(__builtin_alloca_with_align(words * sizeof *stack, 128));
  std::uintptr_t* out = written;
  *out++ = kOwn + rest;
  for (const std::uintptr_t argument : own) *out++ = argument;
  for (std::size_t i = 0; i < rest; ++i) *out++ = arguments[i + 1];
  *out++ = 0;
  for (const std::uintptr_t* in = variables; in < auxiliary; ++in) *out++ = *in;
  for (const std::uintptr_t* pair = auxiliary; pair < end; pair += 2) {
    *out++ = pair[0];
    switch (pair[0]) {
      case AT_PHDR:
        *out++ = loader.headers;
        break;
      case AT_PHNUM:
        *out++ = loader.header_count;
        break;
      case AT_ENTRY:
        *out++ = loader.entry;
        break;
      case AT_BASE:
        *out++ = 0;
        break;
      default:
        *out++ = pair[1];
        break;
    }
  }
  // rdx: a function to call at exit; none.
  asm volatile("mov %0, %%rsp\n\txor %%edx, %%edx\n\txor %%ebp, %%ebp\n\tjmp *%1"
               :
               : "r"(written), "r"(loader.entry)
               : "memory", "rdx");
  __builtin_unreachable();
}

asm(".globl _start\n"
    "_start:\n\t"
    "xor %ebp, %ebp\n\t"
    "mov %rsp, %rdi\n\t"
    "and $-16, %rsp\n\t"
    "call launch\n");
