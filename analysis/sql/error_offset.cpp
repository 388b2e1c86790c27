#include "analysis/sql/error_offset.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <vector>

namespace tt::sql {

namespace {

struct Word {
  std::uint32_t at = 0;
  std::string_view text;  // without quotes
  bool quoted = false;
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}
bool is(const Word& word, std::string_view keyword) {
  return !word.quoted && same(word.text, keyword);
}
bool is_any(const Word& word, auto... keywords) { return (is(word, keywords) || ...); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// As in SQLite, every non-ASCII byte is an identifier character.
bool in_word(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::vector<Word> words_of(std::string_view sql) {
  std::vector<Word> words;
  const auto end_of = [&](std::string_view end, std::size_t from) {
    const std::size_t found = sql.find(end, from);
    return found == std::string_view::npos ? sql.size() : found + end.size();
  };
  for (std::size_t at = 0, end = 0; at < sql.size(); at = end) {
    const char c = sql[at];
    const std::string_view rest = sql.substr(at);
    end = at + 1;
    if (rest.starts_with("--")) {
      end = end_of("\n", at);
    } else if (rest.starts_with("/*")) {
      end = end_of("*/", at + 2);
    } else if (c == '\'' || rest.starts_with("x'") || rest.starts_with("X'")) {
      end = end_of("'", c == '\'' ? end : end + 1);
    } else if (c == '"' || c == '`' || c == '[') {
      end = end_of(c == '[' ? "]" : rest.substr(0, 1), end);
      words.push_back(
          {static_cast<std::uint32_t>(at), sql.substr(at + 1, end - at - 2), /*quoted=*/true});
    } else if (in_word(c)) {
      while (end < sql.size() && in_word(sql[end])) ++end;
      if (!is_digit(c))
        words.push_back({static_cast<std::uint32_t>(at), sql.substr(at, end - at), false});
    }
  }
  return words;
}

template <std::ranges::forward_range Words, class Test>
std::optional<std::uint32_t> first_of(Words&& words, Test test) {
  const auto found = std::ranges::find_if(words, test);
  if (found == std::ranges::end(words)) return std::nullopt;
  return found->at;
}

}  // namespace

std::optional<std::uint32_t> offset_of_name(std::string_view sql, std::string_view name) {
  return first_of(words_of(sql), [&](const Word& word) { return same(word.text, name); });
}

std::optional<std::uint32_t> offset_of_table(std::string_view sql, std::string_view name) {
  const std::vector<Word> words = words_of(sql);
  const auto place_in = [&](std::string_view wanted) -> std::optional<std::uint32_t> {
    const auto is_it = [&](const Word& word) { return same(word.text, wanted); };
    for (std::size_t i = 1; i < words.size(); ++i)
      if (is_it(words[i]) && is_any(words[i - 1], "from", "join")) return words[i].at;
    // Otherwise it is in a comma-separated list of tables.
    const auto from =
        std::ranges::find_if(words, [](const Word& word) { return is(word, "from"); });
    if (const auto found = first_of(std::ranges::subrange(from, words.end()), is_it)) return found;
    return first_of(words, is_it);
  };
  if (const auto found = place_in(name)) return found;
  const std::size_t dot = name.find('.');  // strip the schema
  return dot == std::string_view::npos ? std::nullopt : place_in(name.substr(dot + 1));
}

std::optional<std::uint32_t> offset_of_verb(std::string_view sql) {
  const std::vector<Word> words = words_of(sql);
  if (words.empty()) return std::nullopt;
  if (!is_any(words[0], "select", "values", "with", "explain")) return words[0].at;
  return first_of(words,
                  [](const Word& word) { return is_any(word, "insert", "update", "delete"); });
}

}  // namespace tt::sql
