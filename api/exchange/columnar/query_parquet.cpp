#include "api/exchange/columnar/query_parquet.h"

#include <arrow/api.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <bit>
#include <exception>
#include <format>
#include <utility>
#include <variant>

#include "api/exchange/columnar/parquet_page.h"
#include "api/exchange/columnar/sink_stream.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {

// A column with the narrowest type that has all its values so far.
class QueryParquet::Column {
 public:
  // Returns the bytes that it keeps.
  std::size_t append(const sql::QueryValue& value) {
    if (std::holds_alternative<std::monostate>(value)) {
      cells_.push_back({});
      return sizeof(Cell);
    }
    const Type own = type_of(value);
    type_ = type_ == Type::None || type_ == own ? own : wider(type_, own);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      cells_.push_back({.type = own, .number = std::bit_cast<std::uint64_t>(*whole)});
    } else if (const auto* number = std::get_if<double>(&value)) {
      cells_.push_back({.type = own, .number = std::bit_cast<std::uint64_t>(*number)});
    } else {
      const std::string_view bytes = bytes_of(value);
      cells_.push_back({.type = own, .number = bytes.size()});
      texts_ += bytes;
      return sizeof(Cell) + bytes.size();
    }
    return sizeof(Cell);
  }

  std::shared_ptr<arrow::DataType> type() const {
    switch (type_) {
      case Type::Whole:
        return arrow::int64();
      case Type::Number:
        return arrow::float64();
      case Type::Blob:
        return arrow::binary();
      case Type::None:
      case Type::Text:
        break;
    }
    return arrow::utf8();
  }

  // Throws Parquet exceptions.
  std::shared_ptr<arrow::Array> array() const {
    switch (type_) {
      case Type::Whole:
        return built<arrow::Int64Builder>(
            [](const Cell& cell, std::string_view) { return cell.whole(); });
      case Type::Number:
        return built<arrow::DoubleBuilder>([](const Cell& cell, std::string_view) {
          return cell.type == Type::Whole ? static_cast<double>(cell.whole()) : cell.real();
        });
      case Type::Blob:
        return built<arrow::BinaryBuilder>(
            [](const Cell&, std::string_view bytes) { return bytes; });
      case Type::None:
      case Type::Text:
        break;
    }
    return built<arrow::StringBuilder>([](const Cell& cell, std::string_view bytes) {
      switch (cell.type) {
        case Type::Whole:
          return std::format("{}", cell.whole());
        case Type::Number:
          return std::format("{}", cell.real());
        case Type::Blob:
          return hex_of(std::as_bytes(std::span(bytes)));
        case Type::None:
        case Type::Text:
          break;
      }
      return to_valid_utf8(bytes);
    });
  }

 private:
  enum class Type : std::uint8_t { None, Whole, Number, Blob, Text };
  struct Cell {
    Type type = Type::None;    // None: null
    std::uint64_t number = 0;  // its bits; of a text or blob its length
    std::int64_t whole() const { return std::bit_cast<std::int64_t>(number); }
    double real() const { return std::bit_cast<double>(number); }
  };

  static Type type_of(const sql::QueryValue& value) {
    if (std::holds_alternative<std::int64_t>(value)) return Type::Whole;
    if (std::holds_alternative<double>(value)) return Type::Number;
    return std::holds_alternative<std::string_view>(value) ? Type::Text : Type::Blob;
  }
  static Type wider(Type a, Type b) {
    const auto is_number = [](Type type) { return type == Type::Whole || type == Type::Number; };
    return is_number(a) && is_number(b) ? Type::Number : Type::Text;
  }
  static std::string_view bytes_of(const sql::QueryValue& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return *text;
    const auto& blob = std::get<std::span<const std::byte>>(value);
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
  }

  template <class Builder, class Value>
  std::shared_ptr<arrow::Array> built(Value value) const {
    Builder builder;
    PARQUET_THROW_NOT_OK(builder.Reserve(static_cast<std::int64_t>(cells_.size())));
    std::string_view rest = texts_;
    for (const Cell& cell : cells_) {
      if (cell.type == Type::None) {
        PARQUET_THROW_NOT_OK(builder.AppendNull());
        continue;
      }
      const bool has_bytes = cell.type == Type::Text || cell.type == Type::Blob;
      const std::string_view bytes = rest.substr(0, has_bytes ? cell.number : 0);
      rest.remove_prefix(bytes.size());
      PARQUET_THROW_NOT_OK(builder.Append(value(cell, bytes)));
    }
    std::shared_ptr<arrow::Array> made;
    PARQUET_THROW_NOT_OK(builder.Finish(&made));
    return made;
  }

  Type type_ = Type::None;
  std::vector<Cell> cells_;
  std::string texts_;  // of texts and blobs, one after the other
};

QueryParquet::QueryParquet(std::vector<std::string> columns, std::size_t max_bytes)
    : names_(std::move(columns)), max_bytes_(max_bytes), columns_(names_.size()) {}
QueryParquet::~QueryParquet() = default;

void QueryParquet::begin(std::string&) const {}

std::expected<void, sql::QueryError> QueryParquet::row(std::span<const sql::QueryValue> values,
                                                       std::string&) {
  for (std::size_t i = 0; i < columns_.size(); ++i) bytes_ += columns_[i].append(values[i]);
  if (bytes_ <= max_bytes_) return {};
  return std::unexpected(sql::QueryError{
      .kind = sql::QueryError::Kind::TooLarge,
      .message = std::format("The rows need more than the {} MiB that are kept for a Parquet file. "
                             "Select fewer rows or columns, or use CSV.",
                             max_bytes_ >> 20)});
}

bool QueryParquet::end(bool, const sql::QueryError* error, std::string& out) {
  if (error != nullptr) return false;
  const ByteSink sink = [&](std::string_view bytes) -> WriteResult {
    out += bytes;
    return {};
  };
  try {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      fields.push_back(arrow::field(names_[i], columns_[i].type()));
      arrays.push_back(columns_[i].array());
    }
    const auto table = arrow::Table::Make(arrow::schema(std::move(fields)), std::move(arrays));
    const auto properties = parquet::WriterProperties::Builder()
                                .compression(PageEncoder::kCompression)
                                ->version(parquet::ParquetVersion::PARQUET_2_6)
                                ->created_by("tensor-trace")
                                ->build();
    const auto stream = std::make_shared<SinkStream>(sink);
    return parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), stream,
                                      parquet::DEFAULT_MAX_ROW_GROUP_LENGTH, properties)
        .ok();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace tt::exchange
