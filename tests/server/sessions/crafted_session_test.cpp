// Session files crafted to be expensive: an upload is rejected in time, the list of sessions and
// `tt` report the file, and nothing of its schema is evaluated.
#include <gtest/gtest.h>
#include <httplib.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/file/session_tables.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

// Runs SQL on a file, as another program could.
void run_sql(const fs::path& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error ? error : "");
  sqlite3_close(db);
}

// Rows with valid checksums.
void add_facts(const fs::path& file, std::size_t count, std::string_view value) {
  const auto db = Database::open(file, Database::Mode::ReadWrite);
  ASSERT_TRUE(db.has_value());
  ASSERT_TRUE(db->run("BEGIN").has_value());
  auto insert = db->prepare("INSERT INTO tt_fact VALUES(?,?,?,?)");
  ASSERT_TRUE(insert.has_value());
  for (std::size_t i = 0; i < count; ++i) {
    const auto added =
        RowWriter(*insert).integer(static_cast<std::int64_t>(i)).text("name").text(value).insert();
    ASSERT_TRUE(added.has_value());
  }
  ASSERT_TRUE(db->run("COMMIT").has_value());
}

// Appends interior pages to the B-tree of `table`, each of which names the next one 500 times: a
// file of 100 KB with 10^43 rows.
void multiply_rows(const fs::path& file, const std::string& table) {
  constexpr std::size_t kPage = 4096, kLevels = 16, kCells = 500, kHeader = 12;
  std::string bytes = read_bytes(file);
  const auto put = [](std::string& to, std::size_t at, std::size_t size, std::uint64_t number) {
    for (std::size_t i = 0; i < size; ++i)
      to[at + i] = static_cast<char>(number >> (8 * (size - 1 - i)));
  };
  const std::size_t root = std::stoul(
      run_sqlite3(file, "SELECT rootpage FROM sqlite_schema WHERE name = '" + table + "'"));
  const std::string leaf = bytes.substr((root - 1) * kPage, kPage);
  const std::size_t first = bytes.size() / kPage + 1;
  const auto interior_page = [&](std::size_t child) {
    std::string page(kPage, '\0');
    page[0] = 5;
    put(page, 3, 2, kCells);
    put(page, 5, 2, kPage - 5 * kCells);
    put(page, 8, 4, child);
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const std::size_t at = kPage - 5 * (cell + 1);
      put(page, kHeader + 2 * cell, 2, at);
      put(page, at, 4, child);
      page[at + 4] = 1;  // rowid
    }
    return page;
  };
  bytes.replace((root - 1) * kPage, kPage, interior_page(first));
  for (std::size_t level = 1; level < kLevels; ++level) bytes += interior_page(first + level);
  bytes += leaf;
  put(bytes, 28, 4, bytes.size() / kPage);  // size of the database in pages
  std::ofstream(file, std::ios::binary) << bytes;
}

struct Crafted {
  const char* name;
  std::function<void(const fs::path&)> change;
};

#define SLOW "(length(hex(zeroblob(400000000))) + length(hex(zeroblob(300000000))))"

