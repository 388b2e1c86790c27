// Authorization rules for untrusted statements: SELECT over the session's tables and views,
// with functions that have no side effects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tt::sql {

inline constexpr const char* kOnlySelect = "Only SELECT is allowed: a session is read-only.";

struct Rejection {
  enum class Of { Statement, Table, Function } of = Of::Statement;
  std::string name;     // of the table or function
  std::string message;  // shown to the user
};
// The byte offset of the rejected table, function or verb in `sql`, if it can be determined.
std::optional<std::uint32_t> offset_of(const Rejection& rejection, std::string_view sql);

// Arguments as for the callback of sqlite3_set_authorizer(). None: allowed.
std::optional<Rejection> check_authorization(int action, const char* first, const char* second);

}  // namespace tt::sql
