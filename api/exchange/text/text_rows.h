// Formats rows as CSV or JSON. Cells that are constant per template are formatted once per
// template.
#pragma once

#include <string>
#include <vector>

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/export_columns.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

enum class TextStyle : std::uint8_t { Csv, Json };

// One thread. Csv: a row is "a,b,c\n"; null is empty, texts are quoted if needed (RFC 4180).
// Json: a row is the fields "name":value,... of an object without braces; nulls are omitted.
class TextRows {
 public:
  explicit TextRows(TextStyle style, bool per_token = false)
      : style_(style), per_token_(per_token) {}
  // Sets the data shared by the rows of a step; call before its rows.
  void begin_step(const RowScope& scope);
  void append(std::string& to, const ExportRow& row);

 private:
  std::string cell_text(const AccessColumn& column, const Cell& cell) const;

  TextStyle style_;
  bool per_token_;
  RowScope scope_{};
  const RowTemplate* graph_ = nullptr;
  std::shared_ptr<const DerivedGraph> derived_;         // held so that its address is not reused
  std::vector<std::string> step_cells_;                 // per column
  std::vector<std::vector<std::string>> access_cells_;  // per column, per access
};

// Appends a cell as a CSV field; null is empty.
void append_csv(std::string& to, const Cell& cell);

// The CSV header line.
std::string csv_header();

WriteResult export_csv(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going);
// One document: {"session": {...}, "accesses": [{...}, ...]}.
WriteResult export_json(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going);

}  // namespace tt::exchange