std::vector<Crafted> crafted_files() {
  const auto sql = [](std::string text) {
    return [text = std::move(text)](const fs::path& file) { run_sql(file, text); };
  };
  const auto meta = [](std::string key, std::string value) {
    return [key = std::move(key), value = std::move(value)](const fs::path& file) {
      const auto db = Database::open(file, Database::Mode::ReadWrite);
      ASSERT_TRUE(db.has_value());
      ASSERT_TRUE(write_meta(*db, {{key, value}}).has_value());
    };
  };
  return {
      {"generated column", sql("ALTER TABLE tt_step ADD COLUMN x AS " SLOW)},
      {"CHECK constraint",
       sql("DROP TABLE tt_loss; CREATE TABLE tt_loss(name TEXT PRIMARY KEY, count INTEGER NOT "
           "NULL, crc INTEGER NOT NULL CHECK(" SLOW " > 0)) WITHOUT ROWID")},
      {"index on an expression", sql("CREATE INDEX i ON tt_model_file(id + " SLOW ")")},
      {"partial index", sql("CREATE INDEX i ON tt_model_file(id) WHERE " SLOW " > 0")},
      {"view instead of a table",
       sql("DROP TABLE tt_loss; CREATE VIEW tt_loss AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
           "SELECT i + 1 FROM n) SELECT i AS name, i AS count, i AS crc FROM n")},
      {"20,000 tables",
       sql("PRAGMA writable_schema = ON; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
           "FROM n WHERE i < 20000) INSERT INTO sqlite_schema SELECT 'table', 't' || i, 't' || i, "
           "2, 'CREATE TABLE t' || i || '(x)' FROM n")},
      {"300,000 facts", [](const fs::path& file) { add_facts(file, 300'000, "value"); }},
      {"long facts",
       [](const fs::path& file) { add_facts(file, 65, std::string(std::size_t{1} << 20, 'x')); }},
      {"300,000 templates",
       sql("WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
           "INSERT INTO tt_template SELECT i, '', 0, 0, 0, 0, x'', 0 FROM n")},
      {"rows of steps multiplied", [](const fs::path& file) { multiply_rows(file, "tt_step"); }},
      {"rows of tokens multiplied", [](const fs::path& file) { multiply_rows(file, "tt_token"); }},
      {"rows of facts multiplied", [](const fs::path& file) { multiply_rows(file, "tt_fact"); }},
      {"rows of templates multiplied",
       [](const fs::path& file) { multiply_rows(file, "tt_template"); }},
      {"rows of page faults multiplied",
       [](const fs::path& file) { multiply_rows(file, "tt_fault"); }},
      {"4,294,967,295 steps", meta("steps", "4294967295")},
      {"4,294,967,295 layers", meta("n_layers", "4294967295")},
      {"65,537 layers", meta("n_layers", "65537")},
      {"4,294,967,295 heads", meta("n_heads", "4294967295")},
      {"4,294,967,295 heads of the cache", meta("n_heads_kv", "4294967295")},
      {"4,294,967,295 experts", meta("n_experts", "4294967295")},
      {"4,294,967,295 experts of a token", meta("n_experts_used", "4294967295")},
      {"4,294,967,295 token ids", meta("n_vocab", "4294967295")},
      {"4,294,967,295 values of a token", meta("n_embd", "4294967295")},
      {"-1 layers", meta("n_layers", "-1")},
  };
}

TEST(CraftedSession, UploadIsRejectedInTime) {
  const TempFolder folder, files;
  RunningServer server(folder.path(), {"--no-model"});
  httplib::Client client = http_client(server.url);
  ServerWatch watch(server.program.pid(), server.url);
  for (const Crafted& crafted : crafted_files()) {
    SCOPED_TRACE(crafted.name);
    const SmallSession session({small_step(0), small_step(1)});
    crafted.change(session.path);
    const std::string bytes = read_bytes(session.path);
    const auto began = Clock::now();
    const auto answer = client.Post("/api/v1/sessions", bytes, "application/octet-stream");
    EXPECT_LT(Clock::now() - began, kMaxResponseTime);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 422) << answer->body;
    EXPECT_TRUE(watch.memory_returns());
  }
  watch.expect_limits();
  EXPECT_EQ(server.get("/api/v1/sessions")["total"], 0);
}

TEST(CraftedSession, FileInTheSessionFolderIsReported) {
  const TempFolder folder;
  int count = 0;
  for (const Crafted& crafted : crafted_files()) {
    const SmallSession session({small_step(0), small_step(1)});
    crafted.change(session.path);
    fs::copy_file(session.path, folder.path() / ("s" + std::to_string(count++) + ".ttrace"));
  }
  RunningServer server(folder.path(), {"--no-model"});
  ASSERT_TRUE(server.url.starts_with("http://"));
  httplib::Client client = http_client(server.url);
  ServerWatch watch(server.program.pid(), server.url);
  for (int i = 0; i < count; ++i) {
    for (const char* target : {"", "/steps", "/breakdown", "/validation", "/templates"}) {
      const auto began = Clock::now();
      const auto answer =
          client.Get("/api/v1/sessions/s" + std::to_string(i) + std::string(target));
      EXPECT_LT(Clock::now() - began, kMaxResponseTime) << i << target;
      EXPECT_TRUE(answer);
    }
  }
  EXPECT_EQ(server.get("/api/v1/sessions")["total"], count);
  // The index of 4,294,967,295 steps keeps at most a million missing ones.
  constexpr std::uint64_t kIndex = (96u << 20) * kMemoryFactor;
  watch.expect_limits(kIndex);
}

// What is missing is no fault of the recording: the same verdict as in tt show.
TEST(CraftedSession, MissingTimesAreNamedAndTheRecordingIsValid) {
  const TempFolder folder;
  SessionInfo info = SmallSession::small_info();
  info.model_files = {{.path = "small.gguf", .size = 6000, .mtime_ns = 0, .header_hash = {}}};
  const SmallSession session({small_step(0)}, info, small_graph(), {.steps_without_times = 77});
  fs::copy_file(session.path, folder.path() / "small.ttrace");
  RunningServer server(folder.path(), {"--no-model"});
  const json answer = server.get("/api/v1/sessions/small/validation");
  EXPECT_EQ(answer["verdict"], "valid, times of 77 steps missing") << answer;
  EXPECT_EQ(answer["checks"][1]["verdict"], "incomplete") << answer;
}

TEST(CraftedSession, CommandLineReportsTheFile) {
  for (const Crafted& crafted : crafted_files()) {
    SCOPED_TRACE(crafted.name);
    const SmallSession session({small_step(0), small_step(1)});
    crafted.change(session.path);
    const auto began = Clock::now();
    Program parse({"parse", session.path.string(), "--validate"}, {}, kTestPaths.tt);
    EXPECT_GT(parse.wait(), 0);
    EXPECT_LT(Clock::now() - began, kMaxResponseTime);
  }
}

}  // namespace
}  // namespace tt::test
