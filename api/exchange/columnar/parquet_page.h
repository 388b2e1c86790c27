// Pages of a Parquet column, encoded from steps' values: what the steps of a page have
// said before is not encoded again.
#pragma once

#include <arrow/util/compression.h>
#include <parquet/encoding.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/exchange/rows/step_columns.h"

namespace tt::exchange {

// Values of consecutive rows as they stand in the file.
struct ParquetPage {
  std::shared_ptr<arrow::Buffer> bytes;  // levels and values, compressed
  std::size_t uncompressed_bytes = 0;
  std::size_t rows = 0, nulls = 0;
  // The least and the greatest, as StepValues has them; false: nulls alone, or floats.
  bool has_range = false;
  std::uint64_t least = 0, greatest = 0;
};
using SharedPage = std::shared_ptr<const ParquetPage>;

// What a page is made in; one for all columns.
struct PageScratch {
  std::vector<std::uint8_t> body, compressed;
  std::vector<std::int16_t> levels;
  std::vector<std::uint32_t> narrow;
  std::vector<std::uint64_t> wide;
};

// Those of one column, which outlives it. Whole numbers are DELTA_BINARY_PACKED: what
// hardly changes from row to row is smaller as differences than as a dictionary. Texts are
// RLE_DICTIONARY, all words of the column being the dictionary; flags and floats PLAIN.
// What Parquet throws passes through. One thread.
class PageEncoder {
 public:
  static constexpr auto kCompression = arrow::Compression::LZ4;
  explicit PageEncoder(const StepColumns::Column& column);

  parquet::Encoding::type encoding() const { return encoding_; }
  std::size_t words() const { return column_->words.size(); }
  // The words as a dictionary page has them, uncompressed. Null: not of a text.
  std::shared_ptr<arrow::Buffer> dictionary() const;
  // Whether `a` comes before `b`, and a value, as Parquet's statistics have it.
  bool less(std::uint64_t a, std::uint64_t b) const;
  std::string statistic(std::uint64_t bits) const;

  // Of the rows of `steps`, one step after the other.
  SharedPage encode(std::vector<SharedValues> steps, PageScratch& scratch);

 private:
  void put_levels(PageScratch& scratch);
  void put_values(ParquetPage& page, PageScratch& scratch);
  template <class Ordered, class Value>
  std::span<const Value> gather(std::vector<Value>& values, ParquetPage& page) const;
  template <class Type, class Values>
  void put_numbers(const Values& values, PageScratch& scratch);

  const StepColumns::Column* column_;
  parquet::Encoding::type encoding_;
  std::unique_ptr<parquet::Encoder> encoder_;  // of whole numbers and texts
  std::unique_ptr<arrow::util::Codec> codec_;
  // Of the page before: its steps, which rows are no nulls, the same encoded, and all of it.
  std::vector<SharedValues> steps_;
  std::vector<std::uint8_t> valid_, levels_;
  SharedPage page_;
};

}  // namespace tt::exchange
