// Creates sessions from exports: a log (NDJSON) or a run folder is converted back to a .ttrace
// file. docs/exports.md lists what is preserved and what is lost.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "analysis/common/page.h"
#include "tracer/format/model/trace_error.h"

namespace tt::exchange {

struct ImportCounts {
  std::uint32_t steps = 0;
  std::uint64_t accesses = 0, bytes = 0;
  // What the file has and a session cannot keep, such as "tensor_log.shape", and the number of
  // lines that have it. Also in the fact `trace.import_ignored`.
  std::map<std::string, std::uint64_t> ignored{};
};
// "tensor_log.shape (31 lines), ..."; empty: nothing was ignored.
std::string ignored_text(const ImportCounts& counts);

// Imports a log, or a routing log (routing_log.h). The event kind is in `event`, or in `type` in
// older logs. Returns Damaged, with the line number, if the file is not a log. Memory holds one
// step. `session`: path of the .ttrace file; it must not exist.
std::expected<ImportCounts, TraceError> import_log(const std::filesystem::path& log,
                                                   const std::filesystem::path& session,
                                                   const ContinueCheck& keep_going = never_cancel);

// The files of a run folder that the import reads.
inline constexpr std::string_view kMetadata = "trace_metadata.json", kConstants = "accesses.csv",
                                  kRecords = "tensor_access.bin",
                                  // Absent in folders of earlier versions.
    kRecording = "recording.ndjson";
inline constexpr std::array kImportedFiles = {kMetadata, kConstants, kRecords, kRecording};

std::expected<ImportCounts, TraceError> import_run_folder(
    const std::filesystem::path& folder, const std::filesystem::path& session,
    const ContinueCheck& keep_going = never_cancel);

}  // namespace tt::exchange
