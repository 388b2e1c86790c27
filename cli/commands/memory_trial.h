// Records a model in child processes (tt record), optionally in a memory group of its own: what
// `tt memory` measures.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>

#include "tracer/memory/experts/token_demand.h"
#include "tracer/memory/limits/memory_group.h"

namespace tt::cli {

// A way to run a model that is larger than memory.
struct MemoryWay {
  const char* name;
  bool pin = false, prefetch = false;  // neither: plain, the kernel alone decides
  // One of llama.cpp's own means, as of --load-mode: measured, not predicted. Null: mmap.
  const char* load_mode = nullptr;
};

struct TrialSetup {
  std::filesystem::path model;
  std::filesystem::path folder;  // for recordings
  int threads = 0;               // as of tt record
  std::uint32_t tokens = 16;     // to generate
};

struct Trial {
  std::filesystem::path session;
  TokenDemand demand;                   // without the first tokens, in which the plan starts
  std::optional<std::uint64_t> budget;  // that the plan had; nullopt: there was none
  std::uint64_t anonymous = 0;          // most memory of the process that is no file
};

// Whether something else than the disk made the step longer: other programs, a CPU limit, heat. Its
// times are not those of computing. False if that was not recorded.
bool is_disturbed(const Step& step);

// The pages of the model are dropped before. `budget`: for the plan of the way; nullopt: what the
// limit leaves. `group`: null: the limit of this process applies. The error is a message.
std::expected<Trial, std::string> try_way(const TrialSetup& setup, const MemoryWay& way,
                                          std::optional<std::uint64_t> budget,
                                          const MemoryGroup* group);

}  // namespace tt::cli
