#include "api/exchange/text/text_rows.h"

#include <charconv>
#include <cmath>
#include <format>

#include "api/exchange/rows/session_metadata.h"
#include "api/json/json.h"
#include "api/text/csv_text.h"

namespace tt::exchange {
namespace {

template <class Number>
void append_number(std::string& to, Number value) {
  char digits[32];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_value(std::string& to, TextStyle style, const Cell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return append_number(to, *number);
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) return append_number(to, *number);
  if (const auto* number = std::get_if<float>(&cell)) {
    // JSON has no infinity.
    if (style == TextStyle::Json && !std::isfinite(*number)) {
      to += "null";
      return;
    }
    return append_number(to, *number);
  }
  if (const auto* flag = std::get_if<bool>(&cell)) {
    to += *flag ? "true" : "false";
    return;
  }
  if (const auto* text = std::get_if<std::string_view>(&cell))
    to += style == TextStyle::Csv ? csv_text(*text) : text_of(Json(std::string(*text)));
}

void append_cell(std::string& to, TextStyle style, const AccessColumn& column, const Cell& cell) {
  if (style == TextStyle::Csv) {
    append_value(to, style, cell);
    to += ',';
    return;
  }
  if (std::holds_alternative<std::monostate>(cell)) return;
  to += '"';
  to += column.name;
  to += "\":";
  append_value(to, style, cell);
  to += ',';
}

}  // namespace

std::string TextRows::cell_text(const AccessColumn& column, const Cell& cell) const {
  std::string text;
  append_cell(text, style_, column, cell);
  return text;
}

void TextRows::begin_step(const RowScope& scope) {
  const auto columns = access_columns(per_token_);
  scope_ = scope;
  if (scope.graph == nullptr) return;
  if (scope.graph != graph_ || scope.graph->derived != derived_) {
    graph_ = scope.graph;
    derived_ = graph_->derived;
    access_cells_.assign(columns.size(), {});
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].varies != Varies::PerAccess) continue;
      for (std::uint32_t i = 0; i < derived_->accesses.size(); ++i) {
        ExportRow row;
        row.access.access = i;
        access_cells_[c].push_back(cell_text(columns[c], columns[c].cell(scope, row)));
      }
    }
  }
  step_cells_.assign(columns.size(), {});
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].varies == Varies::PerStep)
      step_cells_[c] = cell_text(columns[c], columns[c].cell(scope, {}));
  }
}

void TextRows::append(std::string& to, const ExportRow& row) {
  const auto columns = access_columns(per_token_);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    switch (columns[c].varies) {
      case Varies::PerStep:
        to += step_cells_[c];
        break;
      case Varies::PerAccess:
        to += access_cells_[c][row.access.access];
        break;
      case Varies::PerRow:
      case Varies::PerTime:
        append_cell(to, style_, columns[c], columns[c].cell(scope_, row));
        break;
    }
  }
  if (style_ == TextStyle::Csv) {
    to.back() = '\n';
  } else {
    to.pop_back();  // the last comma; a row is never empty
  }
}

void append_csv(std::string& to, const Cell& cell) { append_value(to, TextStyle::Csv, cell); }

std::string csv_header() {
  std::string line;
  for (const AccessColumn& column : access_columns()) {
    line += column.name;
    line += ',';
  }
  line.back() = '\n';
  return line;
}

WriteResult export_csv(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going) {
  BufferedSink out(sink);
  TextRows text(TextStyle::Csv, rows.per_token());
  out.text() = csv_header();
  const WriteResult walked = rows.for_each_step(
      [&](const StepRows& step) -> WriteResult {
        text.begin_step(step.scope);
        for (const ExportRow& row : step.rows) {
          text.append(out.text(), row);
          if (const WriteResult written = out.flush_if_full(); !written) return written;
        }
        return {};
      },
      keep_going);
  if (!walked) return walked;
  return out.flush();
}

WriteResult export_json(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going) {
  BufferedSink out(sink);
  TextRows text(TextStyle::Json, rows.per_token());
  const auto facts = session_metadata(rows);
  if (!facts) return std::unexpected(facts.error());
  out.text() = std::format("{{\"session\":{},\n\"accesses\":[", text_of(*facts));
  bool first = true;
  const WriteResult walked = rows.for_each_step(
      [&](const StepRows& step) -> WriteResult {
        text.begin_step(step.scope);
        for (const ExportRow& row : step.rows) {
          out.text() += first ? "\n{" : ",\n{";
          first = false;
          text.append(out.text(), row);
          out.text() += '}';
          if (const WriteResult written = out.flush_if_full(); !written) return written;
        }
        return {};
      },
      keep_going);
  if (!walked) return walked;
  out.text() += "\n]}\n";
  return out.flush();
}

}  // namespace tt::exchange
