// Counts how often each part (expert, embedding row) of a series was touched in a range of
// its steps. Has the lifetime of one query.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/index/session_index.h"
#include "analysis/index/set_tally.h"

namespace tt {

class PartTally {
 public:
  struct Count {
    std::uint32_t number, count;
    friend bool operator==(const Count&, const Count&) = default;
  };

  // Counts the steps [from, to) of a series. A repeated call with the same arguments reuses
  // the result.
  void count(const Series& series, std::size_t from, std::size_t to);
  // The result of the last count() for a rule whose parts are separate accesses, in
  // ascending order.
  std::span<const Count> of(std::uint32_t rule) const { return counts_[rule]; }

 private:
  void list_one(const Series& series, std::size_t place);

  const Series* series_ = nullptr;
  std::size_t from_ = 0, to_ = 0;
  SetTally sets_;
  std::vector<std::vector<Count>> counts_;           // per rule
  std::vector<std::vector<std::uint32_t>> numbers_;  // per rule with listed parts
};

}  // namespace tt
