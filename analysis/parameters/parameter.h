// The parameters of an analysis, declared once: REST reads them from the query of a request, `tt
// analyze` from options of the same names (from_token: --from-token), api/openapi.yaml and the
// documents describe them.
//
//   Parameters<ReuseQuery>().word("grain", "unit to cache", &ReuseQuery::grain)
//
// A parameter that is not given leaves the field of the query as it is, so the default is that of
// the query.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/fields.h"
#include "analysis/parameters/parse.h"

namespace tt {

struct ParameterInfo {
  enum class Kind : std::uint8_t { Number, Percent, Word, Flag, Text, Numbers, Layer, Layers };
  std::string name;
  std::string meaning{};
  Kind kind = Kind::Text;
  std::uint64_t min = 0, max = kMaxNumber;  // of numbers
  std::vector<std::string> words{};
  std::string schema{};                     // of a word in api/openapi.yaml; empty: none of its own
  std::string default_value{};              // empty: none
  std::size_t max_length = kMaxTextLength;  // of a text
  bool in_path = false;                     // required, in the path of the route
};

// The text of a parameter; nullopt: not given.
using ParameterText = std::function<std::optional<std::string>(const std::string& name)>;

struct ParameterError {
  std::string name;    // empty: about several parameters
  std::string detail;  // after the name: "must be a whole number from 0 to 3."
  bool in_path = false;
};

template <class Query>
class Parameters {
 public:
  using Info = ParameterInfo;

