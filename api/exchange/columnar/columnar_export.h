// Exports a session's accesses to Parquet and Arrow files, streaming.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Minimum rows. A page ends with the step that fills it, a row group with that page.
struct ParquetSizes {
  std::size_t page_rows = 64u << 10;
  std::size_t group_rows = 1u << 20;
};

// One Parquet file. See parquet_file.h for memory use.
WriteResult export_parquet(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going,
                           const ParquetSizes& sizes = {});

// An Arrow IPC stream, or an Arrow IPC file (with a footer for random access).
enum class ArrowIpcFormat : std::uint8_t { Stream, File };
WriteResult export_arrow(SessionRows& rows, ArrowIpcFormat form, const ByteSink& sink,
                         const ContinueCheck& keep_going);

// A partitioned data set that DuckDB (Parquet only), Spark and pyarrow read as one table,
// partitioned by session and step range: FOLDER/session=ID/steps=A-B/part.parquet (or .arrow,
// an Arrow IPC file), with the steps A to B inclusive. A part ends with the step that reaches
// `rows_per_part`. The session column exists only as the folder name. FOLDER may contain other
// sessions, but not this one.
enum class PartFormat : std::uint8_t { Parquet, Arrow };
WriteResult export_parts(const SessionReader& reader, ExportRange range, PartFormat form,
                         const std::filesystem::path& folder, std::uint64_t rows_per_part,
                         const ContinueCheck& keep_going);

}  // namespace tt::exchange
