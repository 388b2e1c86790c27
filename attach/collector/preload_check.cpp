#include "attach/collector/preload_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <format>
#include <fstream>
#include <sstream>
#include <vector>

#include "attach/agent/ring_format.h"

namespace tt::attach {

namespace fs = std::filesystem;

namespace {

fs::path find_program(const std::string& name) {
  if (name.contains('/')) return name;
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable);
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code none;
    if (fs::is_regular_file(candidate, none) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return {};
}

// The program of the first line of a script: "#!/usr/bin/env node" gives node.
std::string interpreter_of(const fs::path& script) {
  std::ifstream in(script);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("#!")) return {};
  std::istringstream words(line.substr(2));
  std::string word;
  words >> word;
  if (fs::path(word).filename() != "env") return word;
  while (words >> word)
    if (!word.starts_with('-') && !word.contains('=')) return word;
  return {};
}

// What the program's loader says when it loads the program's libraries and the agent, without
// running anything.
std::string ask_loader(const std::string& loader, const fs::path& program, const fs::path& agent) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    ::setenv("LD_PRELOAD", agent.c_str(), 1);
    ::execl(loader.c_str(), loader.c_str(), program.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = ::read(pipe[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(size));
  ::close(pipe[0]);
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return text;
}

std::string line_with(const std::string& text, const std::string& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.contains(words)) return line;
  return {};
}

}  // namespace

ElfFacts elf_facts(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr head{};
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!in || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
#if defined(__x86_64__)
  constexpr auto kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr auto kMachine = EM_AARCH64;
#else
  constexpr auto kMachine = EM_NONE;
#endif
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != kMachine)
    return {.kind = ElfKind::OtherMachine, .loader = ""};
  for (std::size_t i = 0; i < head.e_phnum && head.e_phentsize == sizeof(Elf64_Phdr); ++i) {
    Elf64_Phdr part{};
    in.seekg(static_cast<std::streamoff>(head.e_phoff + i * sizeof part));
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (!in) break;
    if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096) continue;
    std::string loader(part.p_filesz - 1, '\0');
    in.seekg(static_cast<std::streamoff>(part.p_offset));
    in.read(loader.data(), static_cast<std::streamsize>(loader.size()));
    return {.kind = ElfKind::Dynamic, .loader = loader};
  }
  return {.kind = ElfKind::Static, .loader = ""};
}

PreloadCheck check_preload(const std::string& name, const fs::path& agent) {
  const auto no = [](std::string message, const fs::path& program = {}) {
    return PreloadCheck{.possible = false, .message = std::move(message), .program = program};
  };
  if (const char* rings = std::getenv(kFolderVariable); rings != nullptr && *rings != '\0')
    return no("This shell runs inside tt attach: its programs are traced already.");
  std::error_code none;
  if (!fs::exists(agent, none))
    return no(std::format("{} is missing. Install tensor-trace again.", agent.string()));
  fs::path program = find_program(name);
  if (program.empty()) return no(std::format("{} was not found in PATH. Give its path.", name));
  if (!fs::exists(program, none)) return no(std::format("{} does not exist.", name));
  if (fs::is_directory(program, none)) return no(std::format("{} is a folder.", name));
  for (int depth = 0; depth < 4; ++depth) {
    const std::string interpreter = interpreter_of(program);
    if (interpreter.empty()) break;
    const fs::path found = find_program(interpreter);
    if (found.empty() || !fs::exists(found, none))
      return no(std::format("{}: its interpreter {} was not found.", name, interpreter), program);
    program = found;
  }
  struct stat facts{};
  ::stat(program.c_str(), &facts);
  const bool other_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != ::geteuid();
  const bool other_group = (facts.st_mode & S_ISGID) != 0 && facts.st_gid != ::getegid();
  const bool has_capabilities =
      ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0 && ::geteuid() != 0;
  const std::string shown = program.string();
  const ElfFacts elf = elf_facts(program);
  switch (elf.kind) {
    case ElfKind::NotElf:
      return no(std::format("{} is neither a program nor a script with a #! line.", shown),
                program);
    case ElfKind::OtherMachine:
      return no(std::format("{} is a program for another kind of processor.", shown), program);
    case ElfKind::Static:
      return no(std::format("LD_PRELOAD has no effect on {} (statically linked). Use a build with "
                            "BUILD_SHARED_LIBS=ON.",
                            shown),
                program);
    case ElfKind::Dynamic:
      break;
  }
  if (other_user || other_group || has_capabilities)
    return no(std::format("LD_PRELOAD has no effect on {} (set-user-id, set-group-id or file "
                          "capabilities). Run it as the user that it becomes, or a copy without "
                          "these rights.",
                          shown),
              program);
  if (elf.loader.contains("ld-musl"))
    return no(std::format("{} uses musl (Alpine); the agent needs glibc 2.34 or newer. Use a glibc "
                          "build of the program.",
                          shown),
              program);
  const std::string loaded = ask_loader(elf.loader, program, agent);
  if (const std::string wrong = line_with(loaded, "version `GLIBC_"); wrong.contains("tt_attach")) {
    const std::size_t at = wrong.find("GLIBC_");
    return no(std::format("{} runs with a glibc that is too old: the agent needs glibc {}.", shown,
                          wrong.substr(at + 6, wrong.find('\'', at) - at - 6)),
              program);
  }
  if (!loaded.contains(agent.filename().string()) || loaded.contains("cannot be preloaded"))
    return no(std::format("The loader of {} does not load the agent: {}", shown,
                          loaded.substr(0, loaded.find('\n'))),
              program);
  const std::string ggml = line_with(loaded, "libggml-base");
  const auto yes = [&](std::string message) {
    return PreloadCheck{.possible = true, .message = std::move(message), .program = program};
  };
  if (const std::size_t at = ggml.find("=> "); at != ggml.npos)
    return yes(std::format("{} can be traced. It uses {}.", shown,
                           ggml.substr(at + 3, ggml.find(" (", at) - at - 3)));
  // What it loads while it runs is not known before.
  return yes(
      std::format("{} does not name a ggml library; it is traced if it loads one, as node and "
                  "Python do.",
                  shown));
}

}  // namespace tt::attach
