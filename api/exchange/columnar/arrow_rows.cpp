#include "api/exchange/columnar/arrow_rows.h"

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>

#include <utility>

#include "api/exchange/columnar/sink_stream.h"
#include "api/exchange/rows/session_metadata.h"

namespace tt::exchange {
namespace {

bool is_wide(CellType type) { return type == CellType::Int64 || type == CellType::UInt64; }

std::shared_ptr<arrow::DataType> arrow_type(CellType type) {
  switch (type) {
    case CellType::Text:
      return arrow::dictionary(arrow::int32(), arrow::utf8());
    case CellType::Flag:
      return arrow::boolean();
    case CellType::Int32:
      return arrow::int32();
    case CellType::UInt32:
      return arrow::uint32();
    case CellType::Int64:
      return arrow::int64();
    case CellType::UInt64:
      return arrow::uint64();
    case CellType::Float:
      return arrow::float32();
  }
  return arrow::null();
}

template <class Value>
std::shared_ptr<arrow::Buffer> buffer_of(std::vector<Value>& values) {
  return arrow::Buffer::FromVector(std::exchange(values, {}));
}

// Packs one byte per row into one bit per row.
std::expected<std::shared_ptr<arrow::Buffer>, arrow::Status> bits_from(
    const std::vector<std::uint8_t>& bytes) {
  arrow::TypedBufferBuilder<bool> bits;
  if (auto status = bits.Append(bytes.data(), static_cast<std::int64_t>(bytes.size()));
      !status.ok())
    return std::unexpected(status);
  std::shared_ptr<arrow::Buffer> buffer;
  if (auto status = bits.Finish(&buffer); !status.ok()) return std::unexpected(status);
  return buffer;
}

std::shared_ptr<arrow::Array> dictionary_of(const std::vector<std::string>& words) {
  arrow::StringBuilder builder;
  if (!builder.AppendValues(words).ok()) return nullptr;
  std::shared_ptr<arrow::Array> array;
  return builder.Finish(&array).ok() ? array : nullptr;
}

}  // namespace

std::expected<std::shared_ptr<arrow::Schema>, TraceError> arrow_schema(const SessionRows& rows,
                                                                       const StepColumns& columns) {
  arrow::FieldVector fields;
  for (const StepColumns::Column& column : columns.columns()) {
    const AccessColumn& of = *column.definition;
    fields.push_back(
        arrow::field(of.name, arrow_type(of.type), of.nullable(),
                     *of.unit == '\0' ? nullptr : arrow::key_value_metadata({{"unit", of.unit}})));
  }
  const auto facts = session_metadata(rows);
  if (!facts) return std::unexpected(facts.error());
  return arrow::schema(std::move(fields),
                       arrow::key_value_metadata({{"tensor_trace.session", text_of(*facts)}}));
}

ArrowRows::ArrowRows(const StepColumns& columns, std::shared_ptr<arrow::Schema> schema)
    : schema_(std::move(schema)) {
  for (const StepColumns::Column& column : columns.columns()) {
    const bool text = column.definition->type == CellType::Text;
    columns_.push_back({.definition = column.definition,
                        .dictionary = text ? dictionary_of(column.words) : nullptr});
  }
}

void ArrowRows::append(std::span<const SharedValues> step) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    const auto& [bits, valid] = *step[i];
    column.valid.insert(column.valid.end(), valid.begin(), valid.end());
    if (is_wide(column.definition->type)) {
      column.wide.insert(column.wide.end(), bits.begin(), bits.end());
    } else {
      const std::size_t before = column.narrow.size();
      column.narrow.resize(before + bits.size());
      for (std::size_t row = 0; row < bits.size(); ++row)
        column.narrow[before + row] = static_cast<std::uint32_t>(bits[row]);
    }
  }
  size_ += step.front()->bits.size();
}

std::expected<std::shared_ptr<arrow::RecordBatch>, TraceError> ArrowRows::take() {
  const auto n = static_cast<std::int64_t>(std::exchange(size_, 0));
  std::vector<std::shared_ptr<arrow::ArrayData>> arrays;
  for (Column& column : columns_) {
    std::shared_ptr<arrow::Buffer> valid, values;
    if (column.definition->nullable()) {
      auto bits = bits_from(column.valid);
      if (!bits) return std::unexpected(trace_error(bits.error()));
      valid = *std::move(bits);
      column.valid.clear();
    }
    if (column.definition->type == CellType::Flag) {
      auto bits = bits_from({column.narrow.begin(), column.narrow.end()});
      if (!bits) return std::unexpected(trace_error(bits.error()));
      values = *std::move(bits);
      column.narrow.clear();
    } else {
      values = is_wide(column.definition->type) ? buffer_of(column.wide) : buffer_of(column.narrow);
    }
    auto array = arrow::ArrayData::Make(arrow_type(column.definition->type), n,
                                        {std::move(valid), std::move(values)});
    if (column.dictionary) array->dictionary = column.dictionary->data();
    arrays.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(schema_, n, std::move(arrays));
}

}  // namespace tt::exchange
