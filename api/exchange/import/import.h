// Sessions from exports: a log (NDJSON) or a run folder becomes a .ttrace again.
// What comes out equal and what is lost is in docs/exports.md.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string_view>

#include "analysis/common/page.h"
#include "tracer/format/model/trace_error.h"

namespace tt::exchange {

struct Imported {
  std::uint32_t steps = 0;
  std::uint64_t accesses = 0, bytes = 0;
};

// A log with its kind under `event`, or under `type` as older ones have it. Lines of
// other kinds are passed over. Damaged, with the line, when it is no log. In memory
// is one step. `session`: where the .ttrace is written; it must not exist.
std::expected<Imported, TraceError> import_log(const std::filesystem::path& log,
                                               const std::filesystem::path& session,
                                               const KeepGoing& keep_going = always);

// What is read of a run folder.
inline constexpr std::string_view kMetadata = "trace_metadata.json", kConstants = "accesses.csv",
                                  kRecords = "tensor_access.bin";
inline constexpr std::array kImportedFiles = {kMetadata, kConstants, kRecords};

std::expected<Imported, TraceError> import_run_folder(const std::filesystem::path& folder,
                                                      const std::filesystem::path& session,
                                                      const KeepGoing& keep_going = always);

}  // namespace tt::exchange
