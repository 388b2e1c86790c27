// The SQL schema of a session file, and the metadata rows that writer, reader and recovery
// share. Private to tracer/format. Layout: docs/trace-format.md.
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

// Creates all tables in an empty database; run inside a transaction. session_schema.h compares
// files with it, character by character: a change is a new format version.
extern const char* const kCreateTables;

// The enum value whose to_text() is `word`; nullopt if not found.
template <class Enum>
std::optional<Enum> enum_of(std::string_view word, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (word == to_text(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return std::nullopt;
}

// All rows of tt_meta; a damaged row is an error.
using Meta = std::map<std::string, std::string>;
std::expected<Meta, TraceError> read_meta(const Database& db);
Status write_meta(const Database& db, const Meta& meta);  // adds, replaces

// A number in tt_meta; nullopt if it is missing or not a number.
std::optional<std::int64_t> meta_number(const Meta& meta, const std::string& key);

// Marks a Running session Recovered: writes its totals and removes the owner.
Status mark_recovered(const Database& db);

// Writes tt_meta, tt_fact and tt_model_file from `info`, replacing existing rows.
Status write_info(const Database& db, const SessionInfo& info);
std::expected<SessionInfo, TraceError> read_info(const Database& db);

Status write_losses(const Database& db, const LossCounters& losses);
std::expected<LossCounters, TraceError> read_losses(const Database& db);

// "<file> is damaged: <what>".
TraceError damaged(const Database& db, const std::string& what);

}  // namespace tt
