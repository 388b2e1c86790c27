// Exports a session as a folder of plain files for other tools:
//
//   trace_metadata.json   session metadata, steps and tokens
//   tensor_names.txt      index and name, one per line
//   accesses.csv          constant fields of each access; one line each
//   tensor_access.bin     64-byte records, one per access, in order
//   recording.ndjson      what the records cannot say, for tt import (recorded_parts.h)
//   gguf_structure.csv    the weights: name, offset, size, layer, component, ..., hot or cold
//   analysis/             statistics.json, heatmap_token_layer.png, timeline_offset.png
//
// docs/exports.md describes the layout.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Name of this format in parameters and options (compare export.h).
inline constexpr std::string_view kRunFolder = "folder";

inline constexpr std::size_t kRecordBytes = 64;

// A record of tensor_access.bin, little-endian.
struct AccessRecord {
  std::int64_t timestamp_ns = 0;  // begin of the op, or of the step if there are no op times
  std::uint64_t size_bytes = 0;
  std::uint64_t file_offset = UINT64_MAX;  // UINT64_MAX: not in a file
  std::uint64_t tensor_ptr = 0;            // 0: not recorded
  std::uint32_t step = 0;
  std::uint32_t token_id = 0;
  std::uint32_t access = 0;  // line of accesses.csv, from 0 after the header
  std::uint32_t tensor = 0;  // line of tensor_names.txt, from 0
  float routing_score = 0;   // NaN: not recorded
  std::int16_t expert_id = -1;
  std::int16_t expert_rank = -1;
  std::int16_t attention_head = -1;  // -1: all heads
  std::int16_t layer_id = -1;
  std::uint16_t operation_type = 0;  // index in "operation_types" of trace_metadata.json
  std::uint16_t flags = 0;           // bit 0: write; 1-3: phase; 4-7: memory source
};
// In the file, `expert_id` and `attention_head` are 255 if there is none. Bits 8 and 9 of the flags
// say whether there is an expert and a head, because both can have the number 255. In version 1 of
// the format, none is -1, and the bits are 0.
inline constexpr std::int16_t kNoneInFile = 255;
inline constexpr std::uint16_t kHasExpert = 1U << 8, kHasHead = 1U << 9;
// With rows per token: the row is that of several tokens, and each of them has one.
inline constexpr std::uint16_t kSharedByTokens = 1U << 10;
inline constexpr std::uint32_t kRunFolderVersion = 2;
std::array<char, kRecordBytes> bytes_of(const AccessRecord& record);
AccessRecord record_from(std::span<const char, kRecordBytes> bytes, std::uint32_t version);

// `folder` must not exist. It is removed after an error. Returns Io if a number does not fit
// its field (for example layer 40,000).
WriteResult export_run_folder(const SessionReader& reader, ExportRange range,
                              const std::filesystem::path& folder,
                              const ContinueCheck& keep_going = never_cancel);

}  // namespace tt::exchange
