// Files whose schema or number of rows is not that of a session are rejected before anything of
// them is evaluated.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <format>
#include <string>
#include <vector>

#include "tests/support/fair_clock.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/file/session_edit.h"
#include "tracer/format/file/session_tables.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::small_step;
using test::SmallSession;
using Kind = TraceError::Kind;
using namespace std::chrono_literals;

// Runs SQL on a file, as another program could.
void run_sql(const fs::path& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error ? error : "");
  sqlite3_close(db);
}

std::string many(int count, const std::string& statement) {
  std::string sql = "BEGIN;";
  for (int i = 0; i < count; ++i) sql += std::vformat(statement, std::make_format_args(i));
  return sql + "COMMIT;";
}

struct SchemaCase {
  const char* name;
  std::string sql;
};

// Reading a row, or PRAGMA integrity_check, would take minutes.
#define SLOW "(length(hex(zeroblob(400000000))) + length(hex(zeroblob(300000000))))"

std::vector<SchemaCase> cases() {
  return {
      {"generated column", "ALTER TABLE tt_step ADD COLUMN x AS " SLOW},
      {"generated column instead of a column",
       "ALTER TABLE tt_fact DROP COLUMN crc; ALTER TABLE tt_fact ADD COLUMN crc AS " SLOW},
      {"CHECK constraint",
       "CREATE TABLE copy AS SELECT * FROM tt_loss; DROP TABLE tt_loss; CREATE TABLE tt_loss(name "
       "TEXT PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL CHECK(" SLOW
       " > 0)) WITHOUT ROWID; DROP TABLE copy"},
      {"index on an expression", "CREATE INDEX i ON tt_model_file(id + " SLOW ")"},
      {"partial index", "CREATE INDEX i ON tt_model_file(id) WHERE " SLOW " > 0"},
      {"plain index", "CREATE INDEX i ON tt_token(id)"},
      {"trigger", "CREATE TRIGGER t AFTER INSERT ON tt_meta BEGIN SELECT " SLOW "; END"},
      {"view", "CREATE VIEW v AS SELECT " SLOW},
      {"view instead of a table",
       "ALTER TABLE tt_loss RENAME TO was; CREATE VIEW tt_loss AS SELECT * FROM was"},
      {"further table", "CREATE TABLE mine(x)"},
      {"virtual table", "CREATE VIRTUAL TABLE mine USING fts5(x)"},
      {"statistics", "ANALYZE"},
      {"missing table", "DROP TABLE tt_loss"},
      {"5,000 tables", many(5000, "CREATE TABLE t{}(x);")},
      {"long definition", "CREATE TABLE mine(x CHECK(x <> '" + std::string(100'000, 'x') + "'))"},
      {"deep definition",
       "CREATE TABLE mine(x CHECK(" + std::string(900, '(') + "1" + std::string(900, ')') + "))"},
      {"definition that differs in a space",
       "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, ', ', ',  ') WHERE "
       "name = 'tt_meta'"},
      {"definition under another name",
       "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET name = 'tt_step' WHERE name = "
       "'tt_fact'"},
      {"definition twice",
       "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = (SELECT sql FROM sqlite_schema "
       "WHERE name = 'tt_fact'), name = 'tt_fact', tbl_name = 'tt_fact' WHERE name = 'tt_token'"},
      {"definition that is not SQL",
       "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE' WHERE name = "
       "'tt_fact'"},
  };
}

TEST(SessionSchema, AnyOtherSchemaIsRejected) {
  for (const SchemaCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const SmallSession session({small_step(0)});
    run_sql(session.path, c.sql);
    const auto began = test::FairClock::now();
    const auto opened = SessionReader::open(session.path);
    EXPECT_FALSE(opened.has_value());
    if (opened) continue;
    EXPECT_EQ(opened.error().kind, Kind::Damaged) << opened.error().message;
    EXPECT_TRUE(opened.error().message.contains("is damaged")) << opened.error().message;
    const auto problems = check_session(session.path);
    EXPECT_TRUE(!problems || !problems->empty());
    EXPECT_FALSE(rename_session(session.path, "new").has_value());
    EXPECT_FALSE(assign_session_id(session.path, "new").has_value());
    const auto copied = copy_session(session.path, session.path.string() + "-copy",
                                     [](std::uint64_t) { return Status(); });
    EXPECT_FALSE(copied.has_value());
    EXPECT_FALSE(recover_session(session.path).has_value());
    EXPECT_LT(test::FairClock::now() - began, 1s);
  }
}

