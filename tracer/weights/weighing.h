// What the errors of a model are weighed by: how large the inputs of each column were, and how
// often a session read each row.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/weights/weight_reader.h"

namespace tt {

// Importances of the columns of a tensor: ne[0] values per matrix (expert).
struct ColumnImportance {
  std::vector<float> values;
  // Empty: there are none.
  std::span<const float> of_row(const GgufTensor& tensor, std::uint64_t row) const;
};

// How often each row of a tensor was read: all rows of a matrix equally often, those of an expert
// as often as it was chosen, those of an embedding as often as their token was evaluated.
class RowUses {
 public:
  struct Use {
    RowRange rows;
    std::uint64_t reads = 0;
  };
  RowUses() = default;
  // Ranges may overlap: their reads are added.
  explicit RowUses(std::span<const Use> uses);

  std::uint64_t of(std::uint64_t row) const;
  // The rows that were read, in order. Neighbours have different numbers of reads.
  std::vector<Use> read_rows() const;

 private:
  std::map<std::uint64_t, std::uint64_t> from_;  // first row: reads of it and of those that follow
};

// By the name of the tensor.
using Importances = std::map<std::string, ColumnImportance>;
using Uses = std::map<std::string, RowUses>;

// Of one tensor.
struct TensorWeighing {
  const ColumnImportance* importance = nullptr;  // null: all columns count equally
  const RowUses* uses = nullptr;                 // null: each row counts once

  std::span<const float> columns(const GgufTensor& tensor, std::uint64_t row) const;
  std::uint64_t reads(std::uint64_t row) const { return uses == nullptr ? 1 : uses->of(row); }
  // The rows that count: those that were read, or all.
  std::vector<RowUses::Use> rows(const GgufTensor& tensor) const;
  // Sum of the reads of all rows.
  std::uint64_t all_reads(const GgufTensor& tensor) const;
};

// Of a model.
struct Weighing {
  Importances importances;
  std::optional<Uses> uses;  // nullopt: no session; a tensor that is missing was not read
  TensorWeighing of(const std::string& tensor) const;
};

}  // namespace tt
