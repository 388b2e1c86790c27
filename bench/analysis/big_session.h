// Long sessions for benchmarks of queries. A short session is extended: its generated steps are
// repeated in order, with durations varied by 10 % and consecutive token indexes, until the
// session has the given number of accesses.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>

#include "tracer/format/model/trace_error.h"

namespace tt::bench {

struct BigSession {
  std::uint64_t steps = 0, ops = 0, accesses = 0, file_bytes = 0;
};

// `from` is a finished session with at least one generated step. The same `from` gives the same
// file. Overwrites `to`.
std::expected<BigSession, TraceError> make_big_session(const std::filesystem::path& from,
                                                       const std::filesystem::path& to,
                                                       std::uint64_t accesses);

// The default session of the benchmarks, in the temporary folder. Created on the first call by
// recording 500 tokens and extending that session. Needs `tt` in the folder of `program`, which
// is argv[0] of this process. Empty on failure, with a message on stderr.
enum class DefaultModel {
  Dense,   // a llama of 22 layers: the graph of tinyllama-1.1b, narrow
  Experts  // 8 of 32 experts in every layer
};
std::filesystem::path default_session(const char* program, DefaultModel model,
                                      std::uint64_t accesses);

}  // namespace tt::bench
