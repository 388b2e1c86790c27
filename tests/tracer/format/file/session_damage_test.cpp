// Damaged files: intact rows are read, damaged rows are reported, and no wrong row is returned.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>

#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::Dice;
using test::random_session;
using test::RandomSession;
using test::TempFolder;
using test::write_session;
using Kind = TraceError::Kind;

std::string load(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Runs SQL on a file, as another program could.
void run_sql(const fs::path& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(db);
}

struct Tally {
  std::size_t opened = 0, rows = 0, errors = 0, reported = 0;
};

// Each row of a damaged copy of `original` is either unchanged or an error.
void expect_correct_or_error(const fs::path& file, const RandomSession& original, Tally& tally) {
  const auto reader = SessionReader::open(file);
  if (!reader) return;
  ++tally.opened;
  const auto compare = [&](const auto& read, const auto& expected) {
    if (read) {
      ++tally.rows;
      EXPECT_EQ(*read, expected);
    } else {
      ++tally.errors;
    }
  };
  for (std::size_t i = 0; i < original.templates.size(); ++i) {
    const auto graph = reader->graph(TemplateId{static_cast<std::uint32_t>(i + 1)});
    if (graph) {
      EXPECT_EQ(**graph, original.templates[i]);
    }
  }
  for (const Allocation& a : original.allocations) compare(reader->allocation(a.id), a);
  for (const Step& step : original.steps) compare(reader->step(step.id), step);
  for (const Token& token : original.tokens)
    compare(reader->tokens(token.index, 1), std::vector{token});
  for (const StepFaults& of : original.faults) {
    std::optional<StepFaults> read;
    const auto walked = reader->for_each_faults(of.step, 1, [&](const StepFaults& row) {
      read = row;
      return true;
    });
    if (read || walked) compare(read, of);
  }
  for (const StepValues& of : original.values) {
    std::optional<StepValues> read;
    const auto walked = reader->for_each_values(of.step, 1, [&](const StepValues& row) {
      read = row;
      return true;
    });
    if (read || walked) compare(read, of);
  }
}

TEST(DamagedSession, NeverReturnsWrongRows) {
  TempFolder folder;
  const RandomSession original = random_session(11, {3, 30, 20, 4, 120, 100});
  ASSERT_TRUE(write_session(folder / "whole.ttrace", original).has_value());
  const std::string whole = load(folder / "whole.ttrace");
  const fs::path file = folder / "s.ttrace";

  Tally tally;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    std::string bytes = whole;
    for (std::size_t k = 1 + dice.size(3); k > 0; --k) {
      const auto at = static_cast<std::size_t>(dice.below(bytes.size()));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.below(8)));
    }
    write_file(file, bytes);
    expect_correct_or_error(file, original, tally);
    const auto problems = check_session(file);
    tally.reported += !problems || !problems->empty();
  }
  std::printf(
      "300 files with flipped bits: %zu opened, %zu rows right, %zu rows rejected, %zu reported\n",
      tally.opened, tally.rows, tally.errors, tally.reported);
  EXPECT_GT(tally.opened, 250u);
  EXPECT_GT(tally.rows, 5 * tally.errors);
}

TEST(DamagedSession, ReadsTruncatedFileUpToItsEnd) {
  TempFolder folder;
  const RandomSession original = random_session(12, {2, 30, 20, 4, 300, 300});
  ASSERT_TRUE(write_session(folder / "whole.ttrace", original).has_value());
  const std::string whole = load(folder / "whole.ttrace");
  const fs::path file = folder / "s.ttrace";
  for (std::size_t tenths = 5; tenths < 10; ++tenths) {
    SCOPED_TRACE(tenths);
    write_file(file, whole.substr(0, whole.size() * tenths / 10));
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    EXPECT_EQ(reader->step_count().value(), 300u);  // stored at the end of the session
    std::vector<Step> steps;
    const auto done = reader->for_each_step(StepId{0}, 300, [&](const Step& step) {
      steps.push_back(step);
      return true;
    });
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().kind, Kind::Damaged);
    EXPECT_GT(steps.size(), 30 * (tenths - 3));
    for (const Step& step : steps) ASSERT_EQ(step, original.steps[step.id.v]);
    EXPECT_FALSE(check_session(file)->empty());
  }
  Tally tally;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    write_file(file, whole.substr(0, static_cast<std::size_t>(Dice(seed).below(whole.size()))));
    expect_correct_or_error(file, original, tally);
    const auto problems = check_session(file);
    EXPECT_TRUE(!problems || !problems->empty()) << seed;
  }
}

