#include "tracer/format/file/session_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <format>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_owner.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {

namespace {

namespace fs = std::filesystem;

constexpr int kReserveBytes = 64 * 1024;
constexpr int kReaderTimeoutMs = 200;

fs::path with_suffix(const fs::path& path, const char* suffix) { return path.string() + suffix; }

// Renames without replacing an existing file; atomically if the file system supports it.
Status rename_new(const fs::path& from, const fs::path& to) {
  const auto fail = [&](int error_number) -> Status {
    if (error_number == EEXIST)
      return std::unexpected(TraceError{TraceError::Kind::Io, to.string() + " already exists"});
    return std::unexpected(TraceError{
        TraceError::Kind::Io,
        std::format("{} cannot be created: {}", to.string(), std::strerror(error_number))});
  };
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return fail(errno);
  if (fs::exists(to)) return fail(EEXIST);
  if (::rename(from.c_str(), to.c_str()) != 0) return fail(errno);
  return {};
}

// Creates the tables and writes the metadata, without WAL. No one else uses the file yet: no
// journal file is needed, and one flush is enough.
Status create_file(const fs::path& path, const SessionInfo& info) {
  auto db = Database::open(path, Database::Mode::Create);
  if (!db) return std::unexpected(db.error());
  const std::string pragmas = std::format(
      "PRAGMA page_size=4096; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=NORMAL; "
      "BEGIN; PRAGMA application_id={}; PRAGMA user_version={}",
      kApplicationId, kFormatVersion);
  return db->run(pragmas.c_str())
      .and_then([&] { return db->run(kCreateTables); })
      .and_then([&] { return write_info(*db, info); })
      .and_then([&] { return write_meta(*db, owner_of_this_process()); })
      .and_then([&] { return db->run("COMMIT"); });
}

// Switches to WAL mode and checks that it works: the first transaction maps the -shm file.
Status switch_to_wal(const Database& db, const fs::path& path) {
  const auto mode = db.query_value("PRAGMA journal_mode=WAL");
  if (!mode) return std::unexpected(mode.error());
  if (*mode != "wal")
    return std::unexpected(
        TraceError{TraceError::Kind::WalUnsupported,
                   "the file system that holds " + path.string() +
                       " does not support shared memory, which recording needs (WAL). Choose a "
                       "folder for sessions on a local disk."});
  return db.run("PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE; COMMIT");
}

// Reserves disk space for the final state of a session, in case the disk becomes full.
// Failure to reserve is ignored.
void reserve_disk_space(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return;
  (void)posix_fallocate(fd, 0, kReserveBytes);
  ::close(fd);
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

TraceError encode_error(const DecodeError& error, const char* what) {
  return {TraceError::Kind::Io, std::format("a {} cannot be stored: {}", what, error.text())};
}

}  // namespace

struct SessionWriter::Impl {
  Impl(fs::path file, Database database) : path(std::move(file)), db(std::move(database)) {}

  fs::path path;
  std::optional<Database> db;  // empty after finish()
  Statement begin, commit, add_template, add_allocation, add_token, replace_token, add_step,
      add_faults, add_minor_faults, add_residency, add_values, add_splits, page_count;
  bool in_transaction = false;
  std::optional<TraceError> failed;
  std::uint32_t steps = 0, tokens = 0;
  std::unordered_map<TemplateId, std::pair<std::size_t, std::size_t>> ops_and_slots;
  std::atomic<std::uint64_t> bytes{0};

