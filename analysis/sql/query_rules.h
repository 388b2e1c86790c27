// What a statement of someone who is not trusted may do: SELECT over the session's
// tables and views with functions that only compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tt::sql {

inline constexpr const char* kOnlySelect = "Only SELECT: a session is read, never written.";

struct Refusal {
  enum class Of { Statement, Table, Function } of = Of::Statement;
  std::string name;     // of the table or function
  std::string message;  // for people
};
// The first byte of `sql` that is about it, as far as that can be seen.
std::optional<std::uint32_t> place_of(const Refusal& refusal, std::string_view sql);

// As sqlite3_set_authorizer() asks. None: it may.
std::optional<Refusal> why_refused(int action, const char* first, const char* second);

}  // namespace tt::sql
