#include "tracer/format/file/session_reader.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <span>
#include <utility>

#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/file_header.h"
#include "tracer/format/file/session_reader_impl.h"
#include "tracer/format/file/session_schema.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

namespace fs = std::filesystem;

// Long sessions have hundreds of templates of half a megabyte each.
constexpr std::size_t kMaxCachedTemplates = 32;
// Text of the tokens that one call returns. Rows of a crafted file can share their pages, so the
// size of the file is no limit.
constexpr std::size_t kMaxTokenBytes = 64u << 20;

// Those that a file of this version contains.
std::span<const StepCondition> conditions_of(std::uint32_t version) {
  constexpr std::span<const StepCondition> kAll = kStepConditions;
  switch (version) {
    case 1:
    case 2:
      return {};
    case 3:
      return kAll.first(12);  // up to pressure_memory_ns
    case 4:
      return kAll.first(18);  // up to graphs_built
    default:
      return kAll;
  }
}

// A query of all steps, without WHERE.
std::string select_steps(std::uint32_t version) {
  std::string sql =
      "SELECT id, phase, timing, template, allocation, begin_ns, end_ns, first_op_ns, first_token, "
      "n_tokens, threads, n_ops, dropped, aborted, ";
  for (const StepCondition& condition : conditions_of(version))
    sql += std::string(condition.name) + ", ";
  return sql + "packed, crc FROM tt_step ";
}

