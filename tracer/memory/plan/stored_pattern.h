// The order in which a model reads its weights, kept in a file between starts: a plan can then be
// made before the first step. The file is an access_pattern.json (docs/access-pattern.md) with the
// fields that are needed, so an exported pattern can be read, too, and these:
//
//   prompt_pattern         as per_token_pattern, for prompts
//   window_seconds         of reading ahead
//   disk_bytes_per_second  0: not measured
//   fault_bytes_per_second  of steps without a plan; 0: not measured
#pragma once

#include <array>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracer/format/model/session.h"
#include "tracer/memory/plan/weight_order.h"

namespace tt {

struct StoredPattern {
  // 0: not known.
  double window_seconds = 0, disk_bytes_per_second = 0, fault_bytes_per_second = 0;
  std::array<WeightOrder, 2> orders;  // of a generated token, of a prompt; without addresses
  friend bool operator==(const StoredPattern&, const StoredPattern&) = default;
};

std::string pattern_text(const StoredPattern& pattern, std::span<const ModelFile> files);

// The error begins with a verb: "is damaged: ...", or "is of another model ..." than `files`.
std::expected<StoredPattern, std::string> parse_pattern(std::string_view text,
                                                        std::span<const ModelFile> files);

// nullopt: there is no such file.
std::optional<std::expected<StoredPattern, std::string>> read_pattern(
    const std::filesystem::path& file, std::span<const ModelFile> files);
// Where the pattern of a model is kept.
std::filesystem::path pattern_file(const std::filesystem::path& folder,
                                   const std::filesystem::path& model);
// Replaces the file (replace_file.h) and creates its folder. False: it cannot be written.
bool write_pattern(const std::filesystem::path& file, const std::string& text);

}  // namespace tt