// The rows before the first damaged one form a valid session.
void expect_ends_at_damage(const fs::path& file, const RandomSession& original, Tally& tally) {
  auto reader = SessionReader::open(file);
  if (!reader) return;
  std::uint32_t first_damaged = 0;
  while (first_damaged < original.steps.size() && reader->step(StepId{first_damaged}))
    ++first_damaged;
  std::size_t readable = 0;
  const auto all_faults = reader->for_each_faults(
      StepId{0}, UINT32_MAX, [&](const StepFaults&) { return ++readable > 0; });
  const auto ended = reader->truncate_at_damage();
  if (!ended) {  // no part is intact
    EXPECT_EQ(ended.error().kind, Kind::Damaged);
    EXPECT_EQ(reader->truncate_at_damage().error().kind, Kind::Damaged);
    ++tally.errors;
    return;
  }
  if (!*ended) {
    EXPECT_EQ(first_damaged, original.steps.size());
    EXPECT_TRUE(all_faults.has_value());
    return;
  }
  ++tally.reported;
  EXPECT_LE(**ended, first_damaged);
  EXPECT_EQ(reader->step_count().value(), **ended);
  std::uint32_t steps = 0, tokens = 0;
  const auto walked = reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    EXPECT_EQ(step, original.steps[steps]);
    const auto allocation = reader->allocation(step.allocation);
    EXPECT_TRUE(step.allocation.v == 0 || allocation.has_value());
    const auto end = std::min<std::uint64_t>(std::uint64_t{step.first_token} + step.n_tokens,
                                             original.tokens.size());
    tokens = std::max(tokens, static_cast<std::uint32_t>(end));
    ++steps;
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  EXPECT_EQ(steps, **ended);
  std::uint32_t rows = 0;
  const auto rows_walked = reader->for_each_step_row(StepId{0}, UINT32_MAX, [&](const auto&) {
    ++rows;
    return true;
  });
  EXPECT_TRUE(rows_walked.has_value()) << rows_walked.error().message;
  EXPECT_EQ(rows, steps);
  EXPECT_EQ(reader->token_count().value(), tokens);
  const auto reported = reader->tokens(0, UINT32_MAX);
  ASSERT_TRUE(reported.has_value());
  EXPECT_TRUE(std::ranges::equal(*reported, std::span(original.tokens).first(tokens)));
  for (const TemplateId id : reader->template_ids().value()) EXPECT_TRUE(reader->graph(id));
  std::vector<StepFaults> faults;
  EXPECT_TRUE(reader->for_each_faults(StepId{0}, UINT32_MAX, [&](const StepFaults& of) {
    faults.push_back(of);
    return true;
  }));
  const auto behind = std::ranges::find_if(
      original.faults, [&](const StepFaults& of) { return of.step.v >= steps; });
  if (!all_faults && readable == 0) {
    EXPECT_TRUE(faults.empty());
  } else {
    EXPECT_TRUE(std::ranges::equal(faults, std::ranges::subrange(original.faults.begin(), behind)));
  }
  EXPECT_EQ(reader->step(StepId{steps}).error().kind, Kind::NotFound);
  tally.rows += steps;
}

