// What importers have in common: rows and steps from the JSON of exports.
#pragma once

#include <filesystem>
#include <string>

#include "api/exchange/import/session_builder.h"
#include "api/json/json.h"

namespace tt::exchange {

// A row from its columns, as access_columns() names them; what is absent or of
// another type is as if it were null.
ImportedRow row_from(const Json& columns);

// The fields of step_begin, and of step_end; both may be in one object.
void begin_step_from(const Json& json, Step& step);
void end_step_from(const Json& json, Step& step);
std::vector<Token> tokens_from(const Json& json);  // of the list under "tokens"

TraceError damaged(const std::filesystem::path& file, std::uint64_t line, const std::string& what);

}  // namespace tt::exchange
