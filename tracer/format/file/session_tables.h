// The tables of a session file as SQL, and the rows that writer, reader and
// recovery share: what a session says about itself. Private to tracer/format.
// Layout: docs/trace-format.md.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tracer/format/file/sqlite_handle.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

inline constexpr std::uint32_t kApplicationId = 0x54545243;  // TTRC

// Everything below "BEGIN" of an empty database, without the commit.
extern const char* const kCreateTables;

// The enum value whose to_text() is `word`; none if there is none.
template <class Enum>
std::optional<Enum> enum_of(std::string_view word, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (word == to_text(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return std::nullopt;
}

// tt_meta as a whole; a damaged row is an error.
using Meta = std::map<std::string, std::string>;
std::expected<Meta, TraceError> read_meta(const Database& db);
std::expected<void, TraceError> write_meta(const Database& db, const Meta& meta);  // adds, replaces

// A number in tt_meta; none if it is absent or no number.
std::optional<std::int64_t> meta_number(const Meta& meta, const std::string& key);

// Marks a Running session Recovered, with its totals and without an owner.
std::expected<void, TraceError> mark_recovered(const Database& db);

// tt_meta, tt_fact and tt_model_file from `info`: replaces what was there.
std::expected<void, TraceError> write_info(const Database& db, const SessionInfo& info);
std::expected<SessionInfo, TraceError> read_info(const Database& db);

std::expected<void, TraceError> write_losses(const Database& db, const LossCounters& losses);
std::expected<LossCounters, TraceError> read_losses(const Database& db);

// "<file> is damaged: <what>".
TraceError damaged(const Database& db, const std::string& what);

}  // namespace tt
