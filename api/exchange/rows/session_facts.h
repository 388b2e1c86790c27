// What a session says about itself, as the JSON of exports, and back: the log's
// session_start and trace_metadata.json have it.
#pragma once

#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"
#include "tracer/format/model/session.h"

namespace tt::exchange {

Json to_json(const SessionInfo& info);
// The session of `rows`, with "range" when it is not whole.
std::expected<Json, TraceError> session_facts(const SessionRows& rows);

// Takes what it knows and leaves out what it does not; fields of another type are
// as if they were not there. The state is never Running.
SessionInfo session_from(const Json& json);
LossCounters losses_from(const Json& json);

// An id that can name a file: that of the session, which may come from anybody, else
// `otherwise` as far as it can.
std::string usable_id(const std::string& id, const std::string& otherwise);

// A field, or `otherwise` when it is absent, of another type, or a number that does
// not fit.
std::string text_in(const Json& json, const char* name, std::string otherwise = {});
template <class Number>
Number number_in(const Json& json, const char* name, Number otherwise = {}) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return otherwise;
  if constexpr (std::is_integral_v<Number>) {
    if (found->is_number_unsigned()) {
      const auto number = found->template get<std::uint64_t>();
      return std::in_range<Number>(number) ? static_cast<Number>(number) : otherwise;
    }
    if (found->is_number_integer()) {
      const auto number = found->template get<std::int64_t>();
      return std::in_range<Number>(number) ? static_cast<Number>(number) : otherwise;
    }
    // As far as a double tells whole numbers apart.
    const double number = found->template get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (!(number > -kExact && number < kExact)) return otherwise;
    const auto whole = static_cast<std::int64_t>(number);
    return std::in_range<Number>(whole) ? static_cast<Number>(whole) : otherwise;
  } else {
    return found->template get<Number>();
  }
}
bool flag_in(const Json& json, const char* name, bool otherwise = false);

// The value whose to_text() is `word`; `otherwise` when none is.
template <class Enum>
Enum enum_from(std::string_view word, Enum last, Enum otherwise) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (word == to_text(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return otherwise;
}

}  // namespace tt::exchange