  Status prepare();
  Status run(Statement& statement);
  // Begins a transaction if none is open, then inserts. After the first error, nothing more is
  // written and the open transaction is rolled back.
  template <class Insert>
  Status add(Insert insert);
  Status close_transaction();
  void fail(const TraceError& error);
  Status write_final_state(const SessionInfo& info, const LossCounters& losses);
  Status merge_wal();
  static Status write_token(Statement& insert, const Token& token);
  // Finalizes the statements before it closes the connection: the last close removes the WAL.
  void disconnect();
  // A new connection, after an error that the old one keeps (shared_memory_guard.h).
  Status reconnect();
};

Status SessionWriter::Impl::write_token(Statement& insert, const Token& t) {
  return RowWriter(insert)
      .integer(t.index)
      .integer(t.id)
      .integer(t.position)
      .integer(t.generated)
      .integer(t.reused)
      .integer_u64_or_null(t.sequence)
      .text(to_text(t.draft))
      .blob(std::as_bytes(std::span(t.text)))
      .insert();
}

Status SessionWriter::Impl::prepare() {
  constexpr std::size_t kOtherColumns = 16;  // before the conditions and behind them
  std::string insert_step = "INSERT INTO tt_step VALUES(?";
  for (std::size_t i = 1; i < kOtherColumns + kStepConditions.size(); ++i) insert_step += ",?";
  insert_step += ")";
  const std::pair<Statement*, const char*> all[] = {
      {&begin, "BEGIN IMMEDIATE"},
      {&commit, "COMMIT"},
      {&add_template, "INSERT INTO tt_template VALUES(?,?,?,?,?,?,?,?)"},
      {&add_allocation, "INSERT INTO tt_allocation VALUES(?,?,?,?,?)"},
      {&add_step, insert_step.c_str()},
      {&add_faults, "INSERT INTO tt_fault VALUES(?,?,?,?,?)"},
      {&add_minor_faults, "INSERT INTO tt_minor_fault VALUES(?,?,?,?,?)"},
      {&add_residency, "INSERT INTO tt_residency VALUES(?,?,?,?,?,?)"},
      {&add_values, "INSERT INTO tt_value VALUES(?,?,?,?,?)"},
      {&add_splits, "INSERT INTO tt_split VALUES(?,?,?,?,?)"},
      {&add_token, "INSERT INTO tt_token VALUES(?,?,?,?,?,?,?,?,?)"},
      {&replace_token, "REPLACE INTO tt_token VALUES(?,?,?,?,?,?,?,?,?)"},
      {&page_count, "PRAGMA page_count"},
  };
  for (const auto& [statement, sql] : all) {
    auto prepared = db->prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  return {};
}

Status SessionWriter::Impl::run(Statement& statement) {
  const auto done = statement.step();
  statement.reset();
  if (!done) return std::unexpected(done.error());
  return {};
}

template <class Insert>
Status SessionWriter::Impl::add(Insert insert) {
  if (failed) return std::unexpected(*failed);
  if (!in_transaction) {
    if (auto begun = run(begin); !begun) {
      fail(begun.error());
      return begun;
    }
    in_transaction = true;
  }
  Status done = insert();
  if (!done) fail(done.error());
  return done;
}

Status SessionWriter::Impl::close_transaction() {
  if (failed) return std::unexpected(*failed);
  if (!in_transaction) return {};
  if (auto done = run(commit); !done) {
    fail(done.error());
    return done;
  }
  in_transaction = false;
  if (const auto row = page_count.step(); row && *row)
    bytes.store(static_cast<std::uint64_t>(sqlite3_column_int64(page_count.get(), 0)) * 4096,
                std::memory_order_relaxed);
  page_count.reset();
  return {};
}

void SessionWriter::Impl::fail(const TraceError& error) {
  failed = error;
  // SQLite rolls back automatically after most errors.
  if (sqlite3_get_autocommit(db->get()) == 0) (void)db->run("ROLLBACK");
  in_transaction = false;
}

Status SessionWriter::Impl::write_final_state(const SessionInfo& info, const LossCounters& losses) {
  const auto write_total = [&](const char* key, const char* sql) {
    return db->query_value(sql).and_then(
        [&](const std::string& rows) { return write_meta(*db, Meta{{key, rows}}); });
  };
  return db->run("BEGIN IMMEDIATE")
      .and_then([&] { return write_info(*db, info); })
      .and_then([&] { return write_losses(*db, losses); })
      .and_then([&] { return write_total("steps", "SELECT count(*) FROM tt_step"); })
      .and_then([&] { return write_total("tokens", "SELECT count(*) FROM tt_token"); })
      .and_then([&] { return db->run("DELETE FROM tt_meta WHERE key LIKE 'owner.%'; COMMIT"); });
}

Status SessionWriter::Impl::merge_wal() {
  db->busy_timeout(kReaderTimeoutMs);
  if (auto done = db->run("PRAGMA wal_checkpoint(TRUNCATE)"); !done) return done;
  // Fails while a reader has the file open; the file then stays in WAL mode, complete and with
  // an empty WAL.
  (void)db->run("PRAGMA journal_mode=DELETE");
  return {};
}

void SessionWriter::Impl::disconnect() {
  for (Statement* s :
       {&begin, &commit, &add_template, &add_allocation, &add_token, &replace_token, &add_step,
        &add_faults, &add_minor_faults, &add_residency, &add_values, &add_splits, &page_count})
    *s = Statement();
  db.reset();
}

Status SessionWriter::Impl::reconnect() {
  disconnect();
  auto opened = Database::open(path, Database::Mode::ReadWrite);
  if (!opened) return std::unexpected(opened.error());
  db = *std::move(opened);
  return {};
}

SessionWriter::SessionWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SessionWriter::~SessionWriter() {
  if (impl_->db) remove_quietly(with_suffix(impl_->path, "-reserve"));
}

std::expected<std::unique_ptr<SessionWriter>, TraceError> SessionWriter::create(
    const fs::path& path, const SessionInfo& info) {
  // Create under a temporary name, so that a kill never leaves a partial file at `path`.
  const fs::path unfinished = with_suffix(path, "-new");
  remove_quietly(unfinished);
  auto made = create_file(unfinished, info).and_then([&] { return rename_new(unfinished, path); });
  if (!made) {
    remove_quietly(unfinished);
    return std::unexpected(made.error());
  }
  // Remove WAL files that a killed recording of the same name may have left, after its main
  // file was deleted: SQLite would use them for this file.
  for (const char* suffix : {"-wal", "-shm"}) remove_quietly(with_suffix(path, suffix));

  auto opened = [&]() -> std::expected<std::unique_ptr<SessionWriter>, TraceError> {
    auto db = Database::open(path, Database::Mode::ReadWrite);
    if (!db) return std::unexpected(db.error());
    if (auto wal = switch_to_wal(*db, path); !wal) return std::unexpected(wal.error());
    auto impl = std::make_unique<Impl>(path, std::move(*db));
    if (auto prepared = impl->prepare(); !prepared) return std::unexpected(prepared.error());
    return std::unique_ptr<SessionWriter>(new SessionWriter(std::move(impl)));
  }();
  if (!opened) {
    for (const char* suffix : {"", "-wal", "-shm"}) remove_quietly(with_suffix(path, suffix));
    return opened;
  }
  reserve_disk_space(with_suffix(path, "-reserve"));
  return opened;
}

Status SessionWriter::add_template(TemplateId id, const GraphTemplate& graph) {
  return impl_->add([&]() -> Status {
    if (impl_->ops_and_slots.size() == kMaxTemplates)
      return std::unexpected(
          TraceError{TraceError::Kind::Io,
                     std::format("a session can have at most {} templates", kMaxTemplates)});
    const auto packed = pack_template(graph);
    if (!packed) return std::unexpected(encode_error(packed.error(), "template"));
    impl_->ops_and_slots[id] = {graph.ops.size(), graph.slots.size()};
    return RowWriter(impl_->add_template)
        .integer(id.v)
        .text(std::format("{:016x}", graph.fingerprint))
        .integer_u64(graph.tensors.size())
        .integer_u64(graph.nodes.size())
        .integer_u64(graph.ops.size())
        .integer_u64(graph.slots.size())
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::set_start(std::int64_t utc_ns) {
  return impl_->add(
      [&] { return write_meta(*impl_->db, Meta{{"start_utc_ns", std::to_string(utc_ns)}}); });
}

Status SessionWriter::add_allocation(const Allocation& allocation) {
  return impl_->add([&]() -> Status {
    const auto packed = pack_addresses(allocation.addresses);
    if (!packed) return std::unexpected(encode_error(packed.error(), "allocation"));
    return RowWriter(impl_->add_allocation)
        .integer(allocation.id.v)
        .integer(allocation.graph.v)
        .integer_u64(allocation.addresses.size())
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::add_tokens(std::span<const Token> tokens) {
  return impl_->add([&]() -> Status {
    for (const Token& t : tokens) {
      assert(t.index == impl_->tokens);
      if (auto done = Impl::write_token(impl_->add_token, t); !done) return done;
      ++impl_->tokens;
    }
    return {};
  });
}

Status SessionWriter::replace_tokens(std::span<const Token> tokens) {
  return impl_->add([&]() -> Status {
    for (const Token& t : tokens) {
      assert(t.index < impl_->tokens);
      if (auto done = Impl::write_token(impl_->replace_token, t); !done) return done;
    }
    return {};
  });
}

Status SessionWriter::add_step(const Step& step) {
  return impl_->add([&]() -> Status {
    assert(step.id.v == impl_->steps);
#ifndef NDEBUG
    const auto known = impl_->ops_and_slots.find(step.graph);
    if (step.graph.v != 0) {
      assert(known != impl_->ops_and_slots.end());
      assert(step.op_ends.size() <= known->second.first);
      assert(step.slots.empty() || step.slots.size() == known->second.second);
    } else {
      assert(step.op_ends.empty() && step.slots.empty() && step.stats.empty());
    }
#endif
    const auto packed = pack_step(step);
    if (!packed) return std::unexpected(encode_error(packed.error(), "step"));
    RowWriter row(impl_->add_step);
    row.integer(step.id.v)
        .text(to_text(step.phase))
        .text(to_text(step.timing))
        .integer(step.graph.v)
        .integer(step.allocation.v)
        .integer(step.begin.v)
        .integer(step.end.v)
        .integer(step.first_op.v)
        .integer(step.first_token)
        .integer(step.n_tokens)
        .integer(step.threads)
        .integer_u64(step.op_ends.size())
        .integer(step.dropped)
        .integer(step.aborted);
    for (const StepCondition& of : kStepConditions)
      row.integer_u64_or_null(step.conditions.*of.value);
    const auto done = row.blob(*packed).insert();
    if (done) ++impl_->steps;
    return done;
  });
}

Status SessionWriter::add_faults(const StepFaults& faults, Ns begin, FaultKind kind) {
  return impl_->add([&]() -> Status {
    assert(faults.step.v < impl_->steps);
    const auto packed = pack_faults(faults, begin);
    if (!packed) return std::unexpected(encode_error(packed.error(), "list of page faults"));
    return RowWriter(kind == FaultKind::Major ? impl_->add_faults : impl_->add_minor_faults)
        .integer(faults.step.v)
        .integer(begin.v)
        .integer_u64(faults.count)
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::add_residency(const StepResidency& residency) {
  return impl_->add([&]() -> Status {
    assert(residency.step.v < impl_->steps);
    const auto packed = pack_ranges(residency.resident);
    if (!packed) return std::unexpected(encode_error(packed.error(), "list of ranges in memory"));
    return RowWriter(impl_->add_residency)
        .integer(residency.step.v)
        .integer(residency.at.v)
        .integer_u64(residency.unit)
        .integer_u64(residency.resident.size())
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::add_values(const StepValues& values) {
  return impl_->add([&]() -> Status {
    assert(values.step.v < impl_->steps);
    const auto packed = pack_values(values.outputs);
    if (!packed) return std::unexpected(encode_error(packed.error(), "list of captured values"));
    return RowWriter(impl_->add_values)
        .integer(values.step.v)
        .integer_u64(values.outputs.size())
        .integer_u64(values.not_captured)
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::add_splits(const StepSplits& splits, Ns begin) {
  return impl_->add([&]() -> Status {
    assert(splits.step.v < impl_->steps);
    const auto packed = pack_splits(splits, begin);
    if (!packed) return std::unexpected(encode_error(packed.error(), "list of splits"));
    return RowWriter(impl_->add_splits)
        .integer(splits.step.v)
        .integer(begin.v)
        .integer_u64(splits.splits.size())
        .blob(*packed)
        .insert();
  });
}

Status SessionWriter::commit() { return impl_->close_transaction(); }

Status SessionWriter::finish(const SessionInfo& info, const LossCounters& losses) {
  Impl& impl = *impl_;
  assert(impl.db);
  (void)impl.close_transaction();  // on failure, still write the final state
  remove_quietly(with_suffix(impl.path, "-reserve"));
  Status done = impl.write_final_state(info, losses);
  if (!done) {
    // The WAL cannot grow, but its content may fit into the main file, which frees the WAL.
    impl.fail(done.error());
    (void)impl.db->run("PRAGMA wal_checkpoint(TRUNCATE)");
    done = impl.write_final_state(info, losses);
  }
  // Readers of the lost shared memory get errors, too, and end.
  constexpr int kReconnects = 100;
  constexpr std::chrono::milliseconds kPause{20};
  for (int i = 0; i < kReconnects && !done && done.error().kind == TraceError::Kind::Io; ++i) {
    if (i > 0) std::this_thread::sleep_for(kPause);
    if (auto again = impl.reconnect(); !again) return again;
    done = impl.write_final_state(info, losses);
  }
  if (!done) impl.fail(done.error());
  const Status merged = impl.merge_wal();
  if (done && !merged) done = merged;
  impl.disconnect();
  return done;
}

std::uint64_t SessionWriter::bytes_written() const {
  return impl_->bytes.load(std::memory_order_relaxed);
}

}  // namespace tt