  // A whole number from `min` to `max`.
  template <class Get>
  Parameters&& number(const char* name, const char* meaning, Get get,
                      std::uint64_t max = kMaxNumber, std::uint64_t min = 0) && {
    return std::move(*this).one(
        {.name = name, .meaning = meaning, .kind = Info::Kind::Number, .min = min, .max = max}, get,
        [=](const std::string& text) { return parse_whole(text, min, max); });
  }
  // The same in the path. `unknown` completes the error: "is not the number of a step. Steps ...".
  template <class Get>
  Parameters&& path_number(const char* name, const char* meaning, Get get, std::uint64_t max,
                           const char* unknown) && {
    return std::move(*this).one(
        {.name = name,
         .meaning = meaning,
         .kind = Info::Kind::Number,
         .max = kMaxNumber,
         .in_path = true},
        get, [=](const std::string& text) {
          return parse_whole(text, 0, max).transform_error([&](const std::string&) {
            return std::string(unknown);
          });
        });
  }
  template <class Get>
  Parameters&& percent(const char* name, const char* meaning, Get get, const char* by_default) && {
    return std::move(*this).one({.name = name,
                                 .meaning = meaning,
                                 .kind = Info::Kind::Percent,
                                 .max = 100,
                                 .default_value = by_default},
                                get, parse_percent);
  }
  template <class Get>
  Parameters&& flag(const char* name, const char* meaning, Get get) && {
    return std::move(*this).one({.name = name, .meaning = meaning, .kind = Info::Kind::Flag}, get,
                                parse_flag);
  }
  template <class Get>
  Parameters&& text(const char* name, const char* meaning, Get get) && {
    return std::move(*this).one(
        {.name = name, .meaning = meaning, .kind = Info::Kind::Text}, get,
        [](const std::string& text) { return parse_text(text, kMaxTextLength); });
  }
  // One of the words of an enumeration, or of those that `is_allowed`.
  template <class Get>
  Parameters&& word(const char* name, const char* meaning, Get get) && {
    using Enum = ValueOf<Get>;
    return std::move(*this).word(name, meaning, get, words_of(Enum{}), [](Enum) { return true; });
  }
  template <class Get, class IsAllowed>
  Parameters&& word(const char* name, const char* meaning, Get get, columns::Enumeration all,
                    IsAllowed is_allowed) && {
    using Enum = ValueOf<Get>;
    std::vector<std::pair<std::string, Enum>> words;
    for (int i = 0; i < all.count; ++i)
      if (is_allowed(static_cast<Enum>(i))) words.emplace_back(all.word(i), static_cast<Enum>(i));
    return std::move(*this).word(name, meaning, get, words, all.schema);
  }
  template <class Get, class Value>
  Parameters&& word(const char* name, const char* meaning, Get get,
                    const std::vector<std::pair<std::string, Value>>& values,
                    const char* schema = "") && {
    std::vector<std::string> words;
    for (const auto& [word, value] : values) words.push_back(word);
    Info info{.name = name,
              .meaning = meaning,
              .kind = Info::Kind::Word,
              .words = words,
              .schema = schema};
    Query standard{};
    for (const auto& [word, value] : values) {
      const auto& now = std::invoke(get, standard);
      if constexpr (!columns::is_optional<std::remove_cvref_t<decltype(now)>>)
        if (now == value) info.default_value = word;
    }
    return std::move(*this).one(std::move(info), get, [=](const std::string& text) {
      return parse_word(text, words).transform([&](std::size_t i) { return values[i].second; });
    });
  }
  // At most `count` numbers, separated by commas.
  template <class Get>
  Parameters&& numbers(const char* name, const char* meaning, Get get, std::uint64_t max,
                       std::size_t count) && {
    return std::move(*this).one(
        {.name = name,
         .meaning = meaning,
         .kind = Info::Kind::Numbers,
         .max = max,
         .max_length = 20 * count},
        get, [=](const std::string& text) { return parse_wholes(text, max, count); });
  }
  // One layer, or several in the syntax of parse_layers().
  template <class Get>
  Parameters&& layer(const char* name, const char* meaning, Get get) && {
    return std::move(*this).one({.name = name, .meaning = meaning, .kind = Info::Kind::Layer}, get,
                                [](const std::string& text) { return parse_layer_number(text); });
  }
  template <class Get>
  Parameters&& layers(const char* name, const char* meaning, Get get) && {
    return std::move(*this).one({.name = name, .meaning = meaning, .kind = Info::Kind::Layers}, get,
                                parse_layer_list);
  }
  // The half-open range from_NAME to to_NAME: an optional with the members from and to.
  template <class Get>
  Parameters&& range(const std::string& name, const char* what, Get get, std::uint64_t max) && {
    const std::string from = "from_" + name, to = "to_" + name;
    infos_.push_back({.name = from,
                      .meaning = std::string("start of the range of ") + what,
                      .kind = Info::Kind::Number,
                      .max = max});
    infos_.push_back({.name = to,
                      .meaning = std::string("end of the range of ") + what + ", exclusive",
                      .kind = Info::Kind::Number,
                      .max = max});
    setters_.push_back([=](Query& query, const ParameterText& text) -> Set {
      const auto begin = text(from), end = text(to);
      if (!begin && !end) return {};
      const auto a = begin ? parse_whole(*begin, 0, max) : 0;
      if (!a) return failed(from, a.error());
      const auto b = end ? parse_whole(*end, 0, max) : max;
      if (!b) return failed(to, b.error());
      if (*b < *a) {
        return failed("", "\"" + from + "\" is " + *begin + " and \"" + to + "\" is " + *end +
                              ": the end is before the start.");
      }
      auto& range = std::invoke(get, query);
      using Range = std::remove_cvref_t<decltype(range)>::value_type;
      using Number = decltype(Range{}.from);
      range = Range{.from = static_cast<Number>(*a), .to = static_cast<Number>(*b)};
      return {};
    });
    return std::move(*this);
  }
  // The parameters from and limit of a page; `get`: a PageRange.
  template <class Get>
  Parameters&& page(Get get, std::uint64_t rows = kDefaultRows) && {
    auto with_page =
        std::move(*this)
            .number("from", "index of the first row of the page",
                    [=](Query& query) -> auto& { return std::invoke(get, query).from; })
            .number(
                "limit", "maximum number of rows in the page",
                [=](Query& query) -> auto& { return std::invoke(get, query).limit; }, kMaxRows);
    *this = std::move(with_page);
    infos_[infos_.size() - 2].default_value = "0";
    infos_.back().default_value = std::to_string(rows);
    start_.push_back(
        [=](Query& query) { std::invoke(get, query) = PageRange{.from = 0, .limit = rows}; });
    return std::move(*this);
  }
  // The default in the documents, if the field of the query does not say it.
  Parameters&& by_default(std::string text) && {
    infos_.back().default_value = std::move(text);
    return std::move(*this);
  }
  // All parameters of a part of the query.
  template <class Part, class Get>
  Parameters&& include(const Parameters<Part>& parameters, Get get) && {
    infos_.insert(infos_.end(), parameters.infos().begin(), parameters.infos().end());
    setters_.push_back([=](Query& query, const ParameterText& text) -> Set {
      return parameters.parse(text).transform(
          [&](Part part) { std::invoke(get, query) = std::move(part); });
    });
    return std::move(*this);
  }
  // A condition on several parameters: `check(query)` returns a sentence, or an empty text.
  Parameters&& check(std::function<std::string(const Query&)> check) && {
    setters_.push_back([=](Query& query, const ParameterText&) -> Set {
      std::string wrong = check(query);
      if (wrong.empty()) return {};
      return failed("", std::move(wrong));
    });
    return std::move(*this);
  }

