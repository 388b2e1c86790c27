// How often each part of a series' lists (expert, row of an embedding) was touched in
// some of its steps. Lives as long as one question.
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

  // Of the steps [from, to) of a series; what was counted last is not counted again.
  void count(const Series& series, std::size_t from, std::size_t to);
  // Of what was counted last, of a rule whose parts are accesses of their own: ascending.
  std::span<const Count> of(std::uint32_t rule) const { return counts_[rule]; }

 private:
  void list_one(const Series& series, std::size_t place);

  const Series* series_ = nullptr;
  std::size_t from_ = 0, to_ = 0;
  SetTally sets_;
  std::vector<std::vector<Count>> counts_;           // per rule
  std::vector<std::vector<std::uint32_t>> numbers_;  // per rule whose parts are listed
};

}  // namespace tt
