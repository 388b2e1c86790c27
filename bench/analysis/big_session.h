// A long session made from a short one: its generated steps over and over, in
// order, with times jittered by a tenth and tokens that go on counting, until the
// session has so many accesses. What benches of questions over sessions use.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>

#include "tracer/format/model/trace_error.h"

namespace tt::bench {

struct BigSession {
  std::uint64_t steps = 0, ops = 0, accesses = 0, file_bytes = 0;
};

// `from` is a finished session with at least one generated step. The same `from`
// gives the same file. Replaces `to`.
std::expected<BigSession, TraceError> make_big_session(const std::filesystem::path& from,
                                                       const std::filesystem::path& to,
                                                       std::uint64_t accesses);

// Such a session in the folder for temporary files, made when it is not there yet: a
// model writes 500 tokens. Needs `tt` beside `program`, the path that this process was
// started by. Empty: it failed, and stderr says why.
enum class UsualModel {
  Dense,   // a llama of 22 layers: the graph of tinyllama-1.1b, narrow
  Experts  // 8 of 32 experts in every layer
};
std::filesystem::path usual_session(const char* program, UsualModel model, std::uint64_t accesses);

}  // namespace tt::bench
