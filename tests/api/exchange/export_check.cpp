#include "tests/api/exchange/export_check.h"

#include <arrow/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/compression.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/graph/dependencies.h"
#include "analysis/tables/op_table.h"
#include "api/exchange/columnar/columnar_export.h"
#include "perfetto_trace.pb.h"
#include "tracer/format/access/access.h"
#include "tracer/text/utf8.h"

namespace tt::test {
namespace {

using nlohmann::json;
using namespace tt::exchange;

const std::string kNullField(1, '\0');

// Calls `row` for every access with its step, in order.
template <class Row>
void walk(const SessionReader& reader, Row row) {
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph);
    EXPECT_TRUE(graph.has_value());
    const auto accesses = accesses_of(**graph);
    for_each_access(**graph, accesses, step,
                    [&](const StepAccess& access) { row(**graph, step, access); });
    return true;
  });
  ASSERT_TRUE(read.has_value()) << read.error().message;
}

std::string optional_number(bool there, auto value) {
  return there ? std::format("{}", value) : kNullField;
}

using Lines = std::vector<std::vector<std::string>>;

// Index of each column by name.
std::map<std::string, std::size_t> columns_of(const Lines& lines) {
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < lines.front().size(); ++i) at[lines.front()[i]] = i;
  return at;
}

void expect_rows(const SessionReader& reader, const Lines& rows) {
  auto at = columns_of(rows);
  for (const char* name : {"timestamp_ns", "token_id", "layer_id", "operation_type", "phase",
                           "tensor_name", "tensor_ptr", "file_offset", "size_bytes", "qkv_type",
                           "attention_head", "expert_id", "expert_rank", "routing_score"})
    ASSERT_TRUE(at.contains(name)) << name;
  std::size_t n = 0;
  std::uint64_t wrong = 0;
  walk(reader, [&](const GraphTemplate& graph, const Step& step, const StepAccess& access) {
    if (++n >= rows.size() || wrong > 0) return;
    const Tensor& tensor = graph.tensor(access.tensor);
    const bool timed = access.op.v < step.op_ends.size();
    const bool in_file = !access.range.empty();
    const std::pair<const char*, std::string> expected[] = {
        {"step", std::to_string(step.id.v)},
        {"access", std::to_string(access.access)},
        {"timestamp_ns", std::to_string(!timed             ? step.begin.v
                                        : access.op.v == 0 ? step.first_op.v
                                                           : step.op_ends[access.op.v - 1].v)},
        {"token_id", std::to_string(step.first_token)},
        {"phase", to_text(step.phase)},
        {"op", std::to_string(access.op.v)},
        {"operation_type", to_valid_utf8(op_name(graph, graph.op(access.op)))},
        {"write", access.write ? "true" : "false"},
        {"tensor_name", to_valid_utf8(tensor.name)},
        {"layer_id", optional_number(tensor.layer != kNoLayer, tensor.layer.v)},
        {"memory_source", to_text(tensor.source)},
        {"component", to_text(tensor.component)},
        {"file_offset", optional_number(in_file, access.range.offset)},
        {"file_bytes", optional_number(in_file, access.range.length)},
        {"size_bytes", std::to_string(access.touched.v)},
        {"expert_id", optional_number(access.expert >= 0, access.expert)},
        {"expert_rank", optional_number(access.expert >= 0 && access.rank >= 0, access.rank)}};
    for (const auto& [name, value] : expected) {
      EXPECT_EQ(rows[n][at[name]], value) << name << " of row " << n;
      wrong += rows[n][at[name]] != value;
    }
  });
  EXPECT_EQ(n + 1, rows.size());
}

FiveTotals totals_of_csv(const Lines& rows) {
  auto at = columns_of(rows);
  const std::size_t size = at["size_bytes"], write = at["write"], offset = at["file_offset"],
                    expert = at["expert_id"];
  FiveTotals totals;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::uint64_t bytes = std::stoull(rows[i][size]);
    ++totals.accesses;
    (rows[i][write] == "true" ? totals.written : totals.read) += bytes;
    if (rows[i][offset] != kNullField) totals.from_file += bytes;
    totals.of_experts += rows[i][expert] != kNullField;
  }
  return totals;
}

void add(FiveTotals& totals, const json& row) {
  const auto bytes = row["size_bytes"].get<std::uint64_t>();
  ++totals.accesses;
  (row["write"].get<bool>() ? totals.written : totals.read) += bytes;
  if (row.contains("file_offset")) totals.from_file += bytes;
  totals.of_experts += row.contains("expert_id");
}

FiveTotals totals_of_json(const std::string& text) {
  FiveTotals totals;
  for (const json& row : json::parse(text)["accesses"]) add(totals, row);
  return totals;
}

