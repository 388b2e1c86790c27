// Session export in all formats.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"
#include "api/exchange/text/log_export.h"

namespace tt::exchange {

enum class Format : std::uint8_t {
  Csv,
  Json,
  Ndjson,
  Chrome,
  Perfetto,
  Parquet,
  Arrow,
  ArrowFile,
  Dot
};

struct FormatInfo {
  Format format;
  std::string_view name;       // as used in parameters and options
  std::string_view extension;  // file extension with the dot
  std::string_view media_type;
};
std::span<const FormatInfo> formats();
const FormatInfo& format_info(Format format);
std::optional<Format> find_format(std::string_view name);
// Whether ExportRange::per_token is possible: the others have steps, not rows.
bool has_rows_per_token(Format format);
// The part format, if the format can also be exported as a folder of parts.
std::optional<PartFormat> part_format_of(Format format);

struct ExportOptions {
  Format format = Format::Parquet;
  ExportRange range{};
  LogLevel level = LogLevel::Detailed;  // for Ndjson
};

// Checks the options before any output is written, for example whether there is a graph to
// draw.
WriteResult check_export(const SessionReader& reader, const ExportOptions& options);

// For streamed exports: if any step in the requested range is damaged, truncates the session
// before the damage and returns the result of SessionReader::truncate_at_damage(). The cost depends
// on the requested steps, not on the session size.
std::expected<std::optional<std::uint32_t>, TraceError> truncate_at_damage(
    SessionReader& reader, const ExportOptions& options,
    const ContinueCheck& keep_going = never_cancel);

// Streams the export. Memory holds one step, a few templates and what the format buffers (a
// row group for Parquet). `keep_going` is checked before every step; if false, the export ends
// with Cancelled.
WriteResult export_session(const SessionReader& reader, const ExportOptions& options,
                           const ByteSink& sink, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt::exchange
