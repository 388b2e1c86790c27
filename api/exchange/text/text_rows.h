// Rows as text: CSV and JSON. Cells that are the same in every step are written
// out once per template.
#pragma once

#include <string>
#include <vector>

#include "api/exchange/rows/access_columns.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

enum class TextStyle : std::uint8_t { Csv, Json };

// One thread. A row of Csv: "a,b,c\n", null is empty, texts are quoted where they
// have to be (RFC 4180). Of Json: the fields "name":value,... of an object, without
// its braces; nulls are left out.
class TextRows {
 public:
  explicit TextRows(TextStyle style) : style_(style) {}
  // What all rows of the step share; before its rows.
  void begin_step(const RowScope& scope);
  void append(std::string& to, const ExportRow& row);

 private:
  std::string piece(const AccessColumn& column, const Cell& cell) const;

  TextStyle style_;
  RowScope scope_{};
  const RowTemplate* graph_ = nullptr;
  std::shared_ptr<const DerivedGraph> derived_;          // keeps the address of graph_ unique
  std::vector<std::string> step_pieces_;                 // per column
  std::vector<std::vector<std::string>> access_pieces_;  // per column, per access
};

// A cell as a field of a CSV; null is nothing.
void append_csv(std::string& to, const Cell& cell);

// The names as the first line of a CSV.
std::string csv_header();

Written export_csv(SessionRows& rows, const ByteSink& sink, const KeepGoing& keep_going);
// One document: {"session": {...}, "accesses": [{...}, ...]}.
Written export_json(SessionRows& rows, const ByteSink& sink, const KeepGoing& keep_going);

}  // namespace tt::exchange