  const std::vector<Info>& infos() const { return infos_; }
  std::expected<Query, ParameterError> parse(const ParameterText& text) const {
    Query query{};
    for (const auto& start : start_) start(query);
    for (const auto& set : setters_)
      if (const auto done = set(query, text); !done) return std::unexpected(done.error());
    return query;
  }

 private:
  using Set = std::expected<void, ParameterError>;
  template <class Get>
  struct OfGet {
    using Type = std::remove_cvref_t<std::invoke_result_t<Get, Query&>>;
  };
  template <class T>
  struct Inner {
    using Type = T;
  };
  template <class T>
  struct Inner<std::optional<T>> {
    using Type = T;
  };
  template <class Get>
  using ValueOf = Inner<typename OfGet<Get>::Type>::Type;

  static Set failed(std::string name, std::string detail, bool in_path = false) {
    return std::unexpected(
        ParameterError{.name = std::move(name), .detail = std::move(detail), .in_path = in_path});
  }

  template <class Get, class Parse>
  Parameters&& one(Info info, Get get, Parse parse) && {
    setters_.push_back([name = info.name, in_path = info.in_path, get, parse](
                           Query& query, const ParameterText& text) -> Set {
      const auto given = text(name);
      if (!given) return {};
      auto value = parse(*given);
      if (!value) return failed(name, value.error(), in_path);
      assign(std::invoke(get, query), *std::move(value));
      return {};
    });
    infos_.push_back(std::move(info));
    return std::move(*this);
  }

  template <class To, class From>
  static void assign(To& to, From&& from) {
    if constexpr (std::is_assignable_v<To&, From&&> && !std::is_arithmetic_v<To>) {
      to = std::forward<From>(from);
    } else if constexpr (std::is_arithmetic_v<To> || std::is_enum_v<To>) {
      to = static_cast<To>(from);
    } else if constexpr (fields::is_strong<To>) {
      to.v = static_cast<decltype(to.v)>(from);
    } else {  // a list of sizes
      for (const auto number : from) {
        using Item = To::value_type;
        if constexpr (fields::is_strong<Item>) {
          to.push_back(Item{number});
        } else {
          to.push_back(static_cast<Item>(number));
        }
      }
    }
  }

  std::vector<Info> infos_;
  std::vector<std::function<void(Query&)>> start_;
  std::vector<std::function<Set(Query&, const ParameterText&)>> setters_;
};

}  // namespace tt
