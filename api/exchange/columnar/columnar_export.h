// Parquet and Arrow files of a session's accesses, written as they are derived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Rows at least: a page ends with the step that fills it, a row group with that page.
struct ParquetSizes {
  std::size_t page_rows = 64u << 10;
  std::size_t group_rows = 1u << 20;
};

// One Parquet file (parquet_file.h says what is in memory).
Written export_parquet(SessionRows& rows, const ByteSink& sink, const KeepGoing& keep_going,
                       const ParquetSizes& sizes = {});

// An Arrow IPC stream, or with `file` the same with a footer for random access.
enum class ArrowForm : std::uint8_t { Stream, File };
Written export_arrow(SessionRows& rows, ArrowForm form, const ByteSink& sink,
                     const KeepGoing& keep_going);

// A folder that DuckDB (of Parquet), Spark and pyarrow take as one table, partitioned by
// session and step range: FOLDER/session=ID/steps=A-B/part.parquet (or .arrow, a file with
// a footer), each of the steps A to B. A part ends with the step that fills it to
// `rows_per_part`. The session's column is the folder's name alone. FOLDER may hold other
// sessions, not this one.
enum class PartForm : std::uint8_t { Parquet, Arrow };
Written export_parts(const SessionReader& reader, ExportRange range, PartForm form,
                     const std::filesystem::path& folder, std::uint64_t rows_per_part,
                     const KeepGoing& keep_going);

}  // namespace tt::exchange
