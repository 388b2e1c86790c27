// The errors that types will have: some rows of a tensor are quantized as llama-quantize does it,
// decoded again, and compared with the original.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tracer/weights/quantization_error.h"

namespace tt {

// Rows of a tensor that are tried if nobody says how many.
inline constexpr std::size_t kTriedRows = 64;

// Types with fewer bits than that of the tensor, to which ggml quantizes without an importance
// matrix, by size.
std::vector<ggml_type> smaller_types(const GgufTensor& tensor);

// Which of the rows that count are tried: about `count`, evenly spread.
std::vector<std::uint64_t> tried_rows(const GgufTensor& tensor, std::size_t count,
                                      const TensorWeighing& weighing);

class TypeTrial {
 public:
  // The tensor and what `weighing` points to must outlive this object.
  TypeTrial(const GgufTensor& tensor, std::vector<ggml_type> types, std::size_t rows,
            const TensorWeighing& weighing);

  const std::vector<std::uint64_t>& rows() const { return rows_; }
  // Rows come in order; those that are not in rows() are skipped.
  void add(std::uint64_t row, std::span<const float> values);
  // Of each type, in their order.
  const std::vector<ErrorSum>& errors() const { return errors_; }

 private:
  const GgufTensor& tensor_;
  const std::vector<ggml_type> types_;
  const TensorWeighing weighing_;
  const std::vector<std::uint64_t> rows_;
  std::size_t next_ = 0;  // in rows_
  std::vector<ErrorSum> errors_;
  std::vector<std::byte> bytes_;
  std::vector<float> decoded_;
};

}  // namespace tt
