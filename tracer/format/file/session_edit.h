// What is done to a session file besides recording and reading it: a new title,
// a copy while it is recorded, the same session under another id. A file that
// is being recorded is only ever copied. Any thread; each call has connections
// of its own.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Writes another title into the file. Running: it is being recorded.
std::expected<void, TraceError> rename_session(const std::filesystem::path& file,
                                               const std::string& title);

// Makes one file of a session that has ended: a reader that was there at its end
// may have kept a WAL beside it. Io while a reader still has it open; Running.
std::expected<void, TraceError> settle_session(const std::filesystem::path& file);

// Copies what is committed to `copy`, which must not exist, as it is at one
// moment; whoever records goes on meanwhile. Of a session that is being recorded
// the copy has the state Recovered: it holds all until then, and nobody goes on
// with it. `may_go_on` is told how many bytes the copy has, first and every few MiB;
// its error ends the copying. After an error there is no file.
using MayGoOn = std::function<std::expected<void, TraceError>(std::uint64_t bytes)>;
std::expected<void, TraceError> copy_session(const std::filesystem::path& file,
                                             const std::filesystem::path& copy,
                                             const MayGoOn& may_go_on);

// Makes a file that came from elsewhere, and that nobody else has open, a session
// of the id that it is to be known by here. One that says Running was copied while
// it was recorded: it is Recovered.
std::expected<void, TraceError> adopt_session(const std::filesystem::path& file,
                                              const std::string& id);

}  // namespace tt
