#include "api/exchange/arrow_rows.h"

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>

#include <bit>
#include <utility>

#include "api/exchange/session_facts.h"

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

// A bit per row of a byte per row.
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

TraceError trace_error(const arrow::Status& status) {
  using Kind = TraceError::Kind;
  const Kind kind = status.IsCancelled() ? Kind::Cancelled : Kind::Io;
  return {kind, status.message()};
}

std::expected<ArrowRows, TraceError> ArrowRows::make(SessionRows& rows, bool with_session) {
  ArrowRows out;
  arrow::FieldVector fields;
  for (const AccessColumn& definition : access_columns()) {
    if (!with_session && std::string_view(definition.name) == "session") continue;
    Column column;
    column.definition = &definition;
    out.columns_.push_back(std::move(column));
    fields.push_back(arrow::field(definition.name, arrow_type(definition.type), definition.nullable,
                                  *definition.unit == '\0'
                                      ? nullptr
                                      : arrow::key_value_metadata({{"unit", definition.unit}})));
  }
  const auto add_word = [](Column& column, std::string_view bytes) {
    std::string word = utf8_of(bytes);
    if (column.places.try_emplace(word, static_cast<std::uint32_t>(column.words.size())).second)
      column.words.push_back(std::move(word));
  };
  for (Column& column : out.columns_) {
    if (column.definition->type != CellType::Text || column.definition->varies != Varies::PerStep)
      continue;
    for (const std::string& word : words_of_steps(rows.session())) add_word(column, word);
  }
  const Written read = rows.for_each_template([&](TemplateId, const RowTemplate& graph) {
    const RowScope scope{
        .session = &rows.session(), .graph = &graph, .step = nullptr, .addresses = {}};
    for (Column& column : out.columns_) {
      if (column.definition->type != CellType::Text ||
          column.definition->varies != Varies::PerAccess)
        continue;
      std::string_view last;
      for (std::uint32_t i = 0; i < graph.derived->accesses.size(); ++i) {
        ExportRow row;
        row.access.access = i;
        const Cell cell = column.definition->cell(scope, row);
        const auto* text = std::get_if<std::string_view>(&cell);
        if (text != nullptr && (i == 0 || *text != last)) add_word(column, last = *text);
      }
    }
  });
  if (!read) return std::unexpected(read.error());
  for (Column& column : out.columns_) {
    if (column.definition->type == CellType::Text) column.dictionary = dictionary_of(column.words);
  }
  const auto facts = session_facts(rows);
  if (!facts) return std::unexpected(facts.error());
  out.schema_ = arrow::schema(
      std::move(fields), arrow::key_value_metadata({{"tensor_trace.session", text_of(*facts)}}));
  return out;
}

std::uint64_t ArrowRows::bits_of(Column& column, const Cell& cell) {
  if (const auto* v = std::get_if<std::uint64_t>(&cell)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&cell)) return static_cast<std::uint64_t>(*v);
  if (const auto* v = std::get_if<float>(&cell)) return std::bit_cast<std::uint32_t>(*v);
  if (const auto* v = std::get_if<bool>(&cell)) return *v ? 1 : 0;
  if (const auto* v = std::get_if<std::string_view>(&cell)) {
    if (const auto known = column.places.find(std::string(*v)); known != column.places.end())
      return known->second;
    const auto found = column.places.find(utf8_of(*v));
    return found == column.places.end() ? 0 : found->second;
  }
  return 0;
}

void ArrowRows::prepare(const RowScope& scope) {
  prepared_ = scope.graph->derived;
  const auto n = static_cast<std::uint32_t>(prepared_->accesses.size());
  for (Column& column : columns_) {
    if (column.definition->varies != Varies::PerAccess) continue;
    column.constants.resize(n);
    column.constants_valid.resize(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      ExportRow row;
      row.access.access = i;
      const Cell cell = column.definition->cell(scope, row);
      column.constants[i] = bits_of(column, cell);
      column.constants_valid[i] = !std::holds_alternative<std::monostate>(cell);
    }
  }
}

namespace {

// Appends to `values` what `value(i)` says of every row.
template <class Value, class Of>
void append_rows(std::vector<Value>& values, std::size_t n, Of value) {
  const std::size_t before = values.size();
  values.resize(before + n);
  for (std::size_t i = 0; i < n; ++i) values[before + i] = static_cast<Value>(value(i));
}

}  // namespace

void ArrowRows::append(Column& column, const StepRows& step) {
  const AccessColumn& definition = *column.definition;
  const std::size_t n = step.rows.size();
  const auto append = [&](auto bits) {
    if (is_wide(definition.type)) {
      append_rows(column.wide, n, bits);
    } else {
      append_rows(column.narrow, n, bits);
    }
  };
  switch (definition.varies) {
    case Varies::PerStep: {
      const Cell cell = definition.cell(step.scope, step.rows.front());
      const std::uint64_t bits = bits_of(column, cell);
      append([bits](std::size_t) { return bits; });
      break;
    }
    case Varies::PerAccess:
      append([&](std::size_t i) { return column.constants[step.rows[i].access.access]; });
      if (definition.nullable) {
        append_rows(column.valid, n, [&](std::size_t i) {
          return column.constants_valid[step.rows[i].access.access];
        });
      }
      break;
    case Varies::PerRow: {
      const std::size_t before = column.valid.size();
      if (definition.nullable) column.valid.resize(before + n);
      append([&](std::size_t i) {
        const Cell cell = definition.cell(step.scope, step.rows[i]);
        if (definition.nullable) column.valid[before + i] = cell.index() != 0;
        return bits_of(column, cell);
      });
      break;
    }
  }
}

void ArrowRows::append(const StepRows& step) {
  if (step.rows.empty()) return;
  if (prepared_ != step.scope.graph->derived) prepare(step.scope);
  for (Column& column : columns_) append(column, step);
  size_ += step.rows.size();
}

std::expected<std::shared_ptr<arrow::RecordBatch>, TraceError> ArrowRows::take() {
  const auto n = static_cast<std::int64_t>(std::exchange(size_, 0));
  std::vector<std::shared_ptr<arrow::ArrayData>> arrays;
  for (Column& column : columns_) {
    std::shared_ptr<arrow::Buffer> valid, values;
    if (column.definition->nullable) {
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
