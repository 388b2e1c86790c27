// check_session(): every row of a session file is read and held against the others.
#include <format>
#include <set>
#include <string_view>

#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {

namespace {

constexpr std::size_t kProblemsTold = 100;

using Problems = std::vector<std::string>;
using KeepGoing = std::function<bool()>;

// A connection of its own, without the leniency that lets a reader open truncated files.
// Ends early when nobody wants it any more.
void check_database(const std::filesystem::path& path, KeepGoing& keep_going, Problems& problems) {
  auto db = Database::open(path, Database::Mode::ReadOnly);
  auto statement = db ? db->prepare("PRAGMA integrity_check(20)")
                      : std::expected<Statement, TraceError>(std::unexpected(db.error()));
  if (!statement) {
    problems.push_back(statement.error().message);
    return;
  }
  constexpr int kInstructions = 10'000;  // of SQLite's, between two questions
  sqlite3_progress_handler(
      db->get(), kInstructions,
      [](void* wanted) { return (*static_cast<KeepGoing*>(wanted))() ? 0 : 1; }, &keep_going);
  while (true) {
    const auto row = statement->step();
    if (!row) {
      problems.push_back(row.error().message);
      return;
    }
    if (!*row) return;
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), 0));
    if (text && std::string(text) != "ok") problems.emplace_back(text);
  }
}

// A table of ours with other columns, computed ones say, is none of ours. What
// others added beside them does no harm: views and triggers are off.
void check_schema(const std::filesystem::path& path, Problems& problems) {
  auto db = Database::open(path, Database::Mode::ReadOnly);
  auto statement = db ? db->prepare(
                            "SELECT name, sql FROM sqlite_schema WHERE name LIKE 'tt\\_%' "
                            "ESCAPE '\\' ORDER BY name")
                      : std::expected<Statement, TraceError>(std::unexpected(db.error()));
  if (!statement) return;  // told by check_database()
  const std::string_view ours = kCreateTables;
  while (true) {
    const auto row = statement->step();
    if (!row || !*row) return;
    const auto column = [&](int i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), i));
      return std::string(text ? text : "");
    };
    if (!ours.contains(column(1) + ";\n"))
      problems.push_back(column(0) + " is not the table of a session");
  }
}

}  // namespace

std::expected<std::vector<std::string>, TraceError> check_session(
    const std::filesystem::path& path, const std::function<bool()>& asked) {
  bool wanted = true;
  KeepGoing keep_going = [&] { return wanted = wanted && (!asked || asked()); };
  auto reader = SessionReader::open(path);
  if (!reader) {
    if (reader.error().kind == TraceError::Kind::Damaged) return Problems{reader.error().message};
    return std::unexpected(reader.error());
  }
  Problems problems;
  const auto told = [&](const TraceError& error) {
    if (problems.size() < kProblemsTold) problems.push_back(error.message);
  };
  check_database(path, keep_going, problems);
  check_schema(path, problems);

  const auto info = reader->info();
  if (!info) told(info.error());
  if (const auto losses = reader->losses(); !losses) told(losses.error());

  const auto templates = reader->template_ids();
  if (!templates) told(templates.error());
  for (const TemplateId id : templates.value_or(std::vector<TemplateId>{})) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    if (const auto graph = reader->graph(id); !graph) told(graph.error());
  }

  const auto n_tokens = reader->token_count();
  if (!n_tokens) told(n_tokens.error());
  constexpr std::uint32_t kTokensAtOnce = 4096;
  // Up to the first that is wrong: where many are missing, no file has to have them.
  bool all = true;
  for (std::uint64_t first = 0; n_tokens && all && first < *n_tokens; first += kTokensAtOnce) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto tokens = reader->tokens(static_cast<std::uint32_t>(first), kTokensAtOnce);
    all = tokens.has_value();
    if (!all) told(tokens.error());
  }

  const auto n_steps = reader->step_count();
  if (!n_steps) told(n_steps.error());
  std::set<AllocationId> seen;
  for (std::uint32_t i = 0; n_steps && i < *n_steps && problems.size() < kProblemsTold; ++i) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto step = reader->step(StepId{i});
    if (!step) {
      told(step.error());
      continue;
    }
    if (step->allocation.v != 0 && seen.insert(step->allocation).second)
      if (const auto allocation = reader->allocation(step->allocation); !allocation)
        told(allocation.error());
    if (n_tokens && std::uint64_t{step->first_token} + step->n_tokens > *n_tokens)
      problems.push_back(std::format("step {} names tokens that are not there", i));
  }
  const auto faults = reader->for_each_faults(StepId{0}, UINT32_MAX, [&](const StepFaults& of) {
    // A writer may have added both since they were counted.
    const bool there =
        !n_steps || of.step.v < *n_steps || of.step.v < reader->step_count().value_or(0);
    if (!there)
      problems.push_back(
          std::format("there are page faults of step {}, which is not there", of.step.v));
    return problems.size() < kProblemsTold && keep_going();
  });
  if (!faults) told(faults.error());
  if (!keep_going()) return std::unexpected(cancelled_error());
  return problems;
}

}  // namespace tt
