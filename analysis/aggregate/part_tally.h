// How often each part (expert, embedding row) of a series was touched in a range of its steps, and
// what it has of the time of ops. Has the lifetime of one query.
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
  const Division& time_of(std::uint32_t op) { return times_[divided(op).at]; }
  const Division& executions_of(std::uint32_t op) { return executions_[divided(op).first]; }

 private:
  void count();
  void list_one(std::size_t place);
  // Ops with the same rule have the same parts: they are divided together. Indices of divided_ops.
  struct OpGroup {
    std::size_t at, first, last;  // the op, and all with its rule
  };
  OpGroup divided(std::uint32_t op);
  void divide(const OpGroup& group);
  void divide_step(const OpGroup& group, std::size_t place);

  const Series* series_ = nullptr;
  std::size_t from_ = 0, to_ = 0;
  bool counted_ = false;
  SetTally sets_;
  std::vector<std::vector<Count>> counts_;           // per rule
  std::vector<std::vector<std::uint32_t>> numbers_;  // per rule with listed parts
  std::vector<Division> times_;                      // per divided op
  std::vector<Division> executions_;                 // of the first op of each rule
  std::vector<bool> is_divided_;                     // the same
  // The parts of one step, and what the first one and each other one gets: of the execution of an
  // op, then of the time of each op of the rule.
  std::vector<std::uint32_t> parts_;
  std::vector<double> to_first_, to_other_;
  std::vector<double> sums_, unknown_;
};

}  // namespace tt
