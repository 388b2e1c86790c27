// Finds names and keywords in a statement, for errors that SQLite reports without an offset.
// String literals and comments are skipped; the search is case-insensitive.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tt::sql {

// The byte offset of the first occurrence; none: not found. For a table name, occurrences
// after FROM or JOIN are preferred.
std::optional<std::uint32_t> offset_of_name(std::string_view sql, std::string_view name);
std::optional<std::uint32_t> offset_of_table(std::string_view sql, std::string_view name);
// The keyword that makes it a statement other than SELECT: ATTACH, INSERT...
std::optional<std::uint32_t> offset_of_verb(std::string_view sql);

}  // namespace tt::sql
