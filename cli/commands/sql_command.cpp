// tt sql FILE... STATEMENT: runs one SELECT on a session, or on several at once, and prints a
// table, JSON or CSV.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <format>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <variant>
#include <vector>

#include "analysis/sql/error_offset.h"
#include "analysis/sql/query.h"
#include "analysis/sql/trace_tables.h"
#include "api/json/query_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct SqlOptions {
  std::vector<std::string> arguments;  // files, then the statement
  bool json = false, csv = false;
};

// Prints the error and the line of the statement with a mark at the error position.
int fail(const sql::QueryError& error, const std::string& statement, Progress& progress) {
  const int code = progress.failed(error.message);
  if (error.offset) {
    const std::size_t before = statement.rfind('\n', *error.offset == 0 ? 0 : *error.offset - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = std::min(statement.find('\n', begin), statement.size());
    print_message("  {}\n  {}^", statement.substr(begin, end - begin),
                  std::string(*error.offset >= begin ? *error.offset - begin : 0, ' '));
  }
  return code;
}

std::string text_of_value(const sql::QueryValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using Value = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return "";
        } else if constexpr (std::is_same_v<Value, std::span<const std::byte>>) {
          return std::format("({} bytes)", v.size());
        } else {
          return std::format("{}", v);
        }
      },
      value);
}

bool is_number(const sql::QueryValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

// Prints blocks of 1,000 rows, each with a header, so that long results are not kept in
// memory.
class TablePrinter {
 public:
  explicit TablePrinter(std::vector<std::string> names) : names_(std::move(names)) {}
  void row(const std::vector<sql::QueryValue>& values) {
    if (in_block_ == 0) begin_block(values);
    std::vector<std::string> cells;
    for (const sql::QueryValue& value : values) cells.push_back(text_of_value(value));
    table_->add(std::move(cells));
    if (++in_block_ == kBlockRows) end_block();
  }
  bool any() const { return table_.has_value(); }
  void end() {
    if (!table_) begin_block({});
    if (in_block_ != 0 || !printed_) end_block();
  }

 private:
  static constexpr std::size_t kBlockRows = 1000;
  void begin_block(const std::vector<sql::QueryValue>& values) {
    std::vector<Column> columns;
    for (std::size_t i = 0; i < names_.size(); ++i)
      columns.push_back(
          {names_[i], i < values.size() && is_number(values[i]) ? Align::Right : Align::Left});
    table_.emplace(std::move(columns));
  }
  void end_block() {
    table_->print();
    printed_ = true;
    in_block_ = 0;
  }
  std::vector<std::string> names_;
  std::optional<TextTable> table_;
  std::size_t in_block_ = 0;
  bool printed_ = false;
};

int print_rows(sql::Query& query, const SqlOptions& options, const std::string& statement,
               Progress& progress) {
  const bool table = !options.json && !options.csv;
  TablePrinter printer(query.columns());
  QueryText writer(options.csv ? QueryFormat::Csv : QueryFormat::JsonObject, query.columns());
  std::string text;
  if (!table) writer.begin(text);
  const bool into_terminal = isatty(STDOUT_FILENO) != 0;
  while (true) {
    const auto row = query.next();
    if (into_terminal) progress.end();
    if (!row || *row == nullptr) {
      if (table) {
        if (row || printer.any()) printer.end();
      } else {
        writer.end(false, row ? nullptr : &row.error(), text);
      }
      put(text);
      if (!row) return fail(row.error(), statement, progress);
      progress.warn_of_damage(query.readable_steps());
      return progress.exit_code();
    }
    if (table) {
      printer.row(**row);
    } else {
      (void)writer.row(**row, text);  // a text has no error of its own
    }
    if (text.size() > (64u << 10)) put(std::exchange(text, {}));
    if (!output_ok()) return 1;  // main() reports the error
  }
}

// Whether the statement names a table or view that is empty without graphs and accesses.
bool reads_accesses(const std::string& statement) {
  constexpr std::array<std::string_view, 7> kOthers = {
      "metadata", "model", "session", "step", "token", "token_latency", "phase_totals"};
  for (const auto names : {sql::trace_table_names(), sql::trace_view_names()})
    for (const std::string_view name : names)
      if (!std::ranges::contains(kOthers, name) && sql::offset_of_name(statement, name))
        return true;
  return false;
}

int run(const SqlOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  const std::string last = arguments.back();
  arguments.pop_back();
  std::string statement = last;
  if (statement == "-") statement.assign(std::istreambuf_iterator<char>(std::cin), {});
  Progress progress("sql", progress_visibility(options.json));
  std::error_code none;
  if (arguments.empty()) {
    progress.failed(
        std::format("a session file and a statement are required: tt sql {} 'SELECT ...'",
                    std::filesystem::exists(last, none) ? last : "s.ttrace"));
    return 2;
  }
  if (std::filesystem::exists(last, none)) {
    const std::string& file = arguments.front();
    return progress.failed(
        std::filesystem::exists(file, none)
            ? std::format("{0} is a file, not a statement. Run its text: tt sql {1} - < {0}", last,
                          file)
            : std::format("the session file comes first: tt sql {} 'SELECT ...'", last));
  }
  const auto files = session_files(arguments);
  if (!files) return progress.failed(files.error());
  const auto answer = [&](auto query) {
    return query ? print_rows(*query, options, statement, progress)
                 : fail(query.error(), statement, progress);
  };
  if (files->set) {
    const auto open = [&](std::size_t i) { return open_session(files->paths[i]); };
    return answer(sql::Query::prepare({.names = files->names, .open = open}, statement, {},
                                      progress.start("running the query")));
  }
  auto reader = open_session(files->paths.front());
  if (!reader) return progress.failed(reader.error());
  if (reads_accesses(statement)) progress.note_missing_accesses(*reader);
  return answer(
      sql::Query::prepare(*std::move(reader), statement, {}, progress.start("running the query")));
}

}  // namespace

RunVerb add_sql_command(CLI::App& command) {
  auto options = std::make_shared<SqlOptions>();
  command
      .add_option("argument", options->arguments,
                  "Session files (.ttrace), then a SELECT statement; -: read the statement from "
                  "stdin. Several files, a folder, or a pattern in quotes: all of them together")
      ->required()
      ->expected(1, -1)
      ->type_name("FILE... SQL");
  CLI::Option* json = command.add_flag("--json", options->json, "Print columns and rows as JSON");
  command.add_flag("--csv", options->csv, "Print CSV: a header line, then the rows")
      ->excludes(json);
  command.footer(
      "Tables: access, edge, expert, fault, metadata, model, op, residency, session, step, "
      "template, tensor, token, value.\n"
      "With several sessions, each table has the column session first.\n"
      "Example: tt sql s.ttrace \"SELECT layer_id, sum(size_bytes) FROM access GROUP BY "
      "layer_id\"\n"
      "tt sql 'runs/*.ttrace' \"SELECT session, median(tokens_per_s) FROM token_latency WHERE "
      "phase = 'generate' GROUP BY session\"");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
