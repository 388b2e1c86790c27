#include "tracer/format/file/session_tables.h"

#include <array>
#include <format>
#include <utility>

#include "tracer/text/parse_number.h"

namespace tt {

const char* const kCreateTables = R"sql(
CREATE TABLE tt_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tt_fact(
  ordinal INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_model_file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  header_hash TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_template(
  id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, n_tensors INTEGER NOT NULL,
  n_nodes INTEGER NOT NULL, n_ops INTEGER NOT NULL, n_slots INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_allocation(
  id INTEGER PRIMARY KEY, template INTEGER NOT NULL, n_addresses INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_step(
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, timing TEXT NOT NULL, template INTEGER NOT NULL,
  allocation INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  first_op_ns INTEGER NOT NULL, first_token INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
  threads INTEGER NOT NULL, n_ops INTEGER NOT NULL, dropped INTEGER NOT NULL,
  aborted INTEGER NOT NULL, interval_ns INTEGER, cpu_ns INTEGER, cpu_wait_ns INTEGER,
  voluntary_switches INTEGER, involuntary_switches INTEGER, minor_faults INTEGER,
  major_faults INTEGER, disk_read_bytes INTEGER, throttled_ns INTEGER, pressure_cpu_ns INTEGER,
  pressure_io_ns INTEGER, pressure_memory_ns INTEGER, queue_ns INTEGER, sample_ns INTEGER,
  detokenize_ns INTEGER, build_ns INTEGER, evaluate_ns INTEGER, graphs_built INTEGER,
  frequency_khz INTEGER, thermal_throttles INTEGER, memory_limit_bytes INTEGER,
  locked_bytes INTEGER, resident_bytes INTEGER,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_token(
  idx INTEGER PRIMARY KEY, id INTEGER NOT NULL, position INTEGER NOT NULL,
  generated INTEGER NOT NULL, reused INTEGER NOT NULL, sequence INTEGER, draft TEXT NOT NULL,
  text BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_fault(
  step INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, n_faults INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_minor_fault(
  step INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, n_faults INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_residency(
  step INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, unit_bytes INTEGER NOT NULL,
  n_ranges INTEGER NOT NULL, packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_value(
  step INTEGER PRIMARY KEY, n_outputs INTEGER NOT NULL, n_not_captured INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_split(
  step INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, n_splits INTEGER NOT NULL,
  packed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE tt_loss(name TEXT PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
)sql";

namespace {

// Shared by writing and reading, so that they cannot differ. The largest number is far above that
// of every known model (llama.cpp: 512 layers and experts), and small enough that a program may
// loop over it.
struct ShapeNumber {
  const char* key;
  std::uint32_t SessionInfo::* field;
  std::uint32_t max;
};
constexpr std::array kShape = {
    ShapeNumber{"n_layers", &SessionInfo::n_layers, 1U << 16},
    ShapeNumber{"n_heads", &SessionInfo::n_heads, 1U << 16},
    ShapeNumber{"n_heads_kv", &SessionInfo::n_heads_kv, 1U << 16},
    ShapeNumber{"n_embd", &SessionInfo::n_embd, 1U << 24},
    ShapeNumber{"n_vocab", &SessionInfo::n_vocab, 1U << 26},
    ShapeNumber{"n_experts", &SessionInfo::n_experts, 1U << 16},
    ShapeNumber{"n_experts_used", &SessionInfo::n_experts_used, 1U << 16},
};

constexpr std::array kLosses = {
    std::pair{"steps_without_times", &LossCounters::steps_without_times},
    std::pair{"slot_values_dropped", &LossCounters::slot_values_dropped},
    std::pair{"count_mismatches", &LossCounters::count_mismatches},
    std::pair{"steps_not_written", &LossCounters::steps_not_written},
    std::pair{"page_faults_lost", &LossCounters::page_faults_lost},
};

constexpr std::size_t kMaxMetaRows = 1000, kMaxLossRows = 100;  // a newer program may add some

// Counts the bytes of texts that are read into memory. Rows of a crafted file can share their
// pages, so the size of the file is no limit.
class TextBudget {
 public:
  // Returns false when the limit is exceeded.
  bool take(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= kMaxMetadataBytes;
  }

 private:
  std::size_t bytes_ = 0;
};

TraceError too_much_text(const Database& db) {
  return damaged(db, std::format("its metadata is larger than {} MiB", kMaxMetadataBytes >> 20));
}

// The limits that readers apply.
Status check_limits(const SessionInfo& info) {
  const auto exceeded = [](const char* what, std::size_t limit) {
    return std::unexpected(TraceError{
        TraceError::Kind::Damaged, std::format("A session can have at most {} {}", limit, what)});
  };
  if (info.facts.size() > kMaxSessionFacts) return exceeded("facts", kMaxSessionFacts);
  if (info.model_files.size() > kMaxModelFiles) return exceeded("model files", kMaxModelFiles);
  for (const auto& [key, field, max] : kShape)
    if (info.*field > max) return exceeded(key, max);
  TextBudget budget;
  bool within = true;
  for (const auto& [name, value] : info.facts) within = budget.take(name.size() + value.size());
  for (const ModelFile& file : info.model_files)
    within = budget.take(file.path.size() + file.header_hash.size());
  if (!within) return exceeded("MiB of metadata", kMaxMetadataBytes >> 20);
  return {};
}

Meta meta_of(const SessionInfo& info) {
  Meta meta = {
      {"id", info.id},
      {"title", info.title},
      {"start_utc_ns", std::to_string(info.start_utc_ns)},
      {"level", to_text(info.level)},
      {"exact_timing", info.exact_timing ? "1" : "0"},
      {"state", to_text(info.state)},
      {"error", info.error},
  };
  for (const auto& [key, field, max] : kShape) meta[key] = std::to_string(info.*field);
  return meta;
}

// Calls `row` for every row of `sql`, whose table has at most `max_rows`; stops at the first error
// that it returns.
template <class Row>
Status for_each_row(const Database& db, const char* table, const char* sql, std::size_t max_rows,
                    Row row) {
  auto statement = db.prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  for (std::size_t rows = 0;; ++rows) {
    const auto more = statement->step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
    if (rows == max_rows)
      return std::unexpected(damaged(db, std::format("{} has more than {} rows", table, max_rows)));
    RowReader in(*statement);
    if (auto read = row(in); !read) return read;
  }
}

}  // namespace

TraceError damaged(const Database& db, const std::string& what) {
  return {TraceError::Kind::Damaged,
          std::string(sqlite3_db_filename(db.get(), "main")) + " is damaged: " + what};
}

std::expected<Meta, TraceError> read_meta(const Database& db) {
  Meta meta;
  TextBudget budget;
  const auto done = for_each_row(db, "tt_meta", "SELECT key, value, crc FROM tt_meta ORDER BY key",
                                 kMaxMetaRows, [&](RowReader& in) -> Status {
                                   std::string key(in.text()), value(in.text());
                                   if (!in.valid())
                                     return std::unexpected(damaged(db, "a row of tt_meta"));
                                   if (!budget.take(key.size() + value.size()))
                                     return std::unexpected(too_much_text(db));
                                   meta[std::move(key)] = std::move(value);
                                   return {};
                                 });
  if (!done) return std::unexpected(done.error());
  return meta;
}

Status write_meta(const Database& db, const Meta& meta) {
  auto insert = db.prepare("INSERT OR REPLACE INTO tt_meta VALUES(?,?,?)");
  if (!insert) return std::unexpected(insert.error());
  for (const auto& [key, value] : meta)
    if (auto done = RowWriter(*insert).text(key).text(value).insert(); !done) return done;
  return {};
}

std::optional<std::int64_t> meta_number(const Meta& meta, const std::string& key) {
  const auto found = meta.find(key);
  return found == meta.end() ? std::nullopt : parse_number<std::int64_t>(found->second);
}

Status mark_recovered(const Database& db) {
  // Not count(*), which reads the whole table.
  const auto steps = db.query_value("SELECT coalesce(max(id) + 1, 0) FROM tt_step");
  const auto tokens = db.query_value("SELECT coalesce(max(idx) + 1, 0) FROM tt_token");
  if (!steps) return std::unexpected(steps.error());
  if (!tokens) return std::unexpected(tokens.error());
  return db.run("BEGIN IMMEDIATE")
      .and_then([&] {
        return write_meta(
            db,
            {{"state", to_text(SessionState::Recovered)}, {"steps", *steps}, {"tokens", *tokens}});
      })
      .and_then([&] { return db.run("DELETE FROM tt_meta WHERE key LIKE 'owner.%'; COMMIT"); });
}

Status write_info(const Database& db, const SessionInfo& info) {
  if (auto within = check_limits(info); !within) return within;
  const auto before = read_info(db);
  if (auto done = write_meta(db, meta_of(info)); !done) return done;
  // These rarely change at the end of a session, when the disk may be full.
  if (before && before->facts == info.facts && before->model_files == info.model_files) return {};
  if (auto done = db.run("DELETE FROM tt_fact; DELETE FROM tt_model_file"); !done) return done;

  auto fact = db.prepare("INSERT INTO tt_fact VALUES(?,?,?,?)");
  if (!fact) return std::unexpected(fact.error());
  std::int64_t ordinal = 0;
  for (const auto& [name, value] : info.facts)
    if (auto done = RowWriter(*fact).integer(ordinal++).text(name).text(value).insert(); !done)
      return done;

  auto file = db.prepare("INSERT INTO tt_model_file VALUES(?,?,?,?,?,?)");
  if (!file) return std::unexpected(file.error());
  std::int64_t id = 0;
  for (const ModelFile& f : info.model_files) {
    const auto done = RowWriter(*file)
                          .integer(id++)
                          .text(f.path)
                          .integer_u64(f.size)
                          .integer(f.mtime_ns)
                          .text(f.header_hash)
                          .insert();
    if (!done) return done;
  }
  return {};
}

std::expected<SessionInfo, TraceError> read_info(const Database& db) {
  auto meta = read_meta(db);
  if (!meta) return std::unexpected(meta.error());
  SessionInfo info;
  info.id = (*meta)["id"];
  info.title = (*meta)["title"];
  info.error = (*meta)["error"];
  info.exact_timing = (*meta)["exact_timing"] == "1";

  const auto level = enum_of((*meta)["level"], Level::Verbose);
  const auto state = enum_of((*meta)["state"], SessionState::Recovered);
  const auto start = meta_number(*meta, "start_utc_ns");
  if (!level || !state || !start || info.id.empty())
    return std::unexpected(damaged(db, "tt_meta lacks required keys"));
  info.level = *level;
  info.state = *state;
  info.start_utc_ns = *start;
  for (const auto& [key, field, max] : kShape) {
    const auto v = meta_number(*meta, key);
    if (!v || !std::in_range<std::uint32_t>(*v))
      return std::unexpected(damaged(db, std::string("tt_meta lacks ") + key));
    if (std::cmp_greater(*v, max)) {
      return std::unexpected(
          damaged(db, std::format("{} is {}; a model has at most {}", key, *v, max)));
    }
    info.*field = static_cast<std::uint32_t>(*v);
  }

  TextBudget budget;
  const auto facts =
      for_each_row(db, "tt_fact", "SELECT ordinal, name, value, crc FROM tt_fact ORDER BY ordinal",
                   kMaxSessionFacts, [&](RowReader& in) -> Status {
                     const auto ordinal = in.integer<std::int64_t>();
                     std::string name(in.text()), value(in.text());
                     if (!in.valid() || !std::cmp_equal(ordinal, info.facts.size()))
                       return std::unexpected(damaged(db, "a row of tt_fact"));
                     if (!budget.take(name.size() + value.size()))
                       return std::unexpected(too_much_text(db));
                     info.facts.emplace_back(std::move(name), std::move(value));
                     return {};
                   });
  if (!facts) return std::unexpected(facts.error());

  const auto files = for_each_row(
      db, "tt_model_file",
      "SELECT id, path, size, mtime_ns, header_hash, crc FROM tt_model_file ORDER BY id",
      kMaxModelFiles, [&](RowReader& in) -> Status {
        const auto id = in.integer<std::int64_t>();
        ModelFile f;
        f.path = in.text();
        f.size = in.integer<std::uint64_t>();
        f.mtime_ns = in.integer<std::int64_t>();
        f.header_hash = in.text();
        if (!in.valid() || !std::cmp_equal(id, info.model_files.size()))
          return std::unexpected(damaged(db, "a row of tt_model_file"));
        if (!budget.take(f.path.size() + f.header_hash.size()))
          return std::unexpected(too_much_text(db));
        info.model_files.push_back(std::move(f));
        return {};
      });
  if (!files) return std::unexpected(files.error());
  return info;
}

Status write_losses(const Database& db, const LossCounters& losses) {
  auto insert = db.prepare("INSERT OR REPLACE INTO tt_loss VALUES(?,?,?)");
  if (!insert) return std::unexpected(insert.error());
  for (const auto& [name, field] : kLosses)
    if (auto done = RowWriter(*insert).text(name).integer_u64(losses.*field).insert(); !done)
      return done;
  return {};
}

std::expected<LossCounters, TraceError> read_losses(const Database& db) {
  LossCounters losses;
  const auto done = for_each_row(db, "tt_loss", "SELECT name, count, crc FROM tt_loss",
                                 kMaxLossRows, [&](RowReader& in) -> Status {
                                   const std::string name(in.text());
                                   const auto count = in.integer<std::uint64_t>();
                                   if (!in.valid())
                                     return std::unexpected(damaged(db, "a row of tt_loss"));
                                   for (const auto& [known, field] : kLosses)
                                     if (name == known) losses.*field = count;
                                   return {};
                                 });
  if (!done) return std::unexpected(done.error());
  return losses;
}

}  // namespace tt