// Also checks the begin and end events of steps and session and their sums.
FiveTotals totals_of_log(const std::string& text) {
  FiveTotals totals, of_steps;
  std::istringstream lines(text);
  std::string line, last;
  std::uint64_t open = 0;
  bool first = true;
  while (std::getline(lines, line)) {
    const json entry = json::parse(line);
    last = entry["event"];
    EXPECT_EQ(first, last == "session_start");
    first = false;
    if (last == "tensor_log") add(totals, entry);
    if (last == "step_begin") {
      EXPECT_EQ(open++, 0U);
    }
    if (last != "step_end" && last != "session_end") continue;
    FiveTotals logged{.accesses = entry["accesses"],
                      .read = entry["bytes_read"],
                      .written = entry["bytes_written"]};
    if (last == "step_end") {
      EXPECT_EQ(open--, 1U);
      of_steps.accesses += logged.accesses;
      of_steps.read += logged.read;
      of_steps.written += logged.written;
    } else {
      EXPECT_EQ(logged, of_steps);
    }
  }
  EXPECT_EQ(last, "session_end");
  EXPECT_EQ(std::tie(of_steps.accesses, of_steps.read, of_steps.written),
            std::tie(totals.accesses, totals.read, totals.written));
  return totals;
}

FiveTotals totals_of_batches(arrow::RecordBatchReader& batches) {
  FiveTotals totals;
  for (;;) {
    std::shared_ptr<arrow::RecordBatch> batch;
    const arrow::Status read = batches.ReadNext(&batch);
    EXPECT_TRUE(read.ok()) << read.ToString();
    if (!read.ok() || batch == nullptr) return totals;
    EXPECT_TRUE(batch->ValidateFull().ok()) << batch->ValidateFull().ToString();
    const auto& bytes =
        static_cast<const arrow::UInt64Array&>(*batch->GetColumnByName("size_bytes"));
    const auto& write = static_cast<const arrow::BooleanArray&>(*batch->GetColumnByName("write"));
    const auto offset = batch->GetColumnByName("file_offset");
    const auto expert = batch->GetColumnByName("expert_id");
    for (std::int64_t i = 0; i < batch->num_rows(); ++i) {
      ++totals.accesses;
      (write.Value(i) ? totals.written : totals.read) += bytes.Value(i);
      if (offset->IsValid(i)) totals.from_file += bytes.Value(i);
      totals.of_experts += expert->IsValid(i);
    }
  }
}

std::shared_ptr<arrow::Table> table_of_parquet(const std::string& bytes) {
  auto opened = parquet::arrow::OpenFile(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes)),
      arrow::default_memory_pool());
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  if (!opened.ok()) return nullptr;
  auto table = (*opened)->ReadTable();
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return table.ok() ? *table : nullptr;
}

FiveTotals totals_of_parquet(const std::string& bytes) {
  const auto table = table_of_parquet(bytes);
  if (table == nullptr) return {};
  arrow::TableBatchReader batches(*table);
  return totals_of_batches(batches);
}

// A value of column statistics as CSV text.
std::string text_of_statistic(const std::string& bytes, CellType type) {
  const auto number = [&]<class Number>(Number n) {
    EXPECT_EQ(bytes.size(), sizeof(n));
    std::memcpy(&n, bytes.data(), sizeof(n));
    return std::to_string(n);
  };
  switch (type) {
    case CellType::Text:
      return bytes;
    case CellType::Flag:
      return number(std::uint8_t{}) == "1" ? "true" : "false";
    case CellType::Int32:
      return number(std::int32_t{});
    case CellType::UInt32:
      return number(std::uint32_t{});
    case CellType::Int64:
      return number(std::int64_t{});
    default:
      return number(std::uint64_t{});
  }
}

// Compares integers in text form.
bool is_smaller_integer(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) return negative;
  if (negative) std::swap(a, b);
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// A value as CSV text; not null and not a float.
std::string text_of_cell(const arrow::Array& values, std::int64_t i) {
  switch (values.type_id()) {
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(values).GetString(i);
    case arrow::Type::BOOL:
      return static_cast<const arrow::BooleanArray&>(values).Value(i) ? "true" : "false";
    case arrow::Type::INT32:
      return std::to_string(static_cast<const arrow::Int32Array&>(values).Value(i));
    case arrow::Type::UINT32:
      return std::to_string(static_cast<const arrow::UInt32Array&>(values).Value(i));
    case arrow::Type::INT64:
      return std::to_string(static_cast<const arrow::Int64Array&>(values).Value(i));
    case arrow::Type::UINT64:
      return std::to_string(static_cast<const arrow::UInt64Array&>(values).Value(i));
    default:
      return values.type()->ToString();
  }
}

