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

struct FormatFacts {
  Format format;
  std::string_view name;       // as used in parameters and options
  std::string_view extension;  // file extension with the dot
  std::string_view media_type;
};
std::span<const FormatFacts> formats();
const FormatFacts& facts_of(Format format);
std::optional<Format> format_named(std::string_view name);
// The part format, if the format can also be exported as a folder of parts.
std::optional<PartForm> part_form_of(Format format);

struct ExportOptions {
  Format format = Format::Parquet;
  ExportRange range{};
  LogLevel level = LogLevel::Detailed;  // for Ndjson
};

// Checks the options before any output is written, for example whether there is a graph to
// draw.
Written check_export(const SessionReader& reader, const ExportOptions& options);

// For streamed exports: if any step in the requested range is damaged, truncates the session
// before the damage and returns the result of SessionReader::end_at_damage(). The cost depends
// on the requested steps, not on the session size.
std::expected<std::optional<std::uint32_t>, TraceError> end_at_damage(
    SessionReader& reader, const ExportOptions& options, const KeepGoing& keep_going = always);

// Streams the export. Memory holds one step, a few templates and what the format buffers (a
// row group for Parquet). `keep_going` is checked before every step; if false, the export ends
// with Cancelled.
Written export_session(const SessionReader& reader, const ExportOptions& options,
                       const ByteSink& sink, const KeepGoing& keep_going = always);

}  // namespace tt::exchange
