// check_session(): reads every row of a session file and checks that rows are consistent.
#include <format>
#include <set>

#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_schema.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {

namespace {

constexpr std::size_t kMaxProblems = 100;

using Problems = std::vector<std::string>;
using ContinueCheck = std::function<bool()>;

// Uses a separate connection, without the setting that allows a reader to open truncated
// files. Stops early when `keep_going` returns false.
void check_database(const std::filesystem::path& path, ContinueCheck& keep_going,
                    Problems& problems) {
  auto db = Database::open(path, Database::Mode::ReadOnly);
  auto statement = db.and_then([](const Database& open) {
                       return check_schema(open);
                     }).and_then([&] { return db->prepare("PRAGMA integrity_check(20)"); });
  if (!statement) {
    problems.push_back(statement.error().message);
    return;
  }
  constexpr int kInstructions = 10'000;  // SQLite VM instructions between two checks
  sqlite3_progress_handler(
      db->get(), kInstructions,
      [](void* check) { return (*static_cast<ContinueCheck*>(check))() ? 0 : 1; }, &keep_going);
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

}  // namespace

std::expected<std::vector<std::string>, TraceError> check_session(
    const std::filesystem::path& path, const std::function<bool()>& continue_check,
    const std::function<void(StepId, const Step*)>& step_read) {
  bool active = true;
  ContinueCheck keep_going = [&] {
    return active = active && (!continue_check || continue_check());
  };
  auto reader = SessionReader::open(path);
  if (!reader) {
    if (reader.error().kind == TraceError::Kind::Damaged) return Problems{reader.error().message};
    return std::unexpected(reader.error());
  }
  Problems problems;
  const auto report = [&](const TraceError& error) {
    if (problems.size() < kMaxProblems) problems.push_back(error.message);
  };
  check_database(path, keep_going, problems);

  const auto info = reader->info();
  if (!info) report(info.error());
  if (const auto losses = reader->losses(); !losses) report(losses.error());

  const auto templates = reader->template_ids();
  if (!templates) report(templates.error());
  for (const TemplateId id : templates.value_or(std::vector<TemplateId>{})) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    if (const auto graph = reader->graph(id); !graph) report(graph.error());
  }

  const auto n_tokens = reader->token_count();
  if (!n_tokens) report(n_tokens.error());
  constexpr std::uint32_t kTokenBatch = 4096;
  // Stops at the first error, because the count of tokens in the file is untrusted.
  bool all = true;
  for (std::uint64_t first = 0; n_tokens && all && first < *n_tokens; first += kTokenBatch) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto tokens = reader->tokens(static_cast<std::uint32_t>(first), kTokenBatch);
    all = tokens.has_value();
    if (!all) report(tokens.error());
  }

  const auto n_steps = reader->step_count();
  if (!n_steps) report(n_steps.error());
  std::set<AllocationId> seen;
  const auto check = [&](const Step& step) {
    if (step.allocation.v != 0 && seen.insert(step.allocation).second)
      if (const auto allocation = reader->allocation(step.allocation); !allocation)
        report(allocation.error());
    if (n_tokens && std::uint64_t{step.first_token} + step.n_tokens > *n_tokens)
      report({TraceError::Kind::Damaged,
              std::format("step {} refers to tokens that do not exist", step.id.v)});
    if (step_read) step_read(step.id, &step);
  };
  // Reading ends at each step that cannot be read, and goes on after it. The count of steps in the
  // file is untrusted.
  const std::uint64_t with_rows = reader->step_rows().value_or(UINT32_MAX);
  for (std::uint64_t next = 0; n_steps && next < *n_steps;) {
    if (problems.size() >= kMaxProblems && (!step_read || next >= with_rows)) break;
    const auto read =
        reader->for_each_step(StepId{static_cast<std::uint32_t>(next)},
                              static_cast<std::uint32_t>(*n_steps - next), [&](const Step& step) {
                                if (!keep_going()) return false;
                                check(step);
                                next = std::uint64_t{step.id.v} + 1;
                                return true;
                              });
    if (!keep_going()) return std::unexpected(cancelled_error());
    if (read) break;
    const StepId id{static_cast<std::uint32_t>(next++)};
    if (const auto step = reader->step(id)) {
      check(*step);
    } else {
      report(step.error());
      if (step_read) step_read(id, nullptr);
    }
  }
  const auto check_step = [&](const char* what, StepId step) {
    // A writer may have added both after the steps were counted.
    const bool there = !n_steps || step.v < *n_steps || step.v < reader->step_count().value_or(0);
    if (!there)
      problems.push_back(
          std::format("there are {} of step {}, which does not exist", what, step.v));
    return problems.size() < kMaxProblems && keep_going();
  };
  const auto check_faults = [&](const StepFaults& of) {
    return check_step("page faults", of.step);
  };
  for (const FaultKind kind : {FaultKind::Major, FaultKind::Minor})
    if (const auto faults = reader->for_each_faults(StepId{0}, UINT32_MAX, check_faults, kind);
        !faults)
      report(faults.error());
  if (const auto residency = reader->for_each_residency(
          StepId{0}, UINT32_MAX,
          [&](const StepResidency& of) { return check_step("ranges in memory", of.step); });
      !residency)
    report(residency.error());
  if (const auto values = reader->for_each_values(
          StepId{0}, UINT32_MAX,
          [&](const StepValues& of) { return check_step("captured values", of.step); });
      !values)
    report(values.error());
  if (const auto splits = reader->for_each_splits(
          StepId{0}, UINT32_MAX,
          [&](const StepSplits& of) { return check_step("splits", of.step); });
      !splits)
    report(splits.error());
  if (!keep_going()) return std::unexpected(cancelled_error());
  return problems;
}

}  // namespace tt
