// The order in which a model reads its weights, kept in a file between starts: a plan can then be
// made before the first step. A text file, one item per line:
//
//   tensor-trace access pattern 1
//   file SIZE HEADER_HASH                       of the model; one line per file
//   window SECONDS                              of reading ahead
//   disk BYTES_PER_SECOND                       0: not measured
//   order generate|prompt                       of the following lines
//   weight FILE OFFSET LENGTH OP
//   expert FILE OFFSET LENGTH OP SLICE STRIDE EXPERTS PER_TOKEN TOKENS
//   lookup FILE OFFSET LENGTH
//   end
#pragma once

#include <array>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracer/format/model/session.h"
#include "tracer/memory/weight_order.h"

namespace tt {

struct StoredPattern {
  double window_seconds = 0, disk_bytes_per_second = 0;
  std::array<WeightOrder, 2> orders;  // of a generated token, of a prompt; without addresses
  friend bool operator==(const StoredPattern&, const StoredPattern&) = default;
};

std::string pattern_text(const StoredPattern& pattern, std::span<const ModelFile> files);

// The error is a message: the text is damaged, or of another model than `files`.
std::expected<StoredPattern, std::string> parse_pattern(std::string_view text,
                                                        std::span<const ModelFile> files);

// nullopt: there is no such file.
std::optional<std::expected<StoredPattern, std::string>> read_pattern(
    const std::filesystem::path& file, std::span<const ModelFile> files);
// Replaces the file as a whole. False: it cannot be written.
bool write_pattern(const std::filesystem::path& file, const std::string& text);

}  // namespace tt
