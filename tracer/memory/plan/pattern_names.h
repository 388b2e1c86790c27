// Names and words of an access_pattern.json (docs/access-pattern.md). stored_pattern writes and
// reads it; analysis/weights/pattern.cpp writes it with what else a session tells.
#pragma once

#include <cstdint>

namespace tt {

// What an entry of an access_pattern.json reads.
enum class ReadKind : std::uint8_t {
  Fixed,   // the same bytes for each token
  Routed,  // slices of the routed experts
  Row      // rows that the token selects
};
constexpr const char* to_text(ReadKind kind) {
  switch (kind) {
    case ReadKind::Fixed:
      return "fixed";
    case ReadKind::Routed:
      return "routed";
    case ReadKind::Row:
      return "row";
  }
  return "fixed";
}

// Names in the file that are read back.
namespace pattern_names {
inline constexpr std::uint64_t kVersion = 2;
inline constexpr const char *kVersionName = "version", *kModelFiles = "model_files",
                            *kPath = "path", *kSize = "size", *kHeaderHash = "header_hash",
                            *kTokenOrder = "per_token_pattern", *kPromptOrder = "prompt_pattern";
// Of an entry.
inline constexpr const char *kKind = "kind", *kOp = "op", *kModelFile = "model_file",
                            *kFileOffset = "file_offset", *kFileBytes = "file_bytes",
                            *kPartBytes = "part_bytes", *kParts = "parts",
                            *kSizeBytes = "size_bytes";
}  // namespace pattern_names

}  // namespace tt
