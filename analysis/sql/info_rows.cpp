// session, model, metadata and token: the description of the session.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>

#include "analysis/sql/session_source.h"
#include "analysis/sql/tables.h"
#include "tracer/format/model/server_slots.h"
#include "tracer/text/utf8.h"

namespace tt::sql {

namespace {

using enum Pushdown;

// SQLite accepts any bytes as TEXT, but its clients do not. Invalid UTF-8 (a token may be a
// part of a character) becomes U+FFFD, as in JSON and exports.
void make_utf8(std::initializer_list<std::string*> texts) {
  for (std::string* text : texts)
    if (!is_utf8(*text)) *text = to_valid_utf8(*text);
}

// A cursor over a small table that is read at once.
template <class Row, class Fill, const auto& columns>
class ListCursor final : public ChunkCursor<Row> {
 public:
  explicit ListCursor(SessionSource& source) : ChunkCursor<Row>(columns), source_(source) {}

 private:
  Status begin(const Conditions&) override {
    done_ = false;
    return {};
  }
  Expected<bool> next_chunk(std::vector<Row>& rows) override {
    if (std::exchange(done_, true)) return false;
    const auto filled = Fill{}(source_, rows);
    if (!filled) return std::unexpected(filled.error());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].row_id = static_cast<std::int64_t>(i);
    return true;
  }
  SessionSource& source_;
  bool done_ = false;
};

struct SessionRow {
  std::int64_t row_id = 0;
  SessionInfo info;
  LossCounters losses;
  std::uint32_t steps = 0, tokens = 0;
};
using S = const SessionRow&;

constexpr auto kSessionColumns = std::to_array<Column<SessionRow>>({
    {"id", [](S r) { return r.info.id; }},
    {"title", [](S r) { return r.info.title; }},
    {"start_utc_ns", [](S r) { return r.info.start_utc_ns; }},
    {"level", [](S r) { return to_text(r.info.level); }},
    {"exact_timing", [](S r) { return r.info.exact_timing; }},
    {"state", [](S r) { return to_text(r.info.state); }},
    {"error", [](S r) { return r.info.error; }},
    {"steps", [](S r) { return r.steps; }},
    {"tokens", [](S r) { return r.tokens; }},
    {"n_layers", [](S r) { return r.info.n_layers; }},
    {"n_heads", [](S r) { return r.info.n_heads; }},
    {"n_heads_kv", [](S r) { return r.info.n_heads_kv; }},
    {"n_embd", [](S r) { return r.info.n_embd; }},
    {"n_vocab", [](S r) { return r.info.n_vocab; }},
    {"n_experts", [](S r) { return r.info.n_experts; }},
    {"n_experts_used", [](S r) { return r.info.n_experts_used; }},
    {"steps_without_times", [](S r) { return r.losses.steps_without_times; }},
    {"slot_values_dropped", [](S r) { return r.losses.slot_values_dropped; }},
    {"count_mismatches", [](S r) { return r.losses.count_mismatches; }},
    {"steps_not_written", [](S r) { return r.losses.steps_not_written; }},
    {"page_faults_lost", [](S r) { return r.losses.page_faults_lost; }},
});

struct FillSession {
  Status operator()(SessionSource& source, std::vector<SessionRow>& rows) const {
    const auto reader = source.reader();
    if (!reader) return std::unexpected(reader.error());
    const auto info = (*reader)->info();
    if (!info) return std::unexpected(info.error());
    const auto losses = (*reader)->losses();
    if (!losses) return std::unexpected(losses.error());
    const auto steps = (*reader)->step_count();
    if (!steps) return std::unexpected(steps.error());
    const auto tokens = (*reader)->token_count();
    if (!tokens) return std::unexpected(tokens.error());
    SessionRow row{.info = *info, .losses = *losses, .steps = *steps, .tokens = *tokens};
    make_utf8({&row.info.title, &row.info.error});
    rows.push_back(std::move(row));
    return {};
  }
};

struct ModelRow {
  std::int64_t row_id = 0;  // the file index used by FileRange
  ModelFile file;
};
using M = const ModelRow&;

constexpr auto kModelColumns = std::to_array<Column<ModelRow>>({
    {"model_file", [](M r) { return r.row_id; }},
    {"path", [](M r) { return r.file.path; }},
    {"size_bytes", [](M r) { return r.file.size; }},
    {"mtime_ns", [](M r) { return r.file.mtime_ns; }},
    {"header_hash", [](M r) { return r.file.header_hash; }},
});

struct FillModel {
  Status operator()(SessionSource& source, std::vector<ModelRow>& rows) const {
    const auto info = source.info();
    if (!info) return std::unexpected(info.error());
    for (ModelFile file : (*info)->model_files) {
      make_utf8({&file.path, &file.header_hash});
      rows.push_back({.file = std::move(file)});
    }
    return {};
  }
};

struct FactRow {
  std::int64_t row_id = 0;
  std::string name, value;
};
using F = const FactRow&;

constexpr auto kFactColumns = std::to_array<Column<FactRow>>({
    {"name", [](F r) { return r.name; }},
    {"value", [](F r) { return r.value; }},
});

struct FillFacts {
  Status operator()(SessionSource& source, std::vector<FactRow>& rows) const {
    const auto reader = source.reader();
    if (!reader) return std::unexpected(reader.error());
    const auto info = (*reader)->info();
    if (!info) return std::unexpected(info.error());
    for (const auto& [name, value] : info->facts)
      rows.push_back({.name = to_valid_utf8(name), .value = to_valid_utf8(value)});
    return {};
  }
};

struct TokenRow {
  std::int64_t row_id = 0;
  Token token;
  std::optional<std::uint32_t> server_slot;

