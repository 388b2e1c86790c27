// Compares exports with a walk over every access of the session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/exchange/export.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Totals that must be equal in every interface and format.
struct FiveTotals {
  std::uint64_t accesses = 0, read = 0, written = 0;  // bytes
  std::uint64_t from_file = 0;                        // bytes of accesses with a file offset
  std::uint64_t of_experts = 0;                       // accesses
  friend bool operator==(const FiveTotals&, const FiveTotals&) = default;
};
std::ostream& operator<<(std::ostream& out, const FiveTotals& totals);

// Computed with for_each_access(), without api/exchange.
FiveTotals walked_totals(const SessionReader& reader);

// The complete output of an export.
std::string export_text(const SessionReader& reader, const exchange::ExportOptions& options);

// The text in a gzip file.
std::string text_of_gzip(const std::string& bytes);

// The fields of each CSV line without quotes; null is "\0".
std::vector<std::vector<std::string>> csv_rows(const std::string& text);

// Reads back every format and compares its totals; for CSV also every row.
void expect_exports_agree(const SessionReader& reader);

}  // namespace tt::test
