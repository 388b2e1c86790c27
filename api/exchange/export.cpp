#include "api/exchange/export.h"

#include <algorithm>

#include "analysis/common/up_to_damage.h"
#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/text/dot_export.h"
#include "api/exchange/text/text_rows.h"
#include "api/exchange/timeline/trace_events.h"

namespace tt::exchange {
namespace {

constexpr FormatFacts kFormats[] = {
    {Format::Csv, "csv", ".csv", "text/csv; charset=utf-8"},
    {Format::Json, "json", ".json", "application/json"},
    {Format::Ndjson, "ndjson", ".ndjson", "application/x-ndjson"},
    {Format::Chrome, "chrome", ".trace.json", "application/json"},
    {Format::Perfetto, "perfetto", ".pftrace", "application/x-protobuf"},
    {Format::Parquet, "parquet", ".parquet", "application/vnd.apache.parquet"},
    {Format::Arrow, "arrow", ".arrows", "application/vnd.apache.arrow.stream"},
    {Format::ArrowFile, "arrow-file", ".arrow", "application/vnd.apache.arrow.file"},
    {Format::Dot, "dot", ".dot", "text/vnd.graphviz; charset=utf-8"},
};

// Checks that the steps, their tokens (including those before the first step of the session)
// and their allocations can be read.
Written read_through(const SessionReader& reader, const ExportRange& range,
                     const KeepGoing& keep_going) {
  Written sound;
  AllocationId allocation{};
  std::optional<std::uint32_t> token;  // next token to check
  const auto look = [&](const Step& step) {
    if (!keep_going()) sound = std::unexpected(cancelled_error());
    if (sound && step.allocation != allocation) {
      allocation = step.allocation;
      if (const auto read = reader.allocation(allocation); allocation.v != 0 && !read)
        sound = std::unexpected(read.error());
    }
    const std::uint32_t end = step.first_token + step.n_tokens;
    if (!token) token = range.first.v == 0 ? 0 : step.first_token;
    if (sound && end > *token) {
      if (const auto read = reader.tokens(*token, end - *token); !read)
        sound = std::unexpected(read.error());
      token = end;
    }
    return sound.has_value();
  };
  const std::uint32_t end =
      range.last && range.last->v != UINT32_MAX ? range.last->v + 1 : UINT32_MAX;
  const std::uint32_t count = end - std::min(end, range.first.v);
  const auto walked = reader.for_each_step(range.first, count, look);
  return sound ? walked : sound;
}

}  // namespace

std::span<const FormatFacts> formats() { return kFormats; }

const FormatFacts& facts_of(Format format) {
  return *std::ranges::find(kFormats, format, &FormatFacts::format);
}

std::optional<Format> format_named(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &FormatFacts::name);
  if (found == std::end(kFormats)) return std::nullopt;
  return found->format;
}

std::optional<PartForm> part_form_of(Format format) {
  if (format == Format::Parquet) return PartForm::Parquet;
  if (format == Format::ArrowFile) return PartForm::Arrow;
  return std::nullopt;
}

Written check_export(const SessionReader& reader, const ExportOptions& options) {
  const auto rows = SessionRows::open(reader, options.range);
  if (!rows) return std::unexpected(rows.error());
  if (options.format != Format::Dot) return {};
  return step_to_draw(*rows).transform([](StepId) {});
}

std::expected<std::optional<std::uint32_t>, TraceError> end_at_damage(SessionReader& reader,
                                                                      const ExportOptions& options,
                                                                      const KeepGoing& keep_going) {
  Written sound = check_export(reader, options);
  if (sound && options.format != Format::Dot)
    sound = read_through(reader, options.range, keep_going);
  if (!is_damaged(sound)) {
    if (!sound && sound.error().kind == TraceError::Kind::Cancelled)
      return std::unexpected(sound.error());
    return std::nullopt;
  }
  return reader.end_at_damage(keep_going);
}

Written export_session(const SessionReader& reader, const ExportOptions& options,
                       const ByteSink& sink, const KeepGoing& keep_going) {
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
      return export_arrow(*rows, ArrowForm::Stream, sink, keep_going);
    case Format::ArrowFile:
      return export_arrow(*rows, ArrowForm::File, sink, keep_going);
    case Format::Dot:
      return export_dot(*rows, sink, keep_going);
  }
  return {};
}

}  // namespace tt::exchange
