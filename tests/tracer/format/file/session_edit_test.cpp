#include "tracer/format/file/session_edit.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/read_only_folder.h"
#include "tests/support/sessions/half_changed_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using Kind = TraceError::Kind;

const CopyProgress kAlways = [](std::uint64_t) { return Status(); };

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_valid_session(const fs::path& file) {
  const auto problems = check_session(file);
  ASSERT_TRUE(problems.has_value()) << problems.error().message;
  EXPECT_TRUE(problems->empty()) << problems->front();
}

// Runs SQL on a file, as another program could.
void run_sql(const fs::path& file, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
  sqlite3_close(db);
}

// A session that this process is recording.
struct Recording {
  Recording() {
    auto made = SessionWriter::create(path, test::SmallSession::small_info());
    EXPECT_TRUE(made.has_value());
    writer = *std::move(made);
    EXPECT_TRUE(writer->add_template(TemplateId{1}, test::small_graph()).has_value());
    Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
    allocation.addresses.resize(test::small_graph().tensors.size(), 0x1000);
    EXPECT_TRUE(writer->add_allocation(allocation).has_value());
    add_step();
  }
  void add_step() {
    EXPECT_TRUE(writer
                    ->add_tokens(std::vector<Token>{{.index = 2 * steps, .id = 3, .text = "a"},
                                                    {.index = 2 * steps + 1, .id = 5, .text = "b"}})
                    .has_value());
    EXPECT_TRUE(writer->add_step(test::small_step(steps)).has_value());
    EXPECT_TRUE(writer->commit().has_value());
    ++steps;
  }
  void finish() {
    SessionInfo info = test::SmallSession::small_info();
    info.state = SessionState::Done;
    EXPECT_TRUE(writer->finish(info, {}).has_value());
  }

  TempFolder folder;
  fs::path path = folder / "small.ttrace";
  std::unique_ptr<SessionWriter> writer;
  std::uint32_t steps = 0;
};

TEST(SessionEdit, InterruptedChangeIsUndoneByTheNextReader) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 400; ++i) steps.push_back(test::small_step(i));
  const test::SmallSession session(steps);
  const TempFolder folder;
  const fs::path copy = folder / "s.ttrace";
  test::copy_half_changed(session.path, copy);
  {
    const test::ReadOnlyFolder read_only(folder.path());
    ASSERT_EQ(read_only.problem(), "");
    const auto refused = SessionReader::open(copy);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, Kind::ReadOnly) << refused.error().message;
    EXPECT_NE(refused.error().message.find("Copy the file and its -journal file"),
              std::string::npos);
  }
  const auto reader = SessionReader::open(copy);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  for (std::uint32_t i = 0; i < 400; ++i)
    EXPECT_EQ(reader->step(StepId{i}).value(), test::small_step(i)) << i;
  EXPECT_EQ(check_session(copy).value(), check_session(session.path).value());
  EXPECT_FALSE(fs::exists(copy.string() + "-journal"));
}

// The journal of a change that is being made: the reader leaves it, and sees the old state.
TEST(SessionEdit, ReaderLeavesTheJournalOfALiveChange) {
  const test::SmallSession session({test::small_step(0)});
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(session.path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE tt_token SET text='new'", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  ASSERT_TRUE(fs::exists(session.path.string() + "-journal"));
  const auto reader = SessionReader::open(session.path);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_NE(reader->tokens(0, 1).value().at(0).text, "new");
  EXPECT_EQ(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

TEST(SessionEdit, RenameChangesOnlyTitle) {
  const test::SmallSession session({test::small_step(0)});
  SessionInfo before = session.reader().info().value();
  for (const std::string title : {"Ein Titel: ü \U0001F600", "", "x"}) {
    ASSERT_TRUE(rename_session(session.path, title).has_value());
    before.title = title;
    EXPECT_EQ(session.reader().info().value(), before);
    expect_valid_session(session.path);
    EXPECT_FALSE(fs::exists(session.path.string() + "-journal"));
  }
}

TEST(SessionEdit, RejectsChangesToRunningSession) {
  Recording recording;
  for (const auto& done :
       {rename_session(recording.path, "other"), checkpoint_session(recording.path)}) {
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().kind, Kind::Running) << done.error().message;
  }
  recording.add_step();  // the writer was not disturbed
  recording.finish();
  EXPECT_TRUE(rename_session(recording.path, "other").has_value());
  EXPECT_EQ(SessionReader::open(recording.path)->info()->title, "other");
}

TEST(SessionEdit, CopyOfRunningSessionIsCompleteAndBlocksNoWriter) {
  Recording recording;
  const fs::path copy = recording.folder / "copy.ttrace";
  std::uint32_t in_between = 0;
  ASSERT_TRUE(copy_session(recording.path, copy, [&](std::uint64_t) {
                recording.add_step();  // would wait forever if the copy blocked it
                ++in_between;
                return Status();
              }).has_value());
  EXPECT_GT(in_between, 0u);
  expect_valid_session(copy);
  const auto reader = SessionReader::open(copy);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->info()->state, SessionState::Recovered);
  EXPECT_EQ(reader->step_count(), 1u);
  EXPECT_EQ(reader->token_count(), 2u);
  EXPECT_FALSE(fs::exists(copy.string() + "-wal"));
  recording.add_step();
  recording.finish();
  expect_valid_session(recording.path);
  EXPECT_EQ(SessionReader::open(recording.path)->step_count(), recording.steps);
}

TEST(SessionEdit, CopiesOfLongRunningSessionAreConsistentSnapshots) {
  Recording recording;
  for (int i = 0; i < 300; ++i) recording.add_step();
  std::jthread writing([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) recording.add_step();
  });
  std::uint32_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const fs::path copy = recording.folder.path() / ("copy" + std::to_string(i));
    ASSERT_TRUE(copy_session(recording.path, copy, kAlways).has_value());
    expect_valid_session(copy);
    const auto steps = SessionReader::open(copy)->step_count().value();
    EXPECT_GE(steps, std::max(last, 301u));
    EXPECT_EQ(SessionReader::open(copy)->token_count(), 2 * steps);
    last = steps;
  }
}