// Checks row group statistics. Readers use them to skip row groups.
void expect_statistics(const std::string& parquet, const Lines& lines) {
  const auto file = parquet::ParquetFileReader::Open(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(parquet)));
  std::size_t line = 0;
  for (int g = 0; g < file->metadata()->num_row_groups(); ++g) {
    const auto group = file->metadata()->RowGroup(g);
    const auto rows = static_cast<std::size_t>(group->num_rows());
    for (std::size_t c = 0; c < access_columns().size(); ++c) {
      const CellType type = access_columns()[c].type;
      SCOPED_TRACE(access_columns()[c].name);
      const bool is_number = type != CellType::Text && type != CellType::Flag;
      const auto less = [&](std::string_view a, std::string_view b) {
        return is_number ? is_smaller_integer(a, b) : a < b;
      };
      std::vector<std::string_view> non_null;
      for (std::size_t row = 0; row < rows; ++row) {
        const std::string& field = lines[1 + line + row][c];
        if (field != kNullField) non_null.push_back(field);
      }
      const auto statistics = group->ColumnChunk(static_cast<int>(c))->statistics();
      ASSERT_NE(statistics, nullptr);
      EXPECT_EQ(statistics->null_count(), static_cast<std::int64_t>(rows - non_null.size()));
      ASSERT_EQ(statistics->HasMinMax(), !non_null.empty() && type != CellType::Float);
      if (!statistics->HasMinMax()) continue;
      const auto [least, greatest] = std::ranges::minmax(non_null, less);
      EXPECT_EQ(text_of_statistic(statistics->EncodeMin(), type), least);
      EXPECT_EQ(text_of_statistic(statistics->EncodeMax(), type), greatest);
    }
    line += rows;
  }
  EXPECT_EQ(line + 1, lines.size());
}

// Compares each Parquet cell with the CSV, for pages and row groups of one row, of a few steps
// and of the whole session.
void expect_parquet_matches_csv(const SessionReader& reader, const Lines& lines) {
  const std::size_t rows = lines.size() - 1;
  for (const ParquetSizes sizes :
       {ParquetSizes{1, 1}, ParquetSizes{rows / 7 + 1, rows / 2 + 1}, ParquetSizes{}}) {
    SCOPED_TRACE(sizes.page_rows);
    auto walk = SessionRows::open(reader, {});
    ASSERT_TRUE(walk.has_value());
    std::string bytes;
    const WriteResult written = export_parquet(
        *walk,
        [&](std::string_view more) -> WriteResult {
          bytes += more;
          return {};
        },
        never_cancel, sizes);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    expect_statistics(bytes, lines);
    const auto table = table_of_parquet(bytes);
    ASSERT_NE(table, nullptr);
    ASSERT_TRUE(table->ValidateFull().ok());
    ASSERT_EQ(static_cast<std::size_t>(table->num_rows()), rows);
    ASSERT_EQ(static_cast<std::size_t>(table->num_columns()), lines.front().size());
    for (std::size_t c = 0; c < lines.front().size(); ++c) {
      const int column = static_cast<int>(c);
      SCOPED_TRACE(lines.front()[c]);
      ASSERT_EQ(table->field(column)->name(), lines.front()[c]);
      std::size_t line = 0;
      for (const auto& chunk : table->column(column)->chunks()) {
        for (std::int64_t i = 0; i < chunk->length(); ++i) {
          const std::string& field = lines[++line][c];
          if (chunk->IsNull(i)) {
            ASSERT_EQ(field, kNullField) << line;
          } else if (chunk->type_id() == arrow::Type::FLOAT) {
            ASSERT_EQ(std::stof(field), static_cast<const arrow::FloatArray&>(*chunk).Value(i));
          } else {
            ASSERT_EQ(field, text_of_cell(*chunk, i)) << line;
          }
        }
      }
    }
  }
}

FiveTotals totals_of_arrow(const std::string& bytes) {
  auto opened = arrow::ipc::RecordBatchStreamReader::Open(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes)));
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  return opened.ok() ? totals_of_batches(**opened) : FiveTotals{};
}

FiveTotals totals_of_arrow_file(const std::string& bytes) {
  auto opened = arrow::ipc::RecordBatchFileReader::Open(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes)));
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  if (!opened.ok()) return {};
  const auto table = (*opened)->ToTable();
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  if (!table.ok()) return {};
  arrow::TableBatchReader batches(**table);
  return totals_of_batches(batches);
}

// One box per tensor of the last graph, one edge per dependency; an error without a graph.
void expect_dot(const SessionReader& reader) {
  StepId last{kNone};
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v != 0) last = step.id;
    return true;
  });
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const bool drawable = check_export(reader, {.format = Format::Dot}).has_value();
  EXPECT_EQ(drawable, last.v != kNone);
  if (!drawable || last.v == kNone) return;
  const auto graph = reader.graph(reader.step(last)->graph).value();
  std::size_t boxes = 0, edges = 0;
  std::istringstream lines(export_text(reader, {.format = Format::Dot}));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  n") || line.starts_with("  node ")) continue;
    ++(line.find(" [label=") < line.find(" -> ") ? boxes : edges);
  }
  EXPECT_EQ(boxes, graph->tensors.size());
  EXPECT_EQ(edges, dependencies_of(*graph).size());
}

