// Operations on a session file other than recording and reading: rename, copy (also while
// it is being recorded), change of the id. A file that is being recorded can only be
// copied. Any thread; each call opens its own connections.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Changes the title. Error Running: the session is being recorded.
std::expected<void, TraceError> rename_session(const std::filesystem::path& file,
                                               const std::string& title);

// Merges the WAL into the file of a session that has ended: a reader that had it open at
// the end may have kept a WAL. Errors: Io while a reader has it open, Running.
std::expected<void, TraceError> checkpoint_session(const std::filesystem::path& file);

// Whether a live process is recording into the file. Needs no space on the disk.
std::expected<bool, TraceError> is_being_recorded(const std::filesystem::path& file);

// Copies a snapshot of the committed data to `copy`, which must not exist. Recording
// continues meanwhile. The copy of a session that is being recorded has the state
// Recovered. Calls `on_progress` with the bytes copied so far, at the begin and every few
// MiB; an error that it returns aborts the copy. After an error, `copy` does not exist.
using CopyProgress = std::function<std::expected<void, TraceError>(std::uint64_t bytes)>;
std::expected<void, TraceError> copy_session(const std::filesystem::path& file,
                                             const std::filesystem::path& copy,
                                             const CopyProgress& on_progress);

// Sets the id of an imported session file that no one else has open. The state Running is
// changed to Recovered: such a file was copied while it was being recorded.
std::expected<void, TraceError> assign_session_id(const std::filesystem::path& file,
                                                  const std::string& id);

}  // namespace tt
