// Reference implementation of the SQL views: sums over all accesses, ops and steps.
// naive_tables.h is the same for the tables.
#pragma once

#include <optional>
#include <span>

#include "tests/analysis/sql/naive_tables.h"

namespace tt::test {

struct NaiveView {
  const char* name;
  // In any order. nullopt: a sum exceeds 2^63, which SQLite reports as an error (a file may
  // contain any numbers).
  std::optional<Lines> (*rows)(const SessionContents& all);
};
std::span<const NaiveView> naive_views();

}  // namespace tt::test