// Bytes read and written according to the slices of the steps.
std::pair<std::uint64_t, std::uint64_t> bytes_of_chrome(const std::string& text) {
  std::uint64_t read = 0, written = 0;
  for (const json& event : json::parse(text)["traceEvents"]) {
    if (event.value("cat", "") != "step" || event["ph"] != "X") continue;
    read += event["args"]["bytes_read"].get<std::uint64_t>();
    written += event["args"]["bytes_written"].get<std::uint64_t>();
  }
  return {read, written};
}

std::pair<std::uint64_t, std::uint64_t> bytes_of_perfetto(const std::string& bytes) {
  perfetto::protos::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  std::map<std::uint64_t, std::string> names;
  std::map<std::string, std::uint64_t> sums;
  for (const auto& packet : trace.packet()) {
    for (const auto& name : packet.interned_data().debug_annotation_names())
      names[name.iid()] = name.name();
    if (packet.track_event().categories_size() == 0 || packet.track_event().categories(0) != "step")
      continue;
    for (const auto& annotation : packet.track_event().debug_annotations())
      sums[names[annotation.name_iid()]] += annotation.uint_value();
  }
  return {sums["bytes_read"], sums["bytes_written"]};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const FiveTotals& t) {
  return out << std::format("{} accesses, {} read, {} written, {} from file, {} of experts",
                            t.accesses, t.read, t.written, t.from_file, t.of_experts);
}

FiveTotals walked_totals(const SessionReader& reader) {
  FiveTotals totals;
  walk(reader, [&](const GraphTemplate&, const Step&, const StepAccess& access) {
    ++totals.accesses;
    (access.write ? totals.written : totals.read) += access.touched.v;
    if (!access.range.empty()) totals.from_file += access.touched.v;
    totals.of_experts += access.expert >= 0;
  });
  return totals;
}

std::string export_text(const SessionReader& reader, const ExportOptions& options) {
  std::string bytes;
  const WriteResult written =
      export_session(reader, options, [&](std::string_view more) -> WriteResult {
        bytes += more;
        return {};
      });
  EXPECT_TRUE(written.has_value()) << written.error().message;
  return bytes;
}

std::vector<std::vector<std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool quoted = false, inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        inside = false;
      }
    } else if (c == '"') {
      quoted = inside = true;
    } else if (c == ',' || c == '\n') {
      row.push_back(field.empty() && !quoted ? kNullField : field);
      field.clear();
      quoted = false;
      if (c == '\n') rows.push_back(std::exchange(row, {}));
    } else {
      field += c;
    }
  }
  return rows;
}

std::string text_of_gzip(const std::string& bytes) {
  const auto codec = arrow::util::Codec::Create(arrow::Compression::GZIP);
  EXPECT_TRUE(codec.ok());
  const auto unpacked = arrow::io::CompressedInputStream::Make(
      codec->get(), std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes)));
  EXPECT_TRUE(unpacked.ok());
  std::string text;
  for (;;) {
    const auto more = (*unpacked)->Read(1 << 20);
    EXPECT_TRUE(more.ok()) << more.status().ToString();
    if (!more.ok() || (*more)->size() == 0) return text;
    text += (*more)->ToString();
  }
}

void expect_exports_agree(const SessionReader& reader) {
  const FiveTotals walked = walked_totals(reader);
  const Lines csv = csv_rows(export_text(reader, {.format = Format::Csv}));
  ASSERT_FALSE(csv.empty());
  expect_rows(reader, csv);
  EXPECT_EQ(totals_of_csv(csv), walked);
  EXPECT_EQ(totals_of_json(export_text(reader, {.format = Format::Json})), walked);
  EXPECT_EQ(totals_of_log(export_text(reader, {.format = Format::Ndjson})), walked);
  EXPECT_EQ(totals_of_parquet(export_text(reader, {.format = Format::Parquet})), walked);
  expect_parquet_matches_csv(reader, csv);
  EXPECT_EQ(totals_of_arrow(export_text(reader, {.format = Format::Arrow})), walked);
  EXPECT_EQ(totals_of_arrow_file(export_text(reader, {.format = Format::ArrowFile})), walked);
  expect_dot(reader);
  const std::pair bytes(walked.read, walked.written);
  EXPECT_EQ(bytes_of_chrome(text_of_gzip(export_text(reader, {.format = Format::Chrome}))), bytes);
  EXPECT_EQ(bytes_of_perfetto(export_text(reader, {.format = Format::Perfetto})), bytes);
}

}  // namespace tt::test
