// Every row of every view, found the naive way, as naive_tables.h does it for the tables:
// every access, op and step walked, and added up by hand.
#pragma once

#include <optional>
#include <span>

#include "tests/analysis/sql/naive_tables.h"

namespace tt::test {

struct NaiveView {
  const char* name;
  // In any order. None: a sum that SQLite refuses, beyond 2^63 (a file may say anything).
  std::optional<Lines> (*rows)(const Everything& all);
};
std::span<const NaiveView> naive_views();

}  // namespace tt::test
