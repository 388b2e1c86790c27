#include "api/exchange/export.h"

#include <algorithm>

#include "analysis/common/valid_prefix.h"
#include "analysis/common/walk_steps.h"
#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/text/dot_export.h"
#include "api/exchange/text/text_rows.h"
#include "api/exchange/timeline/trace_events.h"

namespace tt::exchange {
namespace {

constexpr FormatInfo kFormats[] = {
    {Format::Csv, "csv", ".csv", "text/csv; charset=utf-8"},
    {Format::Json, "json", ".json", "application/json"},
    {Format::Ndjson, "ndjson", ".ndjson", "application/x-ndjson"},
    {Format::Chrome, "chrome", ".trace.json.gz", "application/gzip"},
    {Format::Perfetto, "perfetto", ".pftrace", "application/x-protobuf"},
    {Format::Parquet, "parquet", ".parquet", "application/vnd.apache.parquet"},
    {Format::Arrow, "arrow", ".arrows", "application/vnd.apache.arrow.stream"},
    {Format::ArrowFile, "arrow-file", ".arrow", "application/vnd.apache.arrow.file"},
    {Format::Dot, "dot", ".dot", "text/vnd.graphviz; charset=utf-8"},
};

// Checks that the steps, their tokens (including those before the first step of the session)
// and their allocations can be read.
WriteResult verify_readable(const SessionReader& reader, const ExportRange& range,
                            const ContinueCheck& keep_going) {
  AllocationId allocation{};
  std::optional<std::uint32_t> token;  // next token to check
  const std::uint64_t end = range.last ? std::uint64_t{range.last->v} + 1 : UINT32_MAX;
  const PageRange steps{.from = range.first.v,
                        .limit = end - std::min<std::uint64_t>(end, range.first.v)};
  return walk_steps(reader, steps, keep_going, [&](const Step& step) -> WriteResult {
    if (step.allocation != allocation) {
      allocation = step.allocation;
      if (const auto read = reader.allocation(allocation); allocation.v != 0 && !read)
        return std::unexpected(read.error());
    }
    const std::uint32_t next = step.first_token + step.n_tokens;
    if (!token) token = range.first.v == 0 ? 0 : step.first_token;
    if (next > *token) {
      if (const auto read = reader.tokens(*token, next - *token); !read)
        return std::unexpected(read.error());
      token = next;
    }
    return {};
  });
}

}  // namespace

bool has_rows_per_token(Format format) {
  switch (format) {
    case Format::Csv:
    case Format::Json:
    case Format::Parquet:
    case Format::Arrow:
    case Format::ArrowFile:
      return true;
    case Format::Ndjson:
    case Format::Chrome:
    case Format::Perfetto:
    case Format::Dot:
      break;
  }
  return false;
}

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo& format_info(Format format) {
  return *std::ranges::find(kFormats, format, &FormatInfo::format);
}

std::optional<Format> find_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &FormatInfo::name);
  if (found == std::end(kFormats)) return std::nullopt;
  return found->format;
}

std::optional<PartFormat> part_format_of(Format format) {
  if (format == Format::Parquet) return PartFormat::Parquet;
  if (format == Format::ArrowFile) return PartFormat::Arrow;
  return std::nullopt;
}

WriteResult check_export(const SessionReader& reader, const ExportOptions& options) {
  const auto rows = SessionRows::open(reader, options.range);
  if (!rows) return std::unexpected(rows.error());
  if (options.format != Format::Dot) return {};
  return step_to_draw(*rows).transform([](StepId) {});
}

std::expected<std::optional<std::uint32_t>, TraceError> truncate_at_damage(
    SessionReader& reader, const ExportOptions& options, const ContinueCheck& keep_going) {
  WriteResult status = check_export(reader, options);
  if (status && options.format != Format::Dot)
    status = verify_readable(reader, options.range, keep_going);
  if (!is_damaged(status)) {
    if (!status && status.error().kind == TraceError::Kind::Cancelled)
      return std::unexpected(status.error());
    return std::nullopt;
  }
  return reader.truncate_at_damage(keep_going);
}

WriteResult export_session(const SessionReader& reader, const ExportOptions& options,
                           const ByteSink& sink, const ContinueCheck& keep_going) {
  auto rows = SessionRows::open(reader, options.range);
  if (!rows) return std::unexpected(rows.error());
  switch (options.format) {
    case Format::Csv:
      return export_csv(*rows, sink, keep_going);
    case Format::Json:
      return export_json(*rows, sink, keep_going);
    case Format::Ndjson:
      return export_log(*rows, options.level, sink, keep_going);
    case Format::Chrome:
      return export_chrome(*rows, sink, keep_going);
    case Format::Perfetto:
      return export_perfetto(*rows, sink, keep_going);
    case Format::Parquet:
      return export_parquet(*rows, sink, keep_going);
    case Format::Arrow:
      return export_arrow(*rows, ArrowIpcFormat::Stream, sink, keep_going);
    case Format::ArrowFile:
      return export_arrow(*rows, ArrowIpcFormat::File, sink, keep_going);
    case Format::Dot:
      return export_dot(*rows, sink, keep_going);
  }
  return {};
}

}  // namespace tt::exchange
