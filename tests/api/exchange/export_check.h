// Exports against a second way: every access of the session, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/exchange/export.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// What must come out the same whichever way it is asked for.
struct FiveTotals {
  std::uint64_t accesses = 0, read = 0, written = 0;  // bytes
  std::uint64_t from_file = 0;                        // bytes of accesses with a file offset
  std::uint64_t of_experts = 0;                       // accesses
  friend bool operator==(const FiveTotals&, const FiveTotals&) = default;
};
std::ostream& operator<<(std::ostream& out, const FiveTotals& totals);

// By for_each_access(), without anything of api/exchange.
FiveTotals walked_totals(const SessionReader& reader);

// The whole of an export.
std::string exported(const SessionReader& reader, const exchange::ExportOptions& options);

// Fields of the lines of a CSV, quotes taken off; a null is "\0".
std::vector<std::vector<std::string>> csv_rows(const std::string& text);

// Every format, read back here, has these totals; the CSV every row, too.
void expect_exports_agree(const SessionReader& reader);

}  // namespace tt::test