// Opens a connection and reads the schema, because SQLite opens the file lazily.
std::expected<Database, TraceError> connect(const fs::path& path, Database::Mode mode) {
  auto db = Database::open(path, mode);
  if (!db) return db;
  db->busy_timeout(2000);
  // Allows SQLite to open a truncated file and read up to its end. Nothing is written: the
  // connection is read-only.
  sqlite3_db_config(db->get(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  if (auto schema = check_schema(*db); !schema) return std::unexpected(schema.error());
  return db;
}

// A change of the file, such as a rename of the session, was interrupted: SQLite undoes it when the
// file is opened for writing. A read-only connection cannot, and an immutable one reads the half.
// The journal of a change that is being made is left alone.
Status roll_back(const fs::path& path) {
  std::error_code none;
  const fs::path journal = path.string() + "-journal";
  const auto bytes = fs::file_size(journal, none);
  if (none || bytes == 0) return {};
  const auto undone = connect(path, Database::Mode::ReadWrite);
  if (undone || !fs::exists(journal, none)) return {};
  if (undone.error().kind != TraceError::Kind::ReadOnly) return std::unexpected(undone.error());
  return std::unexpected(TraceError{
      TraceError::Kind::ReadOnly,
      std::format("a change of {} was interrupted and must be undone first, but its folder is not "
                  "writable. Copy the file and its -journal file into a writable folder.",
                  path.string())});
}

// Falls back to immutable mode: in a read-only folder, a file in WAL mode can be opened only
// if its WAL is empty.
std::expected<Database, TraceError> connect_with_fallback(const fs::path& path) {
  auto db = connect(path, Database::Mode::ReadOnly);
  if (db || db.error().kind == TraceError::Kind::Damaged) return db;
  std::error_code none;
  const auto wal_bytes = fs::file_size(path.string() + "-wal", none);
  if (none || wal_bytes == 0) {
    auto immutable = connect(path, Database::Mode::Immutable);
    if (immutable) return immutable;
  } else if (db.error().kind != TraceError::Kind::Io) {
    return std::unexpected(TraceError{
        TraceError::Kind::ReadOnly,
        path.string() + " was not finished and its folder is not writable. Copy the file and "
                        "its -wal file into a writable folder."});
  }
  return db;
}

// A snapshot of all tables. Within another one: a part of it.
class ReadTransaction {
 public:
  explicit ReadTransaction(const Database& db)
      : db_(db), began_(sqlite3_get_autocommit(db.get()) != 0 && db.run("BEGIN").has_value()) {}
  ~ReadTransaction() { end(); }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  void end() {
    if (std::exchange(began_, false)) (void)db_.run("COMMIT");
  }

 private:
  const Database& db_;
  bool began_;
};

std::size_t bytes_of(const Step& step) {
  std::size_t bytes =
      sizeof step + std::span(step.op_ends).size_bytes() + std::span(step.stats).size_bytes();
  for (const SlotValues& slot : step.slots)
    bytes += sizeof slot + std::span(slot.ints).size_bytes() + std::span(slot.floats).size_bytes();
  return bytes;
}

// Of a schema that was checked.
std::uint32_t version_number(const std::string& text) {
  return parse_number<std::uint32_t>(text).value_or(0);
}

}  // namespace

// The total in tt_meta, written at the end of a session; until then, the last row's id + 1.
std::expected<std::uint32_t, TraceError> SessionReader::Impl::count(const char* table,
                                                                    const char* id,
                                                                    const char* total) const {
  if (const auto meta = read_meta(db)) {
    const auto n = meta_number(*meta, total);
    if (n && std::in_range<std::uint32_t>(*n)) return static_cast<std::uint32_t>(*n);
  }
  return rows(table, id);
}

std::expected<std::uint32_t, TraceError> SessionReader::Impl::rows(const char* table,
                                                                   const char* id) const {
  const auto last = db.query_value(std::format("SELECT max({}) + 1 FROM {}", id, table).c_str());
  if (!last) return std::unexpected(last.error());
  if (last->empty()) return 0;
  const auto n = parse_number<std::uint32_t>(*last);
  if (!n) return std::unexpected(damage(table));
  return *n;
}

std::expected<std::shared_ptr<const GraphTemplate>, TraceError> SessionReader::Impl::read_template(
    TemplateId id) {
  if (auto ready = prepare(get_template,
                           "SELECT id, fingerprint, n_tensors, n_nodes, n_ops, n_slots, packed, "
                           "crc FROM tt_template WHERE id = ?");
      !ready)
    return std::unexpected(ready.error());
  const ScopedReset reset(get_template);
  sqlite3_bind_int64(get_template.get(), 1, id.v);
  const auto row = get_template.step();
  if (!row) return std::unexpected(row.error());
  const std::string name = std::format("template {}", id.v);
  if (!*row) {
    const auto all = count("tt_template", "id", "templates");
    return std::unexpected(all ? absent(std::format("{}: it has {}, numbered from 1", name, *all))
                               : all.error());
  }

  RowReader in(get_template);
  const auto stored_id = in.integer<std::uint32_t>();
  const std::string_view fingerprint = in.text();
  std::array<std::uint64_t, 4> counts{};
  for (auto& n : counts) n = in.integer<std::uint64_t>();
  const auto packed = in.blob();
  if (!in.valid() || stored_id != id.v) return std::unexpected(damage(name));
  auto graph = unpack_template(packed);
  if (!graph) return std::unexpected(damage(name + ", " + graph.error().text()));
  if (counts != std::array<std::uint64_t, 4>{graph->tensors.size(), graph->nodes.size(),
                                             graph->ops.size(), graph->slots.size()})
    return std::unexpected(damage(name + ", its counts"));
  const auto number = parse_number<std::uint64_t>(fingerprint, 16);
  if (!number) return std::unexpected(damage(name + ", its fingerprint"));
  graph->fingerprint = *number;
  return std::make_shared<const GraphTemplate>(std::move(*graph));
}

// Decodes the current row of `statement`, which must be that of step `id`.
Status SessionReader::Impl::read_row(const Statement& statement, StepId id, StepRow& row) const {
  RowReader in(statement);
  Step& step = row.head;
  step.id = StepId{in.integer<std::uint32_t>()};
  const auto phase = enum_of(in.text(), Phase::Other);
  const auto timing = enum_of(in.text(), Timing::None);
  step.graph = TemplateId{in.integer<std::uint32_t>()};
  step.allocation = AllocationId{in.integer<std::uint32_t>()};
  step.begin = Ns{in.integer<std::int64_t>()};
  step.end = Ns{in.integer<std::int64_t>()};
  step.first_op = Ns{in.integer<std::int64_t>()};
  step.first_token = in.integer<std::uint32_t>();
  step.n_tokens = in.integer<std::uint32_t>();
  step.threads = in.integer<std::uint32_t>();
  row.ops = in.integer<std::uint64_t>();
  step.dropped = in.flag();
  step.aborted = in.flag();
  for (const StepCondition& of : conditions_of(version))
    step.conditions.*of.value = in.integer_u64_or_null();
  row.packed = in.blob();
  if (!in.valid() || !phase || !timing || step.id != id)
    return std::unexpected(damage(std::format("step {}", id.v)));
  step.phase = *phase;
  step.timing = *timing;
  return {};
}

std::expected<Step, TraceError> SessionReader::Impl::read_step(StepId id) {
  if (auto ready = prepare(get_step, select_steps + "WHERE id = ?"); !ready)
    return std::unexpected(ready.error());
  const ScopedReset reset(get_step);
  sqlite3_bind_int64(get_step.get(), 1, id.v);
  const auto found = get_step.step();
  if (!found) return std::unexpected(found.error());
  const std::string name = std::format("step {}", id.v);
  if (!*found) return std::unexpected(absent(name));

  StepRow row;
  if (auto read = read_row(get_step, id, row); !read) return std::unexpected(read.error());
  if (const auto unpacked = unpack_step(row.packed, row.head); !unpacked)
    return std::unexpected(damage(name + ", " + unpacked.error().text()));
  if (row.head.op_ends.size() != row.ops) return std::unexpected(damage(name + ", its op count"));
  return std::move(row.head);
}

Status SessionReader::Impl::read_tokens(std::uint32_t first, std::uint32_t count,
                                        std::vector<Token>& out) {
  const bool has_sequences = version >= 7;
  const char* select = has_sequences
                           ? "SELECT idx, id, position, generated, reused, sequence, draft, text, "
                             "crc FROM tt_token WHERE idx >= ? ORDER BY idx LIMIT ?"
                           : "SELECT idx, id, position, generated, reused, text, crc "
                             "FROM tt_token WHERE idx >= ? ORDER BY idx LIMIT ?";
  if (auto ready = prepare(get_tokens, select); !ready) return ready;
  const ScopedReset reset(get_tokens);
  sqlite3_bind_int64(get_tokens.get(), 1, first);
  sqlite3_bind_int64(get_tokens.get(), 2, count);
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = first + i;
    const auto row = get_tokens.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::unexpected(damage(std::format("token {} is missing", index)));
    RowReader in(get_tokens);
    Token t;
    t.index = in.integer<std::uint32_t>();
    t.id = in.integer<std::int32_t>();
    t.position = in.integer<std::int32_t>();
    t.generated = in.flag();
    t.reused = in.flag();
    bool known = true;
    if (has_sequences) {
      const auto sequence = in.integer_u64_or_null();
      const auto draft = enum_of(in.text(), Draft::Unknown);
      known = draft && std::in_range<std::uint32_t>(sequence.value_or(0));
      if (sequence) t.sequence = static_cast<std::uint32_t>(*sequence);
      t.draft = draft.value_or(Draft::None);
    }
    const auto text = in.blob();
    t.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
    bytes += text.size();
    if (!in.valid() || !known || t.index != index || bytes > kMaxTokenBytes)
      return std::unexpected(damage(std::format("token {}", index)));
    out.push_back(std::move(t));
  }
  return {};
}

