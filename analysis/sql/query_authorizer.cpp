#include "analysis/sql/query_authorizer.h"

#include <sqlite3.h>

#include <algorithm>
#include <string_view>

#include "analysis/sql/error_offset.h"
#include "analysis/sql/trace_tables.h"

namespace tt::sql {

namespace {

// Functions without side effects. Functions added by later SQLite versions are not allowed, and
// neither are json_pretty(), whose result can be a million times larger than its arguments (SQLite
// builds it before it applies the length limit), and json_patch(), which looks for each name of one
// object among all names of the other: one call, which cannot be interrupted, takes seconds.
constexpr std::string_view kFunctions =
    " abs char coalesce concat concat_ws format glob hex if ifnull iif instr length "
    " like likelihood likely lower ltrim max min nullif octet_length printf quote "
    " random randomblob replace round rtrim sign soundex sqlite_version substr "
    " substring trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob "
    " subtype "
    " date time datetime julianday unixepoch strftime timediff current_date "
    " current_time current_timestamp "
    " avg count group_concat string_agg sum total median percentile percentile_cont "
    " percentile_disc row_number rank dense_rank percent_rank cume_dist ntile lag lead "
    " first_value last_value nth_value "
    " acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor "
    " ln log log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc "
    " json json_array json_array_insert json_array_length json_error_position "
    " json_extract json_group_array json_group_object json_insert json_object "
    " json_quote json_remove json_replace json_set json_type "
    " json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array "
    " jsonb_group_object jsonb_insert jsonb_object jsonb_remove "
    " jsonb_replace jsonb_set -> ->> ";

bool is_session_table(std::string_view name) {
  return std::ranges::contains(trace_table_names(), name) ||
         std::ranges::contains(trace_view_names(), name);
}

std::string lowered(const char* text) {
  std::string out(text != nullptr ? text : "");
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return out;
}

}  // namespace

std::optional<std::uint32_t> offset_of(const Rejection& rejection, std::string_view sql) {
  switch (rejection.of) {
    case Rejection::Of::Table: {
      // SQLite's schema tables have two names.
      const auto place = offset_of_table(sql, rejection.name);
      if (place || !rejection.name.ends_with("_master")) return place;
      return offset_of_table(
          sql, rejection.name == "sqlite_master" ? "sqlite_schema" : "sqlite_temp_schema");
    }
    case Rejection::Of::Function:
      return offset_of_name(sql, rejection.name);
    case Rejection::Of::Statement:
      break;
  }
  return offset_of_verb(sql);
}

std::optional<Rejection> check_authorization(int action, const char* first, const char* second) {
  using enum Rejection::Of;
  const std::string name = lowered(first);
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return std::nullopt;
    case SQLITE_READ:
      if (is_session_table(name)) return std::nullopt;
      // For count(*), SQLite calls the authorizer with an empty column name, also for the name
      // of a WITH clause or subquery. Their columns are never checked, those of tables always.
      if (second != nullptr && *second == '\0' && !name.starts_with("sqlite_") &&
          !name.starts_with("pragma_"))
        return std::nullopt;
      return Rejection{Table, name,
                       "Table \"" + name +
                           "\" is not allowed. A query can use the tables listed in docs/sql.md."};
    case SQLITE_FUNCTION: {
      const std::string function = lowered(second);
      if (kFunctions.contains(" " + function + " ")) return std::nullopt;
      return Rejection{Function, function,
                       "Function " + function + "() is not allowed in a query."};
    }
    case SQLITE_ATTACH:
      return Rejection{Statement, "", "ATTACH is not allowed: a query can only read one session."};
    case SQLITE_PRAGMA:
      return Rejection{Statement, "", "PRAGMA is not allowed: a query can only read one session."};
    default:
      return Rejection{Statement, "", kOnlySelect};
  }
}

}  // namespace tt::sql
