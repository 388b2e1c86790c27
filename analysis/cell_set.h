// Cells of a KV cache as stretches: what a step writes and attends to are mostly
// one or two, however many cells they have. A value.
#pragma once

#include <cstdint>
#include <vector>

namespace tt {

class CellSet {
 public:
  CellSet() = default;
  static CellSet stretch(std::int64_t begin, std::int64_t end);  // without end; empty if none
  static CellSet of(std::vector<std::int64_t> cells);            // in any order, repeated or not

  void add(const CellSet& other);
  CellSet moved(std::int64_t by) const;
  CellSet common(const CellSet& other) const;
  std::uint64_t size() const;  // cells
  bool empty() const { return stretches_.empty(); }

 private:
  struct Stretch {
    std::int64_t begin, end;
  };
  std::vector<Stretch> stretches_;  // ascending, with gaps between
};

}  // namespace tt