  std::optional<const char*> draft() const {
    return token.draft == Draft::None ? std::nullopt : std::optional(to_text(token.draft));
  }
};
using T = const TokenRow&;

constexpr auto kTokenColumns = std::to_array<Column<TokenRow>>({
    {"token_id", [](T r) { return r.token.index; }, Chunks},
    {"vocabulary_id", [](T r) { return r.token.id; }},
    {"position", [](T r) { return r.token.position; }},
    {"generated", [](T r) { return r.token.generated; }},
    {"reused", [](T r) { return r.token.reused; }},
    {"sequence", [](T r) { return r.token.sequence; }},
    {"server_slot", [](T r) { return r.server_slot; }},
    {"draft", [](T r) { return r.draft(); }},
    {"text", [](T r) { return r.token.text; }},
});

class TokenCursor final : public ChunkCursor<TokenRow> {
 public:
  explicit TokenCursor(SessionSource& source) : ChunkCursor(kTokenColumns), source_(source) {}

 private:
  Status begin(const Conditions& conditions) override {
    const ColumnConstraint& constraint = conditions.of(column_index(kTokenColumns, "token_id"));
    constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
    at_ = std::max<std::int64_t>(0, constraint.from);
    end_ = std::min(constraint.to, kMax - 1) + 1;
    const auto info = source_.info();
    if (!info) return std::unexpected(info.error());
    slots_ = server_slots(**info);
    return {};
  }
  Expected<bool> next_chunk(std::vector<TokenRow>& rows) override {
    constexpr std::int64_t kAtOnce = 1024;
    if (at_ >= end_) return false;
    if (auto on = source_.check_cancelled(); !on) return std::unexpected(on.error());
    const auto reader = source_.reader();
    if (!reader) return std::unexpected(reader.error());
    auto tokens = (*reader)->tokens(static_cast<std::uint32_t>(at_),
                                    static_cast<std::uint32_t>(std::min(kAtOnce, end_ - at_)));
    if (!tokens) return std::unexpected(tokens.error());
    at_ += kAtOnce;
    for (Token& token : *tokens) {
      make_utf8({&token.text});
      const auto slot = server_slot_of(slots_, token.sequence);
      rows.push_back({.row_id = token.index, .token = std::move(token), .server_slot = slot});
    }
    return !rows.empty();
  }
  SessionSource& source_;
  ServerSlots slots_;
  std::int64_t at_ = 0, end_ = 0;
};

template <class Row, class Fill, const auto& columns>
Table list_table(const char* name, double rows) {
  return table_of<ListCursor<Row, Fill, columns>>({.name = name, .rows = rows}, columns);
}

}  // namespace

Table session_table() { return list_table<SessionRow, FillSession, kSessionColumns>("session", 1); }
Table model_table() { return list_table<ModelRow, FillModel, kModelColumns>("model", 1); }
Table metadata_table() { return list_table<FactRow, FillFacts, kFactColumns>("metadata", 50); }

Table token_table() {
  return table_of<TokenCursor>({.name = "token", .rows = 1e5, .chunks = 1e5, .ordered_by = 1},
                               kTokenColumns);
}

}  // namespace tt::sql
