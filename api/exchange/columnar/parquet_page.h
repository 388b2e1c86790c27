// Encodes pages of a Parquet column from step values. A page with the same values as the
// previous one is not encoded again.
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

// An encoded page of consecutive rows.
struct ParquetPage {
  std::shared_ptr<arrow::Buffer> bytes;  // levels and values, compressed
  std::size_t uncompressed_bytes = 0;
  std::size_t rows = 0, nulls = 0;
  // Minimum and maximum in the encoding of StepValues. has_range is false for pages of nulls
  // and for floats.
  bool has_range = false;
  std::uint64_t least = 0, greatest = 0;
};
using SharedPage = std::shared_ptr<const ParquetPage>;

// Scratch buffers, shared by all columns.
struct PageScratch {
  std::vector<std::uint8_t> body, compressed;
  std::vector<std::int16_t> levels;
  std::vector<std::uint32_t> narrow;
  std::vector<std::uint64_t> wide;
};

// Encodes the pages of one column, which must outlive it. Integers use DELTA_BINARY_PACKED:
// slowly changing values are smaller as differences than with a dictionary. Texts use
// RLE_DICTIONARY with all texts of the column in the dictionary. Flags and floats use PLAIN.
// Throws Parquet exceptions. One thread.
class PageEncoder {
 public:
  static constexpr auto kCompression = arrow::Compression::LZ4;
  explicit PageEncoder(const StepColumns::Column& column);

  parquet::Encoding::type encoding() const { return encoding_; }
  std::size_t words() const { return column_->words.size(); }
  // The uncompressed dictionary page. Null if the column is not a text column.
  std::shared_ptr<arrow::Buffer> dictionary() const;
  // Order and encoding of values for Parquet statistics.
  bool less(std::uint64_t a, std::uint64_t b) const;
  std::string statistic(std::uint64_t bits) const;

  // Encodes the rows of `steps` as one page.
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
  std::unique_ptr<parquet::Encoder> encoder_;  // for integers and texts
  std::unique_ptr<arrow::util::Codec> codec_;
  // Previous page: its steps, validity per row, encoded levels, and the page.
  std::vector<SharedValues> steps_;
  std::vector<std::uint8_t> valid_, levels_;
  SharedPage page_;
};

}  // namespace tt::exchange