// The rows have valid checksums.
void add_rows(const fs::path& file, const std::string& insert, std::size_t count,
              const std::function<void(RowWriter&, std::size_t)>& fill) {
  const auto db = Database::open(file, Database::Mode::ReadWrite);
  ASSERT_TRUE(db.has_value());
  ASSERT_TRUE(db->run("BEGIN").has_value());
  auto statement = db->prepare(insert.c_str());
  ASSERT_TRUE(statement.has_value());
  for (std::size_t i = 0; i < count; ++i) {
    RowWriter row(*statement);
    fill(row, i);
    ASSERT_TRUE(row.insert().has_value());
  }
  ASSERT_TRUE(db->run("COMMIT").has_value());
}

void expect_damaged_info(const fs::path& file, const char* why) {
  const auto began = test::FairClock::now();
  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value());
  const auto info = reader->info();
  ASSERT_FALSE(info.has_value());
  EXPECT_EQ(info.error().kind, Kind::Damaged);
  EXPECT_TRUE(info.error().message.contains(why)) << info.error().message;
  EXPECT_LT(test::FairClock::now() - began, 1s);
}

TEST(SessionSchema, NumberOfRowsIsLimited) {
  {
    const SmallSession session({small_step(0)});
    add_rows(session.path, "INSERT INTO tt_fact VALUES(?,?,?,?)", 300'000,
             [](RowWriter& row, std::size_t i) {
               row.integer(static_cast<std::int64_t>(i)).text("name").text("value");
             });
    expect_damaged_info(session.path, "tt_fact has more than 16384 rows");
  }
  {
    const SmallSession session({small_step(0)});
    std::string key;
    add_rows(session.path, "INSERT INTO tt_meta VALUES(?,?,?)", 2000,
             [&](RowWriter& row, std::size_t i) {
               key = std::format("z{}", i);
               row.text(key).text("value");
             });
    expect_damaged_info(session.path, "tt_meta has more than 1000 rows");
  }
  {
    const SmallSession session({small_step(0)});
    const std::string text(std::size_t{1} << 20, 'x');
    add_rows(session.path, "INSERT INTO tt_fact VALUES(?,?,?,?)", 65,
             [&](RowWriter& row, std::size_t i) {
               row.integer(static_cast<std::int64_t>(i)).text("name").text(text);
             });
    expect_damaged_info(session.path, "metadata is larger than 64 MiB");
  }
  const SmallSession session({small_step(0)});
  run_sql(session.path,
          "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
          "INSERT INTO tt_template SELECT i, '', 0, 0, 0, 0, x'', 0 FROM n");
  const auto ids = session.reader().template_ids();
  ASSERT_FALSE(ids.has_value());
  EXPECT_TRUE(ids.error().message.contains("more than 65536 templates")) << ids.error().message;
}

TEST(SessionSchema, WriterAppliesTheLimitsOfTheReader) {
  const test::TempFolder folder;
  SessionInfo info = SmallSession::small_info();
  info.facts.assign(kMaxSessionFacts, {"name", "value"});
  EXPECT_TRUE(SessionWriter::create(folder / "a.ttrace", info).has_value());
  EXPECT_EQ(SessionReader::open(folder / "a.ttrace")->info()->facts.size(), kMaxSessionFacts);
  info.facts.emplace_back("name", "value");
  const auto many = SessionWriter::create(folder / "b.ttrace", info);
  ASSERT_FALSE(many.has_value());
  EXPECT_TRUE(many.error().message.contains("at most 16384 facts")) << many.error().message;
  info.facts = {{"name", std::string(kMaxMetadataBytes, 'x')}};
  EXPECT_FALSE(SessionWriter::create(folder / "c.ttrace", info).has_value());
  EXPECT_FALSE(fs::exists(folder / "c.ttrace"));
  info = SmallSession::small_info();
  info.n_layers = 65'536;
  EXPECT_TRUE(SessionWriter::create(folder / "d.ttrace", info).has_value());
  EXPECT_EQ(SessionReader::open(folder / "d.ttrace")->info()->n_layers, 65'536);
  for (const auto field : {&SessionInfo::n_layers, &SessionInfo::n_heads, &SessionInfo::n_heads_kv,
                           &SessionInfo::n_embd, &SessionInfo::n_vocab, &SessionInfo::n_experts,
                           &SessionInfo::n_experts_used}) {
    info = SmallSession::small_info();
    info.*field = UINT32_MAX;
    const auto refused = SessionWriter::create(folder / "e.ttrace", info);
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(refused.error().message.contains("at most")) << refused.error().message;
  }
}

}  // namespace
}  // namespace tt
