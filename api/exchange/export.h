// Every format that a session can be exported to: one call, whatever it is.
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
  std::string_view name;       // in parameters and options
  std::string_view extension;  // of a file, with its dot
  std::string_view media_type;
};
std::span<const FormatFacts> formats();
const FormatFacts& facts_of(Format format);
std::optional<Format> format_named(std::string_view name);
// Of what can be written as a folder of parts, too.
std::optional<PartForm> part_form_of(Format format);

struct ExportOptions {
  Format format = Format::Parquet;
  ExportRange range{};
  LogLevel level = LogLevel::Detailed;  // of Ndjson
};

// What can be seen to be wrong before anything is made: no graph to draw, for one.
Written check_export(const SessionReader& reader, const ExportOptions& options);

// Before what is written as it is read: where some of the steps that are asked for is
// damaged, ends the session before its damage, and returns as SessionReader::end_at_damage().
// Costs what these steps cost, not what the session does.
std::expected<std::optional<std::uint32_t>, TraceError> end_at_damage(
    SessionReader& reader, const ExportOptions& options, const KeepGoing& keep_going = always);

// Streams: in memory are one step, a few templates and what the format collects (a
// row group of Parquet). Cancelled when `keep_going` says so, asked before every step.
Written export_session(const SessionReader& reader, const ExportOptions& options,
                       const ByteSink& sink, const KeepGoing& keep_going = always);

}  // namespace tt::exchange
