// Compares analyses of weights and caches (analysis/weights/compression.h, heads.h, kv_use.h)
// with a reference implementation that walks each access byte by byte.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/weights/compression.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// The weights of a session must be the tensors in `of_files` that its graphs read, with the
// sizes of their blocks.
void expect_compression(const SessionReader& reader, std::span<const WeightSize> of_files);

// Counts each read of Q, K, V and O for the heads whose bytes it touches. Returns the number of
// weights that are divided into heads.
int expect_heads(const SessionReader& reader);

// Tracks the last writing step of each cache byte. Returns the number of bytes read that earlier
// steps had written.
std::uint64_t expect_kv_use(const SessionReader& reader);

}  // namespace tt::test
