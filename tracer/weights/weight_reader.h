// Decodes the weights of a model file, without llama.cpp loading the model.
//
//   auto reader = WeightReader::open(index);
//   auto read = reader->read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
//     statistics.add(rows.values); return keep_going(); });
//
// Memory: one piece of about kPieceValues values and its bytes, whatever the size of the
// model, or one row if it is larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tracer/gguf/gguf_index.h"

namespace tt {

// Rows are the innermost dimension; row r of a tensor of shape [a, b, c] is row r % b of matrix
// r / b (in models with experts: the expert).
struct RowRange {
  std::uint64_t first = 0, count = 0;
};
inline std::uint64_t row_count(const GgufTensor& tensor) {
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < tensor.ne.size(); ++i)
    rows *= static_cast<std::uint64_t>(tensor.ne[i]);
  return tensor.ne[0] == 0 ? 0 : rows;
}
inline RowRange all_rows(const GgufTensor& tensor) {
  return {.first = 0, .count = row_count(tensor)};
}

struct WeightRows {
  std::uint64_t first = 0, count = 0;  // rows
  std::size_t row_values = 0;          // values per row
  std::size_t row_bytes = 0;
  std::span<const std::byte> bytes;  // count * row_bytes, as in the file
  std::span<const float> values;     // count * row_values
  std::span<const float> row(std::uint64_t i) const {
    return values.subspan(i * row_values, row_values);
  }
  std::span<const std::byte> row_of_bytes(std::uint64_t i) const {
    return bytes.subspan(i * row_bytes, row_bytes);
  }
};

// A row is decoded at once; no model has such rows.
inline constexpr std::int64_t kMaxRowValues = std::int64_t{1} << 24;
// Why the values of `tensor` cannot be decoded; empty: they can.
std::string undecodable_reason(const GgufTensor& tensor);

// One thread at a time. The files must not change meanwhile.
class WeightReader {
 public:
  static constexpr std::size_t kPieceValues = 1U << 16;  // fits into the second-level cache

  // Error: which file could not be opened, and why.
  static std::expected<WeightReader, std::string> open(const GgufIndex& index);
  WeightReader(WeightReader&&) noexcept;
  WeightReader& operator=(WeightReader&&) = delete;
  ~WeightReader();

  // Gives the rows in order, several at a time; the spans are valid during the call. Ends when
  // `take` returns false. Error: undecodable_reason(), or the file could not be read.
  std::expected<void, std::string> read(const GgufTensor& tensor, RowRange rows,
                                        const std::function<bool(const WeightRows&)>& take);
  // By all calls of read().
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct File;
  explicit WeightReader(std::vector<std::unique_ptr<File>> files);
  std::vector<std::unique_ptr<File>> files_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace tt