TEST(SessionEdit, CancelledCopyLeavesNoFile) {
  Recording recording;
  const fs::path copy = recording.folder / "copy.ttrace";
  // Large enough to be copied in several parts.
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_TRUE(recording.writer
                    ->add_tokens(std::vector<Token>{{.index = 2 + static_cast<std::uint32_t>(i),
                                                     .id = 1,
                                                     .text = std::string(400, 'x')}})
                    .has_value());
  }
  ASSERT_TRUE(recording.writer->commit().has_value());
  std::vector<std::uint64_t> requested;
  const auto stopped = copy_session(recording.path, copy, [&](std::uint64_t bytes) {
    requested.push_back(bytes);
    return requested.size() < 3 ? Status() : std::unexpected(TraceError{Kind::DiskFull, "no room"});
  });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().message, "no room");
  ASSERT_EQ(requested.size(), 3u);
  EXPECT_EQ(requested[0], 0u);
  EXPECT_LT(requested[1], requested[2]);
  for (const auto& entry : fs::directory_iterator(recording.folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("copy")) << entry.path();
}

TEST(SessionEdit, SettleMergesWalLeftByReader) {
  Recording recording;
  {
    const auto reader = SessionReader::open(recording.path);
    ASSERT_TRUE(reader.has_value());
    ASSERT_TRUE(reader->info().has_value());
    recording.finish();
    ASSERT_TRUE(fs::exists(recording.path.string() + "-wal"));
    EXPECT_FALSE(checkpoint_session(recording.path).has_value());
    EXPECT_TRUE(reader->info().has_value());
  }
  ASSERT_TRUE(checkpoint_session(recording.path).has_value());
  EXPECT_FALSE(fs::exists(recording.path.string() + "-wal"));
  expect_valid_session(recording.path);
}

TEST(SessionEdit, AdoptSetsIdOfImportedFile) {
  const test::SmallSession session({test::small_step(0)});
  const std::string before = bytes_of(session.path);
  ASSERT_TRUE(assign_session_id(session.path, "small").has_value());
  EXPECT_EQ(bytes_of(session.path), before);  // unchanged: the id was already right

  ASSERT_TRUE(assign_session_id(session.path, "small-2").has_value());
  EXPECT_EQ(session.reader().info()->id, "small-2");
  expect_valid_session(session.path);

  // Copied by the file system while it was recorded, without the WAL.
  Recording recording;
  const fs::path copy = recording.folder / "copy.ttrace";
  fs::copy_file(recording.path, copy);
  ASSERT_TRUE(assign_session_id(copy, "copy").has_value());
  EXPECT_EQ(SessionReader::open(copy)->info()->state, SessionState::Recovered);
  EXPECT_FALSE(fs::exists(copy.string() + "-wal"));
  expect_valid_session(copy);
}

TEST(SessionEdit, ForeignTriggersDoNotRun) {
  const test::SmallSession session({test::small_step(0)});
  run_sql(session.path, "CREATE TRIGGER t AFTER INSERT ON tt_meta BEGIN DELETE FROM tt_step; END");
  const auto renamed = rename_session(session.path, "new");
  ASSERT_FALSE(renamed.has_value());
  EXPECT_EQ(renamed.error().kind, Kind::Damaged);
  run_sql(session.path, "DROP TRIGGER t");
  EXPECT_TRUE(rename_session(session.path, "new").has_value());
  EXPECT_TRUE(session.reader().step(StepId{0}).has_value());
}

TEST(SessionEdit, CheckDetectsReplacedTables) {
  struct Case {
    const char* name;
    const char* sql;
  };
  const Case cases[] = {
      {"a view in its place",
       "ALTER TABLE tt_loss RENAME TO was; CREATE VIEW tt_loss AS SELECT * FROM was"},
      {"a computed column",
       "DROP TABLE tt_loss; CREATE TABLE tt_loss(name TEXT PRIMARY KEY, count INTEGER NOT NULL, "
       "crc AS (count * 2))"},
      {"a table less", "DROP TABLE tt_loss"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const test::SmallSession session({test::small_step(0)});
    run_sql(session.path, c.sql);
    const auto problems = check_session(session.path);
    ASSERT_TRUE(problems.has_value());
    EXPECT_FALSE(problems->empty());
  }
}

}  // namespace
}  // namespace tt
