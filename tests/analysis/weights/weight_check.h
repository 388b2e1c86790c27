// The second way to what a session says of its weights and caches
// (analysis/weights/compression.h, heads.h, kv_use.h): access by access, byte by byte.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/weights/compression.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// The weights of a session are the tensors of its model's files, `of_files`, that
// its graphs read, as large as their blocks are.
void expect_compression(const SessionReader& reader, std::span<const WeightSize> of_files);

// Every read of Q, K, V and O counted for the heads whose bytes it touches. Returns
// how many weights are divided by heads.
int expect_heads(const SessionReader& reader);

// Every byte of the caches with the step that wrote it last. Returns how many bytes
// were read of what earlier steps had written.
std::uint64_t expect_kv_use(const SessionReader& reader);

}  // namespace tt::test
