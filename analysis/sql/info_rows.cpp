// session, model, metadata and token: the description of the session.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
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
template <class Row, class Fill>
class ListCursor final : public ChunkCursor<Row> {
 public:
  ListCursor(std::span<const Column<Row>> columns, SessionSource& source)
      : ChunkCursor<Row>(columns), source_(source) {}

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

constexpr std::array kSessionColumns = {
    Column<SessionRow>{"id", "TEXT", [](S r, Output& o) { o.text_copy(r.info.id); }},
    Column<SessionRow>{"title", "TEXT", [](S r, Output& o) { o.text_copy(r.info.title); }},
    Column<SessionRow>{"start_utc_ns", "INTEGER",
                       [](S r, Output& o) { o.integer(r.info.start_utc_ns); }},
    Column<SessionRow>{"level", "TEXT", [](S r, Output& o) { o.text(to_text(r.info.level)); }},
    Column<SessionRow>{"exact_timing", "INTEGER",
                       [](S r, Output& o) { o.integer(r.info.exact_timing); }},
    Column<SessionRow>{"state", "TEXT", [](S r, Output& o) { o.text(to_text(r.info.state)); }},
    Column<SessionRow>{"error", "TEXT", [](S r, Output& o) { o.text_copy(r.info.error); }},
    Column<SessionRow>{"steps", "INTEGER", [](S r, Output& o) { o.integer(r.steps); }},
    Column<SessionRow>{"tokens", "INTEGER", [](S r, Output& o) { o.integer(r.tokens); }},
    Column<SessionRow>{"n_layers", "INTEGER", [](S r, Output& o) { o.integer(r.info.n_layers); }},
    Column<SessionRow>{"n_heads", "INTEGER", [](S r, Output& o) { o.integer(r.info.n_heads); }},
    Column<SessionRow>{"n_heads_kv", "INTEGER",
                       [](S r, Output& o) { o.integer(r.info.n_heads_kv); }},
    Column<SessionRow>{"n_embd", "INTEGER", [](S r, Output& o) { o.integer(r.info.n_embd); }},
    Column<SessionRow>{"n_vocab", "INTEGER", [](S r, Output& o) { o.integer(r.info.n_vocab); }},
    Column<SessionRow>{"n_experts", "INTEGER", [](S r, Output& o) { o.integer(r.info.n_experts); }},
    Column<SessionRow>{"n_experts_used", "INTEGER",
                       [](S r, Output& o) { o.integer(r.info.n_experts_used); }},
    Column<SessionRow>{"steps_without_times", "INTEGER",
                       [](S r, Output& o) { o.count(r.losses.steps_without_times); }},
    Column<SessionRow>{"slot_values_dropped", "INTEGER",
                       [](S r, Output& o) { o.count(r.losses.slot_values_dropped); }},
    Column<SessionRow>{"count_mismatches", "INTEGER",
                       [](S r, Output& o) { o.count(r.losses.count_mismatches); }},
    Column<SessionRow>{"steps_not_written", "INTEGER",
                       [](S r, Output& o) { o.count(r.losses.steps_not_written); }},
    Column<SessionRow>{"page_faults_lost", "INTEGER",
                       [](S r, Output& o) { o.count(r.losses.page_faults_lost); }},
};

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

constexpr std::array kModelColumns = {
    Column<ModelRow>{"model_file", "INTEGER", [](M r, Output& o) { o.integer(r.row_id); }},
    Column<ModelRow>{"path", "TEXT", [](M r, Output& o) { o.text_copy(r.file.path); }},
    Column<ModelRow>{"size_bytes", "INTEGER", [](M r, Output& o) { o.count(r.file.size); }},
    Column<ModelRow>{"mtime_ns", "INTEGER", [](M r, Output& o) { o.integer(r.file.mtime_ns); }},
    Column<ModelRow>{"header_hash", "TEXT",
                     [](M r, Output& o) { o.text_copy(r.file.header_hash); }},
};

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

constexpr std::array kFactColumns = {
    Column<FactRow>{"name", "TEXT", [](F r, Output& o) { o.text_copy(r.name); }},
    Column<FactRow>{"value", "TEXT", [](F r, Output& o) { o.text_copy(r.value); }},
};

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
};
using T = const TokenRow&;

constexpr std::array kTokenColumns = {
    Column<TokenRow>{"token_id", "INTEGER", [](T r, Output& o) { o.integer(r.token.index); },
                     Chunks},
    Column<TokenRow>{"vocabulary_id", "INTEGER", [](T r, Output& o) { o.integer(r.token.id); }},
    Column<TokenRow>{"position", "INTEGER", [](T r, Output& o) { o.integer(r.token.position); }},
    Column<TokenRow>{"generated", "INTEGER", [](T r, Output& o) { o.integer(r.token.generated); }},
    Column<TokenRow>{"reused", "INTEGER", [](T r, Output& o) { o.integer(r.token.reused); }},
    Column<TokenRow>{"sequence", "INTEGER",
                     [](T r, Output& o) {
                       if (r.token.sequence) o.integer(*r.token.sequence);
                     }},
    Column<TokenRow>{"server_slot", "INTEGER",
                     [](T r, Output& o) {
                       if (r.server_slot) o.integer(*r.server_slot);
                     }},
    Column<TokenRow>{"draft", "TEXT",
                     [](T r, Output& o) {
                       if (r.token.draft != Draft::None) o.text_copy(to_text(r.token.draft));
                     }},
    Column<TokenRow>{"text", "TEXT", [](T r, Output& o) { o.text_copy(r.token.text); }},
};

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

template <class Row, class Fill, const auto& kColumns>
Table list_table(const char* name, double rows) {
  Table table = table_of<Row>(name, kColumns);
  table.rows = rows;
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<ListCursor<Row, Fill>>(kColumns, source);
  };
  return table;
}

}  // namespace

Table session_table() { return list_table<SessionRow, FillSession, kSessionColumns>("session", 1); }
Table model_table() { return list_table<ModelRow, FillModel, kModelColumns>("model", 1); }
Table metadata_table() { return list_table<FactRow, FillFacts, kFactColumns>("metadata", 50); }

Table token_table() {
  Table table = table_of<TokenRow>("token", kTokenColumns);
  table.rows = table.chunks = 1e5;
  table.ordered_by = 1;
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<TokenCursor>(source);
  };
  return table;
}

}  // namespace tt::sql
