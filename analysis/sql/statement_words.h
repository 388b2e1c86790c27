// Where in a statement its names and keywords stand, for errors that SQLite knows no
// place of. Texts and comments are passed over; upper and lower case are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tt::sql {

// The first byte of the word; none: it does not stand there so. Of several the first one,
// of a table's name the first that stands where tables do.
std::optional<std::uint32_t> place_of_name(std::string_view sql, std::string_view name);
std::optional<std::uint32_t> place_of_table(std::string_view sql, std::string_view name);
// What makes it another statement than a SELECT: ATTACH, INSERT...
std::optional<std::uint32_t> place_of_verb(std::string_view sql);

}  // namespace tt::sql
