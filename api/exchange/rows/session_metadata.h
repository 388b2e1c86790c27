// Session metadata as the JSON of exports, and back: used in session_start of the log and in
// trace_metadata.json.
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
// Metadata of the session of `rows`; with "range" if the export is partial.
std::expected<Json, TraceError> session_metadata(const SessionRows& rows);

// Parses session metadata. Unknown fields are ignored; fields of a wrong type are treated as
// missing. The state is never Running.
SessionInfo session_from(const Json& json);
LossCounters losses_from(const Json& json);

// An id that is safe as a file name: `id` (untrusted) if valid, else `otherwise` with invalid
// characters replaced.
std::string safe_file_id(const std::string& id, const std::string& fallback);

// The value of a field, or `otherwise` if it is missing, has a wrong type, or is out of range.
std::string text_in(const Json& json, const char* name, std::string fallback = {});
template <class Number>
Number number_in(const Json& json, const char* name, Number fallback = {}) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return fallback;
  if constexpr (std::is_integral_v<Number>) {
    if (found->is_number_unsigned()) {
      const auto number = found->template get<std::uint64_t>();
      return std::in_range<Number>(number) ? static_cast<Number>(number) : fallback;
    }
    if (found->is_number_integer()) {
      const auto number = found->template get<std::int64_t>();
      return std::in_range<Number>(number) ? static_cast<Number>(number) : fallback;
    }
    // Only integers that a double represents exactly.
    const double number = found->template get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (!(number > -kExact && number < kExact)) return fallback;
    const auto whole = static_cast<std::int64_t>(number);
    return std::in_range<Number>(whole) ? static_cast<Number>(whole) : fallback;
  } else {
    return found->template get<Number>();
  }
}
bool flag_in(const Json& json, const char* name, bool fallback = false);

// The enum value whose to_text() is `word`; `otherwise` if none matches.
template <class Enum>
Enum enum_from(std::string_view word, Enum last, Enum fallback) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (word == to_text(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return fallback;
}

}  // namespace tt::exchange