SessionReader::SessionReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SessionReader::SessionReader(SessionReader&&) noexcept = default;
SessionReader& SessionReader::operator=(SessionReader&&) noexcept = default;
SessionReader::~SessionReader() = default;

std::expected<SessionReader, TraceError> SessionReader::open(const fs::path& path) {
  if (auto header = check_file_header(path); !header) return std::unexpected(header.error());
  if (auto undone = roll_back(path); !undone) return std::unexpected(undone.error());
  auto db = connect_with_fallback(path);
  if (!db) return std::unexpected(db.error());
  const auto version = db->query_value("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  const std::uint32_t number = version_number(*version);
  return SessionReader(std::make_unique<Impl>(path, std::move(*db), number, select_steps(number)));
}

const fs::path& SessionReader::path() const { return impl_->path; }

void SessionReader::hold(std::shared_ptr<const void> lease) { impl_->lease = std::move(lease); }

std::expected<SessionInfo, TraceError> SessionReader::info() const {
  const ReadTransaction transaction(impl_->db);
  return read_info(impl_->db);
}

std::expected<LossCounters, TraceError> SessionReader::losses() const {
  return read_losses(impl_->db);
}

std::expected<std::uint32_t, TraceError> SessionReader::step_count() const {
  if (impl_->readable) return impl_->readable->steps;
  return impl_->count("tt_step", "id", "steps");
}

std::expected<std::uint32_t, TraceError> SessionReader::step_rows() const {
  if (impl_->readable) return impl_->readable->steps;
  return impl_->rows("tt_step", "id");
}

std::expected<std::uint32_t, TraceError> SessionReader::token_count() const {
  if (impl_->readable) return impl_->readable->tokens;
  return impl_->count("tt_token", "idx", "tokens");
}

std::expected<std::vector<TemplateId>, TraceError> SessionReader::template_ids() const {
  if (const auto& readable = impl_->readable)
    return std::vector<TemplateId>(readable->templates.begin(), readable->templates.end());
  auto statement = impl_->db.prepare("SELECT id FROM tt_template ORDER BY id");
  if (!statement) return std::unexpected(statement.error());
  std::vector<TemplateId> ids;
  while (true) {
    const auto row = statement->step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return ids;
    const std::int64_t id = sqlite3_column_int64(statement->get(), 0);
    // 0 means "no template".
    if (id == 0 || !std::in_range<std::uint32_t>(id))
      return std::unexpected(impl_->damage("a row of tt_template"));
    if (ids.size() == kMaxTemplates)
      return std::unexpected(impl_->damage(std::format("more than {} templates", kMaxTemplates)));
    ids.push_back(TemplateId{static_cast<std::uint32_t>(id)});
  }
}

std::expected<std::shared_ptr<const GraphTemplate>, TraceError> SessionReader::graph(
    TemplateId id) const {
  auto& cache = impl_->templates;
  const auto found = std::ranges::find(cache, id, [](const auto& entry) { return entry.first; });
  if (found != cache.end()) {
    std::rotate(found, found + 1, cache.end());
    return cache.back().second;
  }
  auto graph = impl_->read_template(id);
  if (!graph) return graph;
  if (cache.size() == kMaxCachedTemplates) cache.erase(cache.begin());
  cache.emplace_back(id, *graph);
  return graph;
}

std::expected<Allocation, TraceError> SessionReader::allocation(AllocationId id) const {
  Statement& get = impl_->get_allocation;
  if (auto ready = impl_->prepare(get,
                                  "SELECT id, template, n_addresses, packed, crc "
                                  "FROM tt_allocation WHERE id = ?");
      !ready)
    return std::unexpected(ready.error());
  Allocation allocation;
  const std::string name = std::format("allocation {}", id.v);
  {
    const ScopedReset reset(get);
    sqlite3_bind_int64(get.get(), 1, id.v);
    const auto row = get.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::unexpected(impl_->absent(name));
    RowReader in(get);
    allocation.id = AllocationId{in.integer<std::uint32_t>()};
    allocation.graph = TemplateId{in.integer<std::uint32_t>()};
    const auto n = in.integer<std::uint64_t>();
    const auto packed = in.blob();
    if (!in.valid() || allocation.id != id) return std::unexpected(impl_->damage(name));
    auto addresses = unpack_addresses(packed);
    if (!addresses) return std::unexpected(impl_->damage(name + ", " + addresses.error().text()));
    if (addresses->size() != n) return std::unexpected(impl_->damage(name + ", its count"));
    allocation.addresses = std::move(*addresses);
  }
  // Callers index it by TensorId.
  const auto of = graph(allocation.graph);
  if (!of) return std::unexpected(of.error());
  if ((*of)->tensors.size() != allocation.addresses.size())
    return std::unexpected(impl_->damage(name + " does not fit its template"));
  return allocation;
}

std::expected<Step, TraceError> SessionReader::step(StepId id) const {
  if (impl_->readable && id.v >= impl_->readable->steps)
    return std::unexpected(impl_->absent(std::format("readable step {}", id.v)));
  auto step = impl_->read_step(id);
  if (!step && step.error().kind == TraceError::Kind::NotFound) {
    // A missing row before the end is damage. If the end has moved past the step, a writer may
    // have added it since the first read: read again.
    const auto n = step_count();
    if (!n) return std::unexpected(n.error());
    if (id.v >= *n) {
      return std::unexpected(
          impl_->absent(std::format("step {}: it has {}, numbered from 0", id.v, *n)));
    }
    step = impl_->read_step(id);
    if (!step && step.error().kind == TraceError::Kind::NotFound)
      return std::unexpected(impl_->damage(std::format("step {} is missing", id.v)));
  }
  if (!step) return step;
  // Callers index these by OpId and SlotId.
  std::size_t ops = 0, slots = 0;
  if (step->graph.v != 0) {
    const auto of = graph(step->graph);
    if (!of) return std::unexpected(of.error());
    ops = (*of)->ops.size();
    slots = (*of)->slots.size();
  }
  const bool fits =
      step->op_ends.size() <= ops && (step->slots.empty() || step->slots.size() == slots) &&
      std::ranges::all_of(step->stats, [&](const ValueStats& s) { return s.op.v < ops; });
  if (!fits)
    return std::unexpected(impl_->damage(std::format("step {} does not fit its template", id.v)));
  return step;
}

std::expected<std::vector<Token>, TraceError> SessionReader::tokens(std::uint32_t first,
                                                                    std::uint32_t count) const {
  const auto total = token_count();
  if (!total) return std::unexpected(total.error());
  if (first >= *total) return std::vector<Token>{};
  count = std::min(count, *total - first);

  std::vector<Token> tokens;
  if (auto read = impl_->read_tokens(first, count, tokens); !read)
    return std::unexpected(read.error());
  return tokens;
}

// Read in batches: for a query outside of a transaction, SQLite locks the file and looks for a
// journal, which takes longer than to read a small step. No lock is held while `row` runs, which
// may wait for a slow client.
Status SessionReader::for_each_step(StepId first, std::uint32_t count,
                                    const std::function<bool(const Step&)>& row) const {
  constexpr std::size_t kMaxBatch = 256, kBatchBytes = 1u << 20;
  std::vector<Step> batch;
  std::size_t wanted = 1;  // grows: `row` may stop at an early step
  for (std::uint32_t done = 0; done < count;) {
    ReadTransaction transaction(impl_->db);
    batch.clear();
    std::optional<TraceError> error;
    for (std::size_t bytes = 0;
         batch.size() < wanted && batch.size() < count - done && bytes < kBatchBytes;) {
      auto next = step(StepId{first.v + done + static_cast<std::uint32_t>(batch.size())});
      if (!next) {
        error = std::move(next.error());
        break;
      }
      bytes += bytes_of(*next);
      batch.push_back(*std::move(next));
    }
    transaction.end();
    for (const Step& each : batch)
      if (!row(each)) return {};
    done += static_cast<std::uint32_t>(batch.size());
    wanted = std::min(2 * wanted, kMaxBatch);
    // The first step that a batch lacks may have been added since.
    const bool at_end = error && error->kind == TraceError::Kind::NotFound;
    if (error && !(at_end && !batch.empty()))
      return at_end ? Status() : std::unexpected(*std::move(error));
  }
  return {};
}

Status SessionReader::for_each_step_row(StepId first, std::uint32_t count,
                                        const std::function<bool(const StepRow&)>& row) const {
  // An open statement is a snapshot that prevents the writer from merging its WAL: read in
  // batches.
  constexpr std::uint32_t kStepBatch = 4096;
  std::uint64_t end = std::uint64_t{first.v} + count;
  if (impl_->readable) end = std::min<std::uint64_t>(end, impl_->readable->steps);
  if (end <= first.v) return {};
  Statement& get = impl_->get_steps;
  if (auto ready = impl_->prepare(get, impl_->select_steps + "WHERE id >= ? ORDER BY id LIMIT ?");
      !ready)
    return std::unexpected(ready.error());
  StepRow next;
  std::uint64_t known_steps = 0;  // steps that existed before the statement began
  for (std::uint64_t i = first.v; i < end;) {
    const ScopedReset reset(get);
    const std::uint64_t stop = std::min(i + kStepBatch, end);
    sqlite3_bind_int64(get.get(), 1, static_cast<std::int64_t>(i));
    sqlite3_bind_int64(get.get(), 2, static_cast<std::int64_t>(stop - i));
    for (; i < stop; ++i) {
      const StepId id{static_cast<std::uint32_t>(i)};
      const auto found = get.step();
      if (!found) return std::unexpected(found.error());
      if (!*found || sqlite3_column_int64(get.get(), 0) != static_cast<std::int64_t>(i)) {
        const auto total = step_count();
        if (!total) return std::unexpected(total.error());
        if (i >= *total) return {};
        if (*found || i < known_steps)
          return std::unexpected(impl_->damage(std::format("step {} is missing", i)));
        // End of the snapshot; the writer has added steps since.
        known_steps = *total;
        break;
      }
      if (auto read = impl_->read_row(get, id, next); !read) return read;
      if (!row(next)) return {};
    }
  }
  return {};
}

Status SessionReader::Impl::for_each_list(
    StepList list, const char* columns, StepId first, std::uint32_t count,
    const std::function<std::expected<bool, TraceError>(RowReader&, StepId)>& row) {
  // An open statement is a snapshot that prevents the writer from merging its WAL: read in
  // batches.
  constexpr int kRowBatch = 1024;
  const auto& [table, since] = kStepLists[static_cast<std::size_t>(list)];
  if (version < since) return {};
  std::uint64_t end = std::uint64_t{first.v} + count;
  if (readable) {
    if (readable->unreadable[static_cast<std::size_t>(list)]) return {};
    end = std::min<std::uint64_t>(end, readable->steps);
  }
  Statement& get = get_lists[static_cast<std::size_t>(list)];
  if (auto ready = prepare(get, std::format("SELECT step, {}, packed, crc FROM {} "
                                            "WHERE step >= ? AND step < ? ORDER BY step LIMIT ?",
                                            columns, table));
      !ready)
    return ready;
  for (std::uint64_t at = first.v; at < end;) {
    const ScopedReset reset(get);
    sqlite3_bind_int64(get.get(), 1, static_cast<std::int64_t>(at));
    sqlite3_bind_int64(get.get(), 2, static_cast<std::int64_t>(end));
    sqlite3_bind_int64(get.get(), 3, kRowBatch);
    for (int i = 0; at < end; ++i) {  // does not step past the last row
      const auto found = get.step();
      if (!found) return std::unexpected(found.error());
      if (!*found && i < kRowBatch) return {};
      if (!*found) break;
      RowReader in(get);
      const StepId step{in.integer<std::uint32_t>()};
      const auto next = row(in, step);
      if (!next) return std::unexpected(next.error());
      if (step.v < at) return std::unexpected(damage(std::format("the order of {}", table)));
      at = std::uint64_t{step.v} + 1;
      if (!*next) return {};
    }
  }
  return {};
}

Status SessionReader::for_each_faults(StepId first, std::uint32_t count,
                                      const std::function<bool(const StepFaults&)>& row,
                                      FaultKind kind) const {
  const auto read = [&](RowReader& in, StepId step) -> std::expected<bool, TraceError> {
    StepFaults next{.step = step, .count = 0, .faults = {}};
    const auto begin = Ns{in.integer<std::int64_t>()};
    next.count = in.integer<std::uint64_t>();
    const auto packed = in.blob();
    const std::string name = std::format("the page faults of step {}", step.v);
    if (!in.valid()) return std::unexpected(impl_->damage(name));
    auto faults = unpack_faults(packed, begin);
    if (!faults) return std::unexpected(impl_->damage(name + ", " + faults.error().text()));
    next.faults = *std::move(faults);
    if (!next.faults.empty() && next.faults.size() != next.count)
      return std::unexpected(impl_->damage(name + ", their count"));
    return row(next);
  };
  const StepList list = kind == FaultKind::Major ? StepList::MajorFaults : StepList::MinorFaults;
  return impl_->for_each_list(list, "begin_ns, n_faults", first, count, read);
}

Status SessionReader::for_each_residency(
    StepId first, std::uint32_t count, const std::function<bool(const StepResidency&)>& row) const {
  const auto read = [&](RowReader& in, StepId step) -> std::expected<bool, TraceError> {
    StepResidency next;
    next.step = step;
    next.at = Ns{in.integer<std::int64_t>()};
    next.unit = in.integer<std::uint64_t>();
    const auto ranges = in.integer<std::uint64_t>();
    const auto packed = in.blob();
    const std::string name = std::format("the ranges in memory before step {}", step.v);
    if (!in.valid()) return std::unexpected(impl_->damage(name));
    auto resident = unpack_ranges(packed);
    if (!resident) return std::unexpected(impl_->damage(name + ", " + resident.error().text()));
    if (resident->size() != ranges) return std::unexpected(impl_->damage(name + ", their count"));
    next.resident = *std::move(resident);
    return row(next);
  };
  return impl_->for_each_list(StepList::Residency, "at_ns, unit_bytes, n_ranges", first, count,
                              read);
}

Status SessionReader::for_each_values(StepId first, std::uint32_t count,
                                      const std::function<bool(const StepValues&)>& row) const {
  const auto read = [&](RowReader& in, StepId id) -> std::expected<bool, TraceError> {
    StepValues next;
    next.step = id;
    const auto outputs = in.integer<std::uint64_t>();
    next.not_captured = in.integer<std::uint64_t>();
    const auto packed = in.blob();
    const std::string name = std::format("the captured values of step {}", id.v);
    if (!in.valid()) return std::unexpected(impl_->damage(name));
    auto values = unpack_values(packed);
    if (!values) return std::unexpected(impl_->damage(name + ", " + values.error().text()));
    if (values->size() != outputs) return std::unexpected(impl_->damage(name + ", their count"));
    if (!values->empty()) {
      // Callers index the ops of the step's template by them.
      const auto of = graph_of_step(id);
      if (!of) return std::unexpected(of.error());
      const std::size_t ops = *of == nullptr ? 0 : (*of)->ops.size();
      if (values->back().op.v >= ops) return std::unexpected(impl_->damage(name + ", their ops"));
    }
    next.outputs = *std::move(values);
    return row(next);
  };
  return impl_->for_each_list(StepList::Values, "n_outputs, n_not_captured", first, count, read);
}

Status SessionReader::for_each_splits(StepId first, std::uint32_t count,
                                      const std::function<bool(const StepSplits&)>& row) const {
  const auto read = [&](RowReader& in, StepId id) -> std::expected<bool, TraceError> {
    const auto begin = Ns{in.integer<std::int64_t>()};
    const auto n_splits = in.integer<std::uint64_t>();
    const auto packed = in.blob();
    const std::string name = std::format("the splits of step {}", id.v);
    if (!in.valid()) return std::unexpected(impl_->damage(name));
    auto next = unpack_splits(packed, begin);
    if (!next) return std::unexpected(impl_->damage(name + ", " + next.error().text()));
    if (next->splits.size() != n_splits)
      return std::unexpected(impl_->damage(name + ", their count"));
    next->step = id;
    // Callers index the ops and tensors of the step's template by them.
    const auto of = graph_of_step(id);
    if (!of) return std::unexpected(of.error());
    const std::size_t ops = *of == nullptr ? 0 : (*of)->ops.size();
    const std::size_t tensors = *of == nullptr ? 0 : (*of)->tensors.size();
    if (!are_of_graph(*next, ops, tensors))
      return std::unexpected(impl_->damage(name + ", their ops or tensors"));
    return row(*next);
  };
  return impl_->for_each_list(StepList::Splits, "begin_ns, n_splits", first, count, read);
}

std::expected<std::shared_ptr<const GraphTemplate>, TraceError> SessionReader::graph_of_step(
    StepId id) const {
  const auto of = step(id);
  if (!of) return std::unexpected(of.error());
  return of->graph.v == 0 ? nullptr : graph(of->graph).value_or(nullptr);
}

std::expected<std::optional<StepId>, TraceError> SessionReader::last_residency(StepId step) const {
  const auto list = static_cast<std::size_t>(StepList::Residency);
  if (impl_->version < kStepLists[list].since) return std::nullopt;
  std::uint64_t end = std::uint64_t{step.v} + 1;
  if (impl_->readable) {
    if (impl_->readable->unreadable[list]) return std::nullopt;
    end = std::min<std::uint64_t>(end, impl_->readable->steps);
  }
  Statement& get = impl_->get_last_residency;
  if (auto ready = impl_->prepare(
          get, "SELECT step FROM tt_residency WHERE step < ? ORDER BY step DESC LIMIT 1");
      !ready)
    return std::unexpected(ready.error());
  const ScopedReset reset(get);
  sqlite3_bind_int64(get.get(), 1, static_cast<std::int64_t>(end));
  const auto found = get.step();
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return StepId{static_cast<std::uint32_t>(sqlite3_column_int64(get.get(), 0))};
}

}  // namespace tt
