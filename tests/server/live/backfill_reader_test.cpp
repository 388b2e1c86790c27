// Consecutive batches read from a session file contain all of its rows.
#include "server/live/backfill_reader.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt::test {
namespace {

using nlohmann::json;

// A synchronous wrapper: one request at a time.
class SyncBackfillReader {
 public:
  explicit SyncBackfillReader(std::filesystem::path file)
      : backfill_reader_(
            [file = std::move(file)](const std::string&) { return SessionReader::open(file); },
            [this](BackfillBatch batch) {
              const std::scoped_lock lock(mutex_);
              batch_ = std::move(batch);
              response_ready_.notify_one();
            }) {}
  BackfillBatch fetch(BackfillRequest request) {
    backfill_reader_.read(std::move(request));
    std::unique_lock lock(mutex_);
    response_ready_.wait(lock, [this] { return batch_.has_value(); });
    return *std::exchange(batch_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable response_ready_;
  std::optional<BackfillBatch> batch_;
  BackfillReader backfill_reader_;
};

struct SessionContents {
  std::vector<json> tokens;
  std::vector<std::uint32_t> steps;
  std::string text;
  std::size_t pieces = 0;
  std::vector<std::uint32_t> damaged_steps;
};

SessionContents read_all(SyncBackfillReader& reader, LiveKinds kinds, LivePosition at = {}) {
  SessionContents contents;
  std::shared_ptr<PartialAnswer> answer;
  for (bool end = false; !end && contents.pieces < 10'000; ++contents.pieces) {
    BackfillBatch batch = reader.fetch({.client = ClientId{1},
                                        .request_id = 7,
                                        .session = "s",
                                        .kinds = kinds,
                                        .from = at,
                                        .answer = answer});
    EXPECT_FALSE(batch.error.has_value());
    EXPECT_EQ(batch.request_id, 7u);
    answer = batch.answer;
    end = batch.is_last;
    for (const LiveRecord& record : batch.records) {
      if (const auto* token = std::get_if<TokenRecord>(&record)) {
        EXPECT_EQ(token->index, at.token++);
        contents.tokens.push_back(json::parse(token->message));
        contents.text += contents.tokens.back()["text"];
      } else if (const auto* step = std::get_if<StepRecordPtr>(&record)) {
        EXPECT_EQ((*step)->index(), at.step++);
        contents.steps.push_back((*step)->index());
        // The tokens that the step evaluated come first.
        if (kinds.token) {
          EXPECT_GE(at.token, (*step)->first_token() + 1);
        }
      } else {
        contents.damaged_steps.push_back(std::get<DamagedRecord>(record).index);
        ++at.step;
      }
    }
  }
  return contents;
}

// `steps` steps of one generated token each; every character needs two tokens.
std::filesystem::path long_session(const TempFolder& folder, std::uint32_t steps,
                                   SessionState state) {
  SessionInfo info = SmallSession::small_info();
  info.facts = {{"request.stop.0", "never"}};
  const auto path = folder / "s.ttrace";
  auto writer = SessionWriter::create(path, info);
  EXPECT_TRUE(writer.has_value());
  const auto graph = small_graph();
  EXPECT_TRUE((*writer)->add_template(TemplateId{1}, graph).has_value());
  const Allocation allocation{.id = AllocationId{1},
                              .graph = TemplateId{1},
                              .addresses = std::vector<std::uint64_t>(graph.tensors.size(), 0)};
  EXPECT_TRUE((*writer)->add_allocation(allocation).has_value());
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Token token{.index = i, .generated = true, .text = i % 2 == 0 ? "\xC3" : "\xA9"};
    EXPECT_TRUE((*writer)->add_tokens({&token, 1}).has_value());
    Step step = small_step(i);
    step.first_token = i;
    step.n_tokens = 1;
    EXPECT_TRUE((*writer)->add_step(step).has_value());
  }
  // Held back to the end: it is a prefix of the stop string.
  const Token last{.index = steps, .generated = true, .text = "nev"};
  EXPECT_TRUE((*writer)->add_tokens({&last, 1}).has_value());
  info.state = state;
  if (state == SessionState::Running) {
    EXPECT_TRUE((*writer)->commit().has_value());
  } else {
    EXPECT_TRUE((*writer)->finish(info, {}).has_value());
  }
  return path;
}

TEST(BackfillReader, ReturnsWholeSessionInBatches) {
  const TempFolder folder;
  SyncBackfillReader reader(long_session(folder, 3000, SessionState::Done));
  const SessionContents contents = read_all(reader, {.token = true, .step = true, .op = true});
  EXPECT_GT(contents.pieces, 3u);
  EXPECT_EQ(contents.steps.size(), 3000u);
  ASSERT_EQ(contents.tokens.size(), 3002u);
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "\xC3\xA9";
  EXPECT_EQ(contents.text, text + "nev");
  EXPECT_EQ(contents.tokens[0]["text"], "");
  EXPECT_EQ(contents.tokens[1]["text"], "\xC3\xA9");
  EXPECT_EQ(contents.tokens[3001]["type"], "text");
  EXPECT_EQ(contents.tokens[3001]["index"], 3001);

  // The same rows from any position, also in the middle of a character.
  for (const std::uint32_t from : {1u, 777u, 2999u, 3001u, 3002u}) {
    const SessionContents part = read_all(reader, {.token = true}, {.token = from});
    EXPECT_EQ(part.tokens, std::vector<json>(contents.tokens.begin() + from, contents.tokens.end()))
        << from;
    EXPECT_TRUE(part.steps.empty());
  }
  EXPECT_EQ(read_all(reader, {.routing = true}, {.step = 2990}).steps.size(), 10u);
}

TEST(BackfillReader, RunningSessionReturnsCommittedRows) {
  const TempFolder folder;
  SyncBackfillReader reader(long_session(folder, 10, SessionState::Running));
  const SessionContents contents = read_all(reader, {.token = true, .step = true});
  EXPECT_EQ(contents.tokens.size(), 11u);  // without the held-back text: more tokens may follow
  EXPECT_EQ(contents.tokens.back()["text"], "");
  EXPECT_EQ(contents.steps.size(), 10u);
}

TEST(BackfillReader, ReportsUnreadableRows) {
  const TempFolder folder;
  SyncBackfillReader nothing(folder / "none.ttrace");
  EXPECT_TRUE(nothing.fetch({.client = ClientId{1}, .session = "s"}).error);

  const auto path = long_session(folder, 5, SessionState::Done);
  {
    auto db = Database::open(path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(db->run("UPDATE tt_step SET packed = x'00' WHERE id = 2").has_value());
  }
  SyncBackfillReader reader(path);
  const SessionContents contents = read_all(reader, {.step = true});
  EXPECT_EQ(contents.steps, (std::vector<std::uint32_t>{0, 1, 3, 4}));
  EXPECT_EQ(contents.damaged_steps, (std::vector<std::uint32_t>{2}));
}

}  // namespace
}  // namespace tt::test
