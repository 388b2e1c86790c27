// Whether a program can be traced: found from its file and by its own loader, without running it.
#pragma once

#include <filesystem>
#include <string>

namespace tt::attach {

struct PreloadCheck {
  bool possible = false;
  std::string message;  // why not and what to do, or what was found
  std::filesystem::path program;
};

// `name`: as the shell takes it. `agent`: the object to preload.
PreloadCheck check_preload(const std::string& name, const std::filesystem::path& agent);

// The ELF files of a loader are read with this.
enum class ElfKind { NotElf, OtherMachine, Static, Dynamic };
struct ElfFacts {
  ElfKind kind = ElfKind::NotElf;
  std::string loader;  // PT_INTERP
};
ElfFacts elf_facts(const std::filesystem::path& file);

}  // namespace tt::attach
