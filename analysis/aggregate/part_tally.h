// How often each part (expert, embedding row) of a series was touched in a range of its steps, and
// what it has of the time of ops. Has the lifetime of one query.
#pragma once

#include <cstdint>
#include <optional>
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
  struct Share {
    std::uint32_t number;
    double amount;
  };
  // An amount of an op, divided among the parts of its main access: equally in each step
  // (share_of(), as the column self_ns of SQL and exports), then added over the steps.
  struct Division {
    std::vector<Share> parts;  // ascending
    double unknown = 0;        // in steps whose parts are not known
  };
  // The steps [from, to) of a series, which the other functions are about. A repeated call with
  // the same arguments keeps their results.
  void select(const Series& series, std::size_t from, std::size_t to);
  // The counts of a rule whose parts are separate accesses, in ascending order.
  std::span<const Count> of(std::uint32_t rule);
  // Of one of TemplateOutline::divided_ops.
  // The result is valid until the next call.
  const Division& time_of(std::uint32_t op) { return divided(op, /*time=*/true); }
  const Division& executions_of(std::uint32_t op) { return divided(op, /*time=*/false); }

 private:
  void count();
  void list_one(std::size_t place);
  // Ops with the same rule have the same parts: they are divided together, unless there are too
  // many of them and of parts, then one at a time. Column 0 is the executions, column i the time of
  // op i - 1 of the rule.
  struct Columns {
    std::uint32_t rule;
    std::size_t first_op;  // index in divided_ops
    std::size_t first, count;
    friend bool operator==(const Columns&, const Columns&) = default;
  };
  const Division& divided(std::uint32_t op, bool time);
  std::size_t most_parts(std::uint32_t rule) const;
  void divide(const Columns& columns, std::span<Division* const> out);
  void divide_step(const Columns& columns, std::size_t place);
  void list_numbers(std::uint32_t rule);

  const Series* series_ = nullptr;
  std::size_t from_ = 0, to_ = 0;
  bool counted_ = false;
  SetTally sets_;
  std::vector<std::vector<Count>> counts_;           // per rule
  std::vector<std::vector<std::uint32_t>> numbers_;  // per rule with listed parts
  std::vector<Division> times_;                      // per divided op
  std::vector<Division> executions_;                 // of the first op of each rule
  std::vector<bool> is_divided_;                     // the same
  std::size_t cells_ = 0;                            // of them: pairs of a part and a column
  Division alone_;                                   // of one column
  std::optional<Columns> alone_of_;
  std::vector<std::uint32_t> listed_;  // ascending, of the rule below
  std::optional<std::uint32_t> listed_of_;
  // The parts of one step, and what the first one and each other one gets in each column.
  std::vector<std::uint32_t> parts_;
  std::vector<double> to_first_, to_other_;
  std::vector<double> sums_, unknown_;
  std::vector<bool> is_touched_;  // rows of sums_
};

}  // namespace tt