TEST(DamagedSession, EndsBeforeFirstDamagedRow) {
  TempFolder folder;
  const RandomSession original = random_session(12, {3, 30, 20, 4, 300, 300});
  ASSERT_TRUE(write_session(folder / "whole.ttrace", original).has_value());
  const std::string whole = load(folder / "whole.ttrace");
  const fs::path file = folder / "s.ttrace";
  auto sound = SessionReader::open(folder / "whole.ttrace");
  EXPECT_EQ(sound->truncate_at_damage().value(), std::nullopt);
  EXPECT_EQ(sound->step_count().value(), 300u);
  EXPECT_EQ(sound->truncate_at_damage([] { return false; }).error().kind, Kind::Cancelled);
  Tally tally;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    write_file(file, whole.substr(0, static_cast<std::size_t>(dice.below(whole.size()))));
    expect_ends_at_damage(file, original, tally);
    std::string bytes = whole;
    bytes[static_cast<std::size_t>(dice.below(bytes.size()))] ^= 0x20;
    write_file(file, bytes);
    expect_ends_at_damage(file, original, tally);
  }
  std::printf(
      "300 damaged files: %zu end before it, after %zu steps in total; %zu have no intact part\n",
      tally.reported, tally.rows, tally.errors);
  EXPECT_LT(tally.errors, 100u);
  EXPECT_GT(tally.reported, 150u);
  EXPECT_GT(tally.rows, 50 * tally.reported);
}

// SQLite rejects such a page when it loads it into its cache, but reads it if already cached.
TEST(DamagedSession, EndsBeforeCellThatPointsOutOfPage) {
  constexpr std::size_t kPage = 4096, kFirstCell = 8;
  constexpr char kLeaf = 0x0D;
  TempFolder folder;
  const RandomSession original = random_session(12, {3, 30, 20, 4, 300, 300});
  ASSERT_TRUE(write_session(folder / "whole.ttrace", original).has_value());
  const std::string whole = load(folder / "whole.ttrace");
  Tally tally;
  for (std::size_t page = kPage; page < whole.size(); page += kPage) {
    if (whole[page] != kLeaf) continue;
    SCOPED_TRACE(page / kPage);
    std::string bytes = whole;
    bytes[page + kFirstCell] ^= 0x20;
    write_file(folder / "s.ttrace", bytes);
    expect_ends_at_damage(folder / "s.ttrace", original, tally);
  }
  EXPECT_GT(tally.reported, 10U);
}

// Both in SQLite's own check and between the steps.
TEST(DamagedSession, CheckCanBeCancelled) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  ASSERT_TRUE(write_session(file, random_session(13, {2, 30, 20, 4, 300, 300})).has_value());
  std::uint64_t questions = 0;
  ASSERT_TRUE(check_session(file, [&] { return ++questions > 0; }).value().empty());
  ASSERT_GE(questions, 302U);  // SQLite, one for each step, one at the end
  for (const std::uint64_t last : {std::uint64_t{1}, questions - 301, questions - 150, questions}) {
    std::uint64_t checks = 0;
    const auto problems = check_session(file, [&] { return ++checks != last; });
    ASSERT_FALSE(problems.has_value()) << last;
    EXPECT_EQ(problems.error().kind, Kind::Cancelled);
    EXPECT_EQ(checks, last) << "continued after the cancel";
  }
}

// Totals as written at the end of a session, with a valid checksum, but larger than the number
// of rows.
TEST(DamagedSession, CheckEndsOnTooLargeTotal) {
  const TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  RandomSession session;
  for (std::uint64_t seed = 1; session.steps.empty() || session.tokens.empty(); ++seed)
    session = random_session(seed);
  for (const char* total : {"steps", "tokens"}) {
    SCOPED_TRACE(total);
    fs::remove(file);
    ASSERT_TRUE(write_session(file, session).has_value());
    {
      const auto db = Database::open(file, Database::Mode::ReadWrite);
      ASSERT_TRUE(db.has_value());
      ASSERT_TRUE(write_meta(*db, {{total, "4294967295"}}).has_value());
    }
    const auto problems = check_session(file);
    ASSERT_TRUE(problems.has_value()) << problems.error().message;
    EXPECT_FALSE(problems->empty());
    int checks = 0;
    const auto withdrawn = check_session(file, [&] { return ++checks < 20; });
    if (checks >= 20) {
      EXPECT_EQ(withdrawn.error().kind, Kind::Cancelled);
    }
  }
}

