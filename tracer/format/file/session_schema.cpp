#include "tracer/format/file/session_schema.h"

#include <algorithm>
#include <cstddef>
#include <format>
#include <string>
#include <vector>

#include "tracer/format/file/session_tables.h"

namespace tt {

namespace {

constexpr std::string_view kAddedInVersion2 = "tt_fault", kAddedInVersion4 = "tt_minor_fault",
                           kAddedInVersion5 = "tt_residency", kAddedInVersion6 = "tt_value",
                           kAddedInVersion8 = "tt_split";
// Version 3 added the conditions of a step.
constexpr std::string_view kStepTableBeforeVersion3 = R"sql(CREATE TABLE tt_step(
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, timing TEXT NOT NULL, template INTEGER NOT NULL,
  allocation INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  first_op_ns INTEGER NOT NULL, first_token INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
  threads INTEGER NOT NULL, n_ops INTEGER NOT NULL, dropped INTEGER NOT NULL,
  aborted INTEGER NOT NULL, packed BLOB NOT NULL, crc INTEGER NOT NULL))sql";

// Version 4 added what the time of a step was spent on.
constexpr std::string_view kStepTableOfVersion3 = R"sql(CREATE TABLE tt_step(
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, timing TEXT NOT NULL, template INTEGER NOT NULL,
  allocation INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  first_op_ns INTEGER NOT NULL, first_token INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
  threads INTEGER NOT NULL, n_ops INTEGER NOT NULL, dropped INTEGER NOT NULL,
  aborted INTEGER NOT NULL, interval_ns INTEGER, cpu_ns INTEGER, cpu_wait_ns INTEGER,
  voluntary_switches INTEGER, involuntary_switches INTEGER, minor_faults INTEGER,
  major_faults INTEGER, disk_read_bytes INTEGER, throttled_ns INTEGER, pressure_cpu_ns INTEGER,
  pressure_io_ns INTEGER, pressure_memory_ns INTEGER, packed BLOB NOT NULL, crc INTEGER NOT NULL))sql";

// Version 5 added frequency, temperature and memory limit.
constexpr std::string_view kStepTableOfVersion4 = R"sql(CREATE TABLE tt_step(
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, timing TEXT NOT NULL, template INTEGER NOT NULL,
  allocation INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  first_op_ns INTEGER NOT NULL, first_token INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
  threads INTEGER NOT NULL, n_ops INTEGER NOT NULL, dropped INTEGER NOT NULL,
  aborted INTEGER NOT NULL, interval_ns INTEGER, cpu_ns INTEGER, cpu_wait_ns INTEGER,
  voluntary_switches INTEGER, involuntary_switches INTEGER, minor_faults INTEGER,
  major_faults INTEGER, disk_read_bytes INTEGER, throttled_ns INTEGER, pressure_cpu_ns INTEGER,
  pressure_io_ns INTEGER, pressure_memory_ns INTEGER, queue_ns INTEGER, sample_ns INTEGER,
  detokenize_ns INTEGER, build_ns INTEGER, evaluate_ns INTEGER, graphs_built INTEGER,
  packed BLOB NOT NULL, crc INTEGER NOT NULL))sql";

// Version 7 added the sequence of a token, and what became of a draft.
constexpr std::string_view kTokenTableBeforeVersion7 = R"sql(CREATE TABLE tt_token(
  idx INTEGER PRIMARY KEY, id INTEGER NOT NULL, position INTEGER NOT NULL,
  generated INTEGER NOT NULL, reused INTEGER NOT NULL, text BLOB NOT NULL, crc INTEGER NOT NULL))sql";

// "tt_step" of "CREATE TABLE tt_step(...".
std::string_view table_name(std::string_view create) {
  constexpr std::string_view kBefore = "CREATE TABLE ";
  return create.substr(kBefore.size(), create.find('(') - kBefore.size());
}

bool is_before(std::string_view version, std::uint32_t other) {
  return version < std::to_string(other);  // of one digit
}

// Of a version before 5.
std::string_view step_table_of(std::string_view version) {
  if (version == "1" || version == "2") return kStepTableBeforeVersion3;
  return version == "3" ? kStepTableOfVersion3 : kStepTableOfVersion4;
}

// The statements that create the tables of this version, as SQLite stores them.
std::vector<std::string_view> tables_of(std::string_view version) {
  constexpr std::string_view kEnd = ";\n";
  std::string_view rest = kCreateTables;
  rest.remove_prefix(1);  // the first line is empty
  std::vector<std::string_view> tables;
  for (std::size_t end = 0; (end = rest.find(kEnd)) != rest.npos; rest.remove_prefix(end + 2)) {
    const std::string_view create = rest.substr(0, end);
    const std::string_view name = table_name(create);
    if (version == "1" && name == kAddedInVersion2) continue;
    if (is_before(version, 4) && name == kAddedInVersion4) continue;
    if (is_before(version, 5) && name == kAddedInVersion5) continue;
    if (is_before(version, 6) && name == kAddedInVersion6) continue;
    if (is_before(version, 8) && name == kAddedInVersion8) continue;
    const bool is_old_step = name == "tt_step" && is_before(version, 5);
    const bool is_old_token = name == "tt_token" && is_before(version, 7);
    tables.push_back(is_old_step    ? step_table_of(version)
                     : is_old_token ? kTokenTableBeforeVersion7
                                    : create);
  }
  return tables;
}

// Applies to reading the schema only.
class SchemaLimits {
 public:
  explicit SchemaLimits(sqlite3* db)
      : db_(db), length_(sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMaxRowBytes)) {
    sqlite3_progress_handler(db_, kMaxInstructions, [](void*) { return 1; }, nullptr);
  }
  ~SchemaLimits() {
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, length_);
  }
  SchemaLimits(const SchemaLimits&) = delete;
  SchemaLimits& operator=(const SchemaLimits&) = delete;

 private:
  // SQLite parses each row with about 10 instructions; a session has at most 13 rows.
  static constexpr int kMaxRowBytes = 8192, kMaxInstructions = 1000;
  sqlite3* db_;
  int length_;
};

std::string text_at(const Statement& row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row.get(), column));
  return text != nullptr ? text : "";
}

}  // namespace

Status check_schema(const Database& db) {
  const SchemaLimits limits(db.get());
  const auto other = [&](const std::string& what) {
    return std::unexpected(
        damaged(db, std::format("it does not have the tables of a session ({})", what)));
  };
  // An error of these limits, or damage of the schema's page.
  const auto failed = [&](TraceError error) -> Status {
    const int code = sqlite3_errcode(db.get()) & 0xff;
    if (code == SQLITE_INTERRUPT || code == SQLITE_TOOBIG) return other("the schema is too large");
    return std::unexpected(std::move(error));
  };
  const auto version = db.query_value("PRAGMA user_version");
  if (!version) return failed(version.error());
  std::vector<std::string_view> missing = tables_of(*version);
  auto row = db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema");
  if (!row) return failed(row.error());
  while (true) {
    const auto more = row->step();
    if (!more) return failed(more.error());
    if (!*more) break;
    const std::string type = text_at(*row, 0), name = text_at(*row, 1);
    const auto ours = std::ranges::find(missing, text_at(*row, 3));
    if (type != "table" || ours == missing.end() || table_name(*ours) != name ||
        text_at(*row, 2) != name)
      return other(std::format("{} \"{}\"", type, name));
    missing.erase(ours);
  }
  if (!missing.empty()) return other(std::format("no {}", table_name(missing.front())));
  return {};
}

}  // namespace tt
