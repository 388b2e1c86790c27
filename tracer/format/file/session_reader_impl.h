// State of a SessionReader: connection, prepared statements, caches. Private to
// session_reader.cpp and session_damage.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {

// Tables with at most one row per step.
enum class StepList : std::uint8_t { MajorFaults, MinorFaults, Residency, Values, Splits };
struct StepListTable {
  const char* name;
  std::uint32_t since;  // version of the format
};
inline constexpr std::array kStepLists = {
    StepListTable{"tt_fault", 2}, StepListTable{"tt_minor_fault", 4},
    StepListTable{"tt_residency", 5}, StepListTable{"tt_value", 6}, StepListTable{"tt_split", 8}};

struct SessionReader::Impl {
  Impl(std::filesystem::path file, Database database, std::uint32_t format_version,
       std::string step_query)
      : path(std::move(file)),
        db(std::move(database)),
        version(format_version),
        select_steps(std::move(step_query)) {}

  const std::filesystem::path path;
  std::shared_ptr<const void> lease;  // released after the connection is closed
  Database db;
  const std::uint32_t version;     // of the format
  const std::string select_steps;  // without WHERE; the columns depend on the version
  // Prepared on first use, so that a damaged table does not prevent reading the others.
  Statement get_template, get_allocation, get_step, get_steps, get_tokens, get_last_residency;
  std::array<Statement, kStepLists.size()> get_lists;
  // Most recently used last.
  std::vector<std::pair<TemplateId, std::shared_ptr<const GraphTemplate>>> templates;
  // The readable part of a damaged session, set by truncate_at_damage().
  struct ReadablePart {
    std::uint32_t steps = 0, tokens = 0;
    std::set<TemplateId> templates;
    std::array<bool, kStepLists.size()> unreadable{};  // no row at all can be read
  };
  std::optional<ReadablePart> readable;

  std::expected<void, TraceError> prepare(Statement& statement, const std::string& sql) {
    if (statement) return {};
    auto prepared = db.prepare(sql.c_str());
    if (!prepared) return std::unexpected(prepared.error());
    statement = std::move(*prepared);
    return {};
  }

  TraceError damage(const std::string& what) const { return damaged(db, what); }
  TraceError absent(const std::string& what) const {
    return {TraceError::Kind::NotFound, "the session has no " + what};
  }

  std::expected<std::uint32_t, TraceError> count(const char* table, const char* id,
                                                 const char* total) const;
  std::expected<std::uint32_t, TraceError> rows(const char* table, const char* id) const;
  std::expected<std::shared_ptr<const GraphTemplate>, TraceError> read_template(TemplateId id);
  std::expected<void, TraceError> read_row(const Statement& statement, StepId id,
                                           StepRow& row) const;
  std::expected<Step, TraceError> read_step(StepId id);
  // Appends up to `count` tokens from `first` on. Stops with an error at the first token that
  // is missing or damaged; the tokens before it are kept.
  std::expected<void, TraceError> read_tokens(std::uint32_t first, std::uint32_t count,
                                              std::vector<Token>& out);
  // Calls `row` for each row of these steps, with the columns after the step. Stops when it returns
  // false.
  std::expected<void, TraceError> for_each_list(
      StepList list, const char* columns, StepId first, std::uint32_t count,
      const std::function<std::expected<bool, TraceError>(RowReader&, StepId)>& row);
};

}  // namespace tt
