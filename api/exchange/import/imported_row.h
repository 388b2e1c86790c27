// Shared by the importers: parses rows and steps from exported JSON.
#pragma once

#include <filesystem>
#include <string>

#include "api/exchange/import/session_builder.h"
#include "api/json/json.h"

namespace tt::exchange {

// Parses a row from its columns, named as in access_columns(). Missing columns and wrong types
// are treated as null.
ImportedRow row_from(const Json& columns);

// Parse the fields of step_begin and of step_end. Both may be in one object.
void begin_step_from(const Json& json, Step& step);
void end_step_from(const Json& json, Step& step);
std::vector<Token> tokens_from(const Json& json);  // the list in "tokens"

TraceError damaged(const std::filesystem::path& file, std::uint64_t line, const std::string& what);

}  // namespace tt::exchange
