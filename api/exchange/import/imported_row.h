// Shared by the importers: parses rows and steps from exported JSON.
#pragma once

#include <filesystem>
#include <string>

#include "analysis/common/rebuilt.h"
#include "api/exchange/import/session_builder.h"
#include "api/json/bounded_json.h"

namespace tt::exchange {

// Of one line of a log, one step of a run folder, or its other metadata. The list of all tokens is
// one line, with 7 values per token; the facts are one object.
inline constexpr JsonLimits kImportLimits{
    .depth = 64, .values = 4'000'000, .fields = kMaxSessionFacts + 64};

// Parses a row from its columns, named as in access_columns(). Missing columns and wrong types
// are treated as null.
ImportedRow row_from(const Json& columns);

// Parse the fields of step_begin and of step_end. Both may be in one object.
void begin_step_from(const Json& json, Step& step);
void end_step_from(const Json& json, Step& step);
std::vector<Token> tokens_from(const Json& json);  // the list in "tokens"

// Adds the fact `trace.rebuilt_steps` if there are any: steps whose graphs are not recorded ones.
void add_rebuilt_fact(SessionInfo& info, std::uint64_t steps);

TraceError damaged(const std::filesystem::path& file, std::uint64_t line, const std::string& what);

}  // namespace tt::exchange
