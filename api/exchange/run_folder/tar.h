// Folders as tar archives, and files out of such archives (libarchive).
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

// All that is below `folder`, files and folders, as the one folder `top` of an archive:
// in order of their names, owned by nobody, all of one time (Unix, seconds). The same
// folder is the same bytes. In memory is a part of one file. Asks `keep_going` before
// every part.
Written write_tar(const std::filesystem::path& folder, const std::string& top,
                  std::int64_t changed_utc_s, const ByteSink& sink,
                  const KeepGoing& keep_going = always);

// The files called as `names` say, out of one folder of the archive, whichever, into
// `folder`, which is there and has none of them. Other files are passed over. Only `names`
// become paths, never what the archive says; it is refused all the same for what no run
// folder has: names that lead elsewhere (absolute, ..), links, devices, sparse files, more
// than 1,000 entries. Only plain archives: what is compressed may become any size.
// NotASession: it is no tar. Damaged: refused, cut off, or one of `names` is missing or
// there twice. After an error some of them may be there, each whole. `may_go_on` is told how
// many bytes were written, every few MiB; its error ends the reading.
Written read_tar(const std::filesystem::path& archive, std::span<const std::string_view> names,
                 const std::filesystem::path& folder, const MayGoOn& may_go_on,
                 const KeepGoing& keep_going = always);

}  // namespace tt::exchange
