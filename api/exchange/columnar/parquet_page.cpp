#include "api/exchange/columnar/parquet_page.h"

#include <arrow/api.h>
#include <parquet/column_writer.h>
#include <parquet/exception.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tt::exchange {
namespace {

using parquet::Encoding;
using TextEncoder = parquet::DictEncoder<parquet::ByteArrayType>;

parquet::Encoding::type encoding_of(CellType type) {
  switch (type) {
    case CellType::Text:
      return Encoding::RLE_DICTIONARY;
    case CellType::Flag:
    case CellType::Float:
      return Encoding::PLAIN;
    default:
      return Encoding::DELTA_BINARY_PACKED;
  }
}

std::unique_ptr<parquet::Encoder> encoder_of(const StepColumns::Column& column) {
  switch (column.definition->type) {
    case CellType::Flag:
    case CellType::Float:
      return nullptr;
    case CellType::Int32:
    case CellType::UInt32:
      return parquet::MakeEncoder(parquet::Type::INT32, Encoding::DELTA_BINARY_PACKED);
    case CellType::Int64:
    case CellType::UInt64:
      return parquet::MakeEncoder(parquet::Type::INT64, Encoding::DELTA_BINARY_PACKED);
    case CellType::Text:
      break;
  }
  arrow::StringBuilder builder;
  std::shared_ptr<arrow::Array> words;
  PARQUET_THROW_NOT_OK(builder.AppendValues(column.words));
  PARQUET_THROW_NOT_OK(builder.Finish(&words));
  auto encoder = parquet::MakeEncoder(parquet::Type::BYTE_ARRAY, Encoding::PLAIN, true);
  dynamic_cast<TextEncoder&>(*encoder).PutDictionary(*words);
  return encoder;
}

void append(std::vector<std::uint8_t>& body, const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  body.insert(body.end(), from, from + count);
}
void append(std::vector<std::uint8_t>& body, const arrow::Buffer& bytes) {
  append(body, bytes.data(), static_cast<std::size_t>(bytes.size()));
}

bool is_signed(CellType type) { return type == CellType::Int32 || type == CellType::Int64; }

}  // namespace

PageEncoder::PageEncoder(const StepColumns::Column& column)
    : column_(&column),
      encoding_(encoding_of(column.definition->type)),
      encoder_(encoder_of(column)),
      codec_(parquet::GetCodec(kCompression)) {}

std::shared_ptr<arrow::Buffer> PageEncoder::dictionary() const {
  if (column_->definition->type != CellType::Text) return nullptr;
  const auto& words = dynamic_cast<const TextEncoder&>(*encoder_);
  PARQUET_ASSIGN_OR_THROW(std::shared_ptr<arrow::Buffer> page,
                          arrow::AllocateBuffer(words.dict_encoded_size()));
  words.WriteDict(page->mutable_data());
  return page;
}

bool PageEncoder::less(std::uint64_t a, std::uint64_t b) const {
  if (!is_signed(column_->definition->type)) return a < b;
  return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
}

std::string PageEncoder::statistic(std::uint64_t bits) const {
  std::size_t bytes = 8;
  switch (column_->definition->type) {
    case CellType::Text:
      return column_->words[bits];
    case CellType::Flag:
      bytes = 1;
      break;
    case CellType::Int32:
    case CellType::UInt32:
    case CellType::Float:
      bytes = 4;
      break;
    default:
      break;
  }
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(bits >> (8 * i) & 0xff);
  return text;
}

// Definition levels: 1 per value, 0 per null, prefixed with their size.
void PageEncoder::put_levels(PageScratch& scratch) {
  std::vector<std::uint8_t> valid;
  valid.reserve(valid_.size());
  for (const SharedValues& step : steps_)
    valid.insert(valid.end(), step->valid.begin(), step->valid.end());
  if (valid != valid_) {
    valid_ = std::move(valid);
    scratch.levels.assign(valid_.begin(), valid_.end());
    const auto count = static_cast<int>(valid_.size());
    const auto max_size = parquet::LevelEncoder::MaxBufferSize(Encoding::RLE, 1, count);
    levels_.resize(sizeof(std::uint32_t) + static_cast<std::size_t>(max_size));
    parquet::LevelEncoder encoder;
    encoder.Init(Encoding::RLE, 1, count, levels_.data() + sizeof(std::uint32_t), max_size);
    encoder.Encode(count, scratch.levels.data());
    const auto size = static_cast<std::uint32_t>(encoder.len());
    std::memcpy(levels_.data(), &size, sizeof(size));
    levels_.resize(sizeof(size) + size);
  }
  append(scratch.body, levels_.data(), levels_.size());
}