TEST(DamagedSession, DetectsChangedRows) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE tt_step SET begin_ns = begin_ns + 1 WHERE id = 3", "step 3"},
      {"UPDATE tt_step SET phase = 'later' WHERE id = 3", "step 3"},
      {"UPDATE tt_step SET threads = 'many' WHERE id = 3", "step 3"},
      {"UPDATE tt_step SET packed = x'00' WHERE id = 3", "step 3"},
      {"DELETE FROM tt_step WHERE id = 3", "step 3"},
      {"DELETE FROM tt_step WHERE id = 19", "step 19"},
      {"DELETE FROM tt_token WHERE idx >= 25", "token 25"},
      {"UPDATE tt_token SET text = x'41' WHERE idx = 5", "token 5"},
      {"UPDATE tt_template SET n_ops = 1 WHERE id = 1", "template 1"},
      {"UPDATE tt_template SET id = 0 WHERE id = 1", "template"},
      {"UPDATE tt_allocation SET template = 1 WHERE id = (SELECT max(id) FROM tt_allocation)",
       "allocation"},
      {"UPDATE tt_meta SET value = 'x' WHERE key = 'title'", "tt_meta"},
      {"UPDATE tt_loss SET count = 0", "tt_loss"},
      {"DROP TABLE tt_token", "tt_token"},
      {"UPDATE tt_fault SET n_faults = 1000 WHERE step = (SELECT max(step) FROM tt_fault)",
       "page faults of step"},
      {"UPDATE tt_fault SET step = 1000 WHERE step = (SELECT max(step) FROM tt_fault)",
       "page faults of step 1000"},
      {"DROP TABLE tt_fault", "tt_fault"},
      {"UPDATE tt_value SET n_not_captured = 0 WHERE step = (SELECT max(step) FROM tt_value)",
       "captured values of step"},
      {"UPDATE tt_value SET packed = x'00' WHERE step = (SELECT min(step) FROM tt_value)",
       "captured values of step"},
      {"DROP TABLE tt_value", "tt_value"},
  };
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession original = random_session(13);
  ASSERT_TRUE(write_session(file, original).has_value());
  const std::string whole = load(file);
  for (const auto& [sql, word] : cases) {
    SCOPED_TRACE(sql);
    write_file(file, whole);
    run_sql(file, sql);
    const auto problems = check_session(file);
    ASSERT_TRUE(problems.has_value());
    ASSERT_FALSE(problems->empty());
    EXPECT_NE(problems->front().find(word), std::string::npos) << problems->front();
  }
}

// An intact template, but not the one that the steps were written for.
TEST(DamagedSession, RejectsStepsThatDoNotMatchTheirTemplate) {
  TempFolder folder;
  const RandomSession big = random_session(14, {1, 30, 40, 6, 20, 5});
  const RandomSession small = random_session(15, {1, 1, 1, 1, 1, 5});
  ASSERT_GT(big.templates[0].ops.size(), small.templates[0].ops.size() + 1);
  ASSERT_TRUE(write_session(folder / "big.ttrace", big).has_value());
  ASSERT_TRUE(write_session(folder / "small.ttrace", small).has_value());
  run_sql(folder / "big.ttrace",
          "ATTACH '" + (folder / "small.ttrace").string() +
              "' AS small; REPLACE INTO main.tt_template SELECT * FROM small.tt_template");
  const auto reader = SessionReader::open(folder / "big.ttrace");
  ASSERT_TRUE(reader.has_value());
  for (const Step& step : big.steps) {
    const auto read = reader->step(step.id);
    if (!read) {
      EXPECT_EQ(read.error().kind, Kind::Damaged);
      continue;
    }
    const std::size_t ops = read->graph.v == 0 ? 0 : small.templates[0].ops.size();
    EXPECT_LE(read->op_ends.size(), ops);
  }
  EXPECT_FALSE(reader->allocation(AllocationId{1}).has_value());
  std::size_t rejected = 0;
  for (const StepValues& of : big.values) {
    const auto read = reader->for_each_values(of.step, 1, [&](const StepValues& row) {
      EXPECT_TRUE(row.outputs.empty() || row.outputs.back().op.v < small.templates[0].ops.size());
      return true;
    });
    rejected += !read;
  }
  EXPECT_GT(rejected, 0U);
}

}  // namespace
}  // namespace tt
