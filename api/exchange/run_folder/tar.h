// Writes folders as tar archives and extracts files from them (libarchive).
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"
#include "tracer/format/file/session_edit.h"

namespace tt::exchange {

// Archives all files and folders below `folder` under the single top-level folder `top`:
// sorted by name, without owner, all with the same modification time (Unix seconds). Equal
// folders give equal bytes. Memory holds part of one file. Checks `keep_going` before every
// part.
WriteResult write_tar(const std::filesystem::path& folder, const std::string& top,
                      std::int64_t changed_utc_s, const ByteSink& sink,
                      const ContinueCheck& keep_going = never_cancel);

// Extracts the files named in `names` from one folder of the archive (any name) into the
// existing `folder`, which must not contain them. Other files are skipped. Only `names` become
// paths, never names from the archive. Archives with entries that a run folder cannot have are
// rejected: names that leave the folder (absolute, ..), links, devices, sparse files, more
// than 1,000 entries. Compressed archives are not supported because their extracted size is
// unbounded. Errors: NotASession: not a tar archive. Damaged: rejected, truncated, or one of
// `names` is missing or duplicated. After an error some of the files may exist, each complete.
// `on_progress` is called with the number of bytes written every few MiB; its error ends the
// extraction.
WriteResult read_tar(const std::filesystem::path& archive, std::span<const std::string_view> names,
                     const std::filesystem::path& folder, const CopyProgress& on_progress,
                     const ContinueCheck& keep_going = never_cancel);

}  // namespace tt::exchange