// Collects the non-null values in the buffer `values`. Ordered is the type that determines the
// minimum and maximum.
template <class Ordered, class Value>
std::span<const Value> PageEncoder::gather(std::vector<Value>& values, ParquetPage& page) const {
  if (values.size() < page.rows) values.resize(page.rows);
  std::size_t n = 0;
  for (const SharedValues& step : steps_) {
    const auto& [bits, valid] = *step;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      values[n] = static_cast<Value>(bits[i]);
      n += valid.empty() ? std::size_t{1} : valid[i];
    }
  }
  page.nulls = page.rows - n;
  page.has_range = n > 0;
  const std::span<const Value> there = std::span(values).first(n);
  if (there.empty()) return there;
  auto least = static_cast<Ordered>(there.front()), greatest = least;
  for (const Value value : there) {
    least = std::min(least, static_cast<Ordered>(value));
    greatest = std::max(greatest, static_cast<Ordered>(value));
  }
  page.least = static_cast<std::uint64_t>(least);
  page.greatest = static_cast<std::uint64_t>(greatest);
  return there;
}

// Parquet integers are signed; unsigned values keep their bits.
template <class Type, class Values>
void PageEncoder::put_numbers(const Values& values, PageScratch& scratch) {
  using Number = typename Type::c_type;
  dynamic_cast<parquet::TypedEncoder<Type>&>(*encoder_).Put(
      reinterpret_cast<const Number*>(values.data()), static_cast<int>(values.size()));
  append(scratch.body, *encoder_->FlushValues());
}

void PageEncoder::put_values(ParquetPage& page, PageScratch& scratch) {
  auto& [body, compressed, levels, narrow, wide] = scratch;
  switch (column_->definition->type) {
    case CellType::Int32:
      return put_numbers<parquet::Int32Type>(gather<std::int32_t>(narrow, page), scratch);
    case CellType::UInt32:
      return put_numbers<parquet::Int32Type>(gather<std::uint32_t>(narrow, page), scratch);
    case CellType::Int64:
      return put_numbers<parquet::Int64Type>(gather<std::int64_t>(wide, page), scratch);
    case CellType::UInt64:
      return put_numbers<parquet::Int64Type>(gather<std::uint64_t>(wide, page), scratch);
    case CellType::Float: {
      const auto bits = gather<std::uint32_t>(narrow, page);
      page.has_range = false;
      return append(body, bits.data(), bits.size_bytes());
    }
    case CellType::Flag: {
      const auto flags = gather<std::uint32_t>(narrow, page);
      const std::size_t before = body.size();
      body.resize(before + (flags.size() + 7) / 8);
      for (std::size_t i = 0; i < flags.size(); ++i)
        body[before + i / 8] |= static_cast<std::uint8_t>(flags[i] << (i % 8));
      return;
    }
    case CellType::Text: {
      const auto places = gather<std::uint32_t>(narrow, page);
      dynamic_cast<TextEncoder&>(*encoder_).PutIndices(
          arrow::Int32Array(static_cast<std::int64_t>(places.size()),
                            arrow::Buffer::Wrap(places.data(), places.size())));
      return append(body, *encoder_->FlushValues());
    }
  }
}

SharedPage PageEncoder::encode(std::vector<SharedValues> steps, PageScratch& scratch) {
  if (page_ != nullptr && steps == steps_) return page_;
  steps_ = std::move(steps);
  ParquetPage page;
  for (const SharedValues& step : steps_) page.rows += step->bits.size();
  std::vector<std::uint8_t>& body = scratch.body;
  body.clear();
  if (column_->definition->nullable()) put_levels(scratch);
  put_values(page, scratch);

  page.uncompressed_bytes = body.size();
  const auto size = static_cast<std::int64_t>(body.size());
  const std::int64_t max_size = codec_->MaxCompressedLen(size, body.data());
  if (std::cmp_less(scratch.compressed.size(), max_size))
    scratch.compressed.resize(static_cast<std::size_t>(max_size));
  PARQUET_ASSIGN_OR_THROW(const std::int64_t compressed,
                          codec_->Compress(size, body.data(), max_size, scratch.compressed.data()));
  PARQUET_ASSIGN_OR_THROW(auto bytes, arrow::AllocateBuffer(compressed));
  std::memcpy(bytes->mutable_data(), scratch.compressed.data(),
              static_cast<std::size_t>(compressed));
  page.bytes = std::move(bytes);
  return page_ = std::make_shared<const ParquetPage>(std::move(page));
}

}  // namespace tt::exchange
