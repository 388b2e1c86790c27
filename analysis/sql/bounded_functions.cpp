#include "analysis/sql/bounded_functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "analysis/sql/virtual_table.h"

namespace tt::sql {

namespace {

bool any_null(int argc, sqlite3_value** argv) {
  return std::any_of(argv, argv + argc,
                     [](sqlite3_value* value) { return sqlite3_value_type(value) == SQLITE_NULL; });
}

bool is_short(sqlite3_context* context, std::string_view text) {
  if (text.size() <= static_cast<std::size_t>(kMaxPatternBytes)) return true;
  sqlite3_result_error(context, "the text to search for must not exceed 1000 bytes", -1);
  return false;
}

void set_result(sqlite3_context* context, std::string_view text) {
  sqlite3_result_text64(context, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; }

// Returns a 1-based index of characters, or of bytes if both arguments are blobs.
void instr(sqlite3_context* context, int argc, sqlite3_value** argv) {
  if (any_null(argc, argv)) return;
  const bool blobs =
      sqlite3_value_type(argv[0]) == SQLITE_BLOB && sqlite3_value_type(argv[1]) == SQLITE_BLOB;
  const std::string_view in = text_of(argv[0]), pattern = text_of(argv[1]);
  if (!is_short(context, pattern)) return;
  const std::size_t at = in.find(pattern);
  if (at == std::string_view::npos) return sqlite3_result_int64(context, 0);
  const std::string_view before = in.substr(0, at);
  sqlite3_result_int64(context, 1 + (blobs ? static_cast<sqlite3_int64>(at)
                                           : std::ranges::count_if(before, begins_character)));
}

void replace(sqlite3_context* context, int argc, sqlite3_value** argv) {
  if (any_null(argc, argv)) return;
  const std::string_view in = text_of(argv[0]), pattern = text_of(argv[1]), with = text_of(argv[2]);
  if (pattern.empty()) return set_result(context, in);
  if (!is_short(context, pattern)) return;
  const auto limit = static_cast<std::size_t>(
      sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = in.find(pattern, at);
    out += in.substr(at, found == std::string_view::npos ? found : found - at);
    if (out.size() > limit) return sqlite3_result_error_toobig(context);
    if (found == std::string_view::npos) break;
    out += with;
    at = found + pattern.size();
  }
  set_result(context, out);
}

// Removes one leading UTF-8 character that is in `set`; false if there is none.
bool cut_front(std::string_view& text, std::string_view set) {
  for (std::size_t at = 0; at < set.size();) {
    std::size_t end = at + 1;
    while (end < set.size() && !begins_character(set[end])) ++end;
    const std::string_view character = set.substr(at, end - at);
    if (text.starts_with(character)) return text.remove_prefix(character.size()), true;
    at = end;
  }
  return false;
}

bool cut_back(std::string_view& text, std::string_view set) {
  for (std::size_t at = 0; at < set.size();) {
    std::size_t end = at + 1;
    while (end < set.size() && !begins_character(set[end])) ++end;
    const std::string_view character = set.substr(at, end - at);
    if (text.ends_with(character)) return text.remove_suffix(character.size()), true;
    at = end;
  }
  return false;
}

template <bool kFront, bool kBack>
void trim(sqlite3_context* context, int argc, sqlite3_value** argv) {
  if (any_null(argc, argv)) return;
  std::string_view text = text_of(argv[0]);
  const std::string_view set = text_of(argv[1]);
  if (!is_short(context, set)) return;
  if (kFront) {
    while (cut_front(text, set)) {
    }
  }
  if (kBack) {
    while (cut_back(text, set)) {
    }
  }
  set_result(context, text);
}

}  // namespace

int add_bounded_functions(sqlite3* db) {
  struct Function {
    const char* name;
    int arguments;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  constexpr std::array kFunctions = {
      Function{"instr", 2, instr},
      Function{"replace", 3, replace},
      Function{"trim", 2, trim<true, true>},
      Function{"ltrim", 2, trim<true, false>},
      Function{"rtrim", 2, trim<false, true>},
  };
  for (const Function& function : kFunctions) {
    const int code =
        sqlite3_create_function_v2(db, function.name, function.arguments,
                                   SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nullptr,
                                   function.call, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace tt::sql
