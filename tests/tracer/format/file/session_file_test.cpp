// The session file as seen by writer, reader and plain SQLite.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdio.h>

#include <array>
#include <cmath>
#include <format>
#include <fstream>
#include <numeric>
#include <thread>

#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::Dice;
using test::random_session;
using test::RandomSession;
using test::TempFolder;
using test::write_session;
using Kind = TraceError::Kind;

// The output of the sqlite3 program, which shares no code with ours.
std::string query_sqlite3(const fs::path& file, const std::string& sql) {
  const std::string command = "sqlite3 -readonly '" + file.string() + "' \"" + sql + "\" 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string answer;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    answer.append(buffer.data(), n);
  pclose(pipe);
  return answer;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SessionFile, RoundTripsAnySession) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    TempFolder folder;
    const RandomSession session = random_session(seed);
    const auto written = write_session(folder / "s.ttrace", session);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto read = test::read_session(folder / "s.ttrace");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    ASSERT_EQ(*read, session);
    EXPECT_EQ(check_session(folder / "s.ttrace").value(), std::vector<std::string>{});
  }
}

TEST(SessionFile, RoundTripsEmptySession) {
  TempFolder folder;
  RandomSession session = random_session(0, {0, 0, 0, 0, 0, 0});
  session.info.facts.clear();
  session.info.model_files.clear();
  ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
  EXPECT_EQ(test::read_session(folder / "s.ttrace").value(), session);
  EXPECT_EQ(check_session(folder / "s.ttrace").value(), std::vector<std::string>{});
}

// As when a step shows what became of a draft.
TEST(SessionFile, ReplacesTokens) {
  TempFolder folder;
  RandomSession session = random_session(4);
  auto writer = SessionWriter::create(folder / "s.ttrace", session.info);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(add_all(**writer, session).has_value());
  for (const std::size_t i : {7U, 8U}) {
    session.tokens[i].draft = Draft::Rejected;
    session.tokens[i].sequence = 3;
  }
  ASSERT_TRUE((*writer)->replace_tokens(std::span(session.tokens).subspan(7, 2)).has_value());
  ASSERT_TRUE((*writer)->finish(session.info, session.losses).has_value());
  EXPECT_EQ(test::read_session(folder / "s.ttrace").value(), session);
  EXPECT_EQ(check_session(folder / "s.ttrace").value(), std::vector<std::string>{});
}

TEST(SessionFile, IsSingleFileWhenFinished) {
  TempFolder folder;
  ASSERT_TRUE(write_session(folder / "s.ttrace", random_session(1)).has_value());
  EXPECT_EQ(file_names(folder.path()), std::vector<std::string>{"s.ttrace"});
}

TEST(SessionFile, AnswersPlainSql) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  RandomSession s = random_session(3);
  s.info.title = "Once upon a time";
  ASSERT_TRUE(write_session(file, s).has_value());

  std::int64_t tokens = 0, generate = 0;
  std::size_t ops = 0;
  for (const Step& step : s.steps) {
    tokens += step.n_tokens;
    ops += step.op_ends.size();
    generate += step.phase == Phase::Generate;
  }
  const auto line = [](auto v) { return std::to_string(v) + "\n"; };
  EXPECT_EQ(query_sqlite3(file, "PRAGMA application_id"), line(0x54545243));
  EXPECT_EQ(query_sqlite3(file, "PRAGMA user_version"), "8\n");
  EXPECT_EQ(query_sqlite3(file, "PRAGMA journal_mode"), "delete\n");
  EXPECT_EQ(query_sqlite3(file, "PRAGMA integrity_check"), "ok\n");
  EXPECT_EQ(query_sqlite3(file, "SELECT value FROM tt_meta WHERE key = 'title'"),
            "Once upon a time\n");
  EXPECT_EQ(query_sqlite3(file, "SELECT value FROM tt_meta WHERE key = 'state'"), "done\n");
  EXPECT_EQ(query_sqlite3(file, "SELECT count(*) FROM tt_meta WHERE key LIKE 'owner%'"), "0\n");
  EXPECT_EQ(query_sqlite3(file, "SELECT count(*) FROM tt_step"), line(s.steps.size()));
  EXPECT_EQ(query_sqlite3(file, "SELECT sum(n_tokens) FROM tt_step"), line(tokens));
  EXPECT_EQ(query_sqlite3(file, "SELECT sum(n_ops) FROM tt_step"), line(ops));
  EXPECT_EQ(query_sqlite3(file, "SELECT count(*) FROM tt_step WHERE phase = 'generate'"),
            line(generate));
  EXPECT_EQ(query_sqlite3(file, "SELECT begin_ns FROM tt_step WHERE id = 5"),
            line(s.steps[5].begin.v));
  EXPECT_EQ(
      query_sqlite3(file, "SELECT count(*), count(cpu_ns) FROM tt_step"),
      std::format("{}|{}\n", s.steps.size(), std::ranges::count_if(s.steps, [](const Step& step) {
                    return step.conditions.cpu_ns.has_value();
                  })));
  EXPECT_EQ(query_sqlite3(file, "SELECT id FROM tt_token WHERE idx = 7"), line(s.tokens[7].id));
  EXPECT_EQ(query_sqlite3(file, "SELECT n_tensors FROM tt_template WHERE id = 2"),
            line(s.templates[1].tensors.size()));
  EXPECT_EQ(query_sqlite3(file, "SELECT fingerprint FROM tt_template WHERE id = 1"),
            std::format("{:016x}\n", s.templates[0].fingerprint));
}

TEST(SessionFile, UsesAtMostTwoBytesPerAccess) {
  // The tinyllama shape: a decode has 380 ops and 1,250 accesses; the graph changes each time
  // the KV window grows by 256.
  constexpr std::size_t kOps = 380, kAccesses = 1250, kSteps = 512;
  Dice dice(1);
  GraphTemplate graph;
  for (std::size_t i = 0; i < 1100; ++i) {
    Tensor t;
    t.name = "blk." + std::to_string(i / 48) + ".some_weight_" + std::to_string(i % 48) + ".weight";
    t.type = "Q4_K";
    t.ne = {2048, 2048, 1, 1};
    t.nb = {144, 1152, 2359296, 2359296};
    t.buffer = "CPU_Mapped";
    t.file = {0, i * 2359296, 2359296};
    graph.tensors.push_back(t);
  }
  for (std::uint32_t i = 0; i < kOps; ++i) {
    graph.nodes.push_back({TensorId{700 + i}, "MUL_MAT", {TensorId{i}, TensorId{i + 1}}, {}, true});
    graph.ops.push_back({NodeId{i}, 1, "CPU", LayerId{static_cast<std::int32_t>(i / 17)}});
  }
  for (const SlotKind kind : {SlotKind::TokenIds, SlotKind::Positions, SlotKind::CachePositions,
                              SlotKind::OutputIds, SlotKind::AttendedCells})
    graph.slots.push_back({kind, TensorId{1}, OpId{0}, kNoLayer});

  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  SessionInfo info;
  info.id = "size";
  auto writer = SessionWriter::create(file, info);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    const TemplateId template_id{i / 256 + 1};
    if (i % 256 == 0) {
      ASSERT_TRUE((*writer)->add_template(template_id, graph).has_value());
      Allocation allocation{AllocationId{template_id.v}, template_id, {}};
      for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        allocation.addresses.push_back(0x7f0000000000 + dice.below(1 << 30));
      ASSERT_TRUE((*writer)->add_allocation(allocation).has_value());
    }
    Step step;
    step.id = StepId{i};
    step.phase = Phase::Generate;
    step.timing = Timing::Fast;
    step.graph = template_id;
    step.allocation = AllocationId{template_id.v};
    step.begin = Ns{now};
    step.first_op = Ns{now += 30'000};
    for (std::size_t op = 0; op < kOps; ++op) {
      now +=
          static_cast<std::int64_t>(1000 * std::exp2(static_cast<double>(dice.below(1000)) / 100));
      step.op_ends.push_back(Ns{now});
    }
    step.end = Ns{now += 50'000};
    step.n_tokens = 1;
    step.first_token = i;
    const auto at = static_cast<std::int64_t>(i);
    step.slots = {{{static_cast<std::int64_t>(dice.below(32000))}, {}},
                  {{at}, {}},
                  {{at}, {}},
                  {{0}, {}},
                  {std::vector<std::int64_t>(i + 1), {}}};
    std::iota(step.slots[4].ints.begin(), step.slots[4].ints.end(), 0);
    ASSERT_TRUE(
        (*writer)->add_tokens(std::array{Token{i, 5, 5, true, false, " word"}}).has_value());
    ASSERT_TRUE((*writer)->add_step(step).has_value());
    ASSERT_TRUE((*writer)->commit().has_value());
  }
  ASSERT_TRUE((*writer)->finish(info, {}).has_value());
  const auto bytes = fs::file_size(file);
  const double each = static_cast<double>(bytes) / (kSteps * kAccesses);
  std::printf("%zu steps of %zu ops: %zu bytes, %.2f bytes per access\n", kSteps, kOps,
              static_cast<std::size_t>(bytes), each);
  EXPECT_LE(each, 2.0);
}

TEST(SessionFile, AcceptsAnyFileName) {
  TempFolder folder;
  const RandomSession session = random_session(4);
  for (const char* name : {"a b.ttrace", "50%41?x=1#y.ttrace", "\xC3\xA4'\".ttrace"}) {
    ASSERT_TRUE(write_session(folder / name, session).has_value()) << name;
    EXPECT_TRUE(fs::exists(folder / name));
    EXPECT_EQ(test::read_session(folder / name).value(), session) << name;
  }
}

TEST(SessionWriter, NeverReplacesAFile) {
  TempFolder folder;
  std::ofstream(folder / "s.ttrace") << "precious";
  const auto writer = SessionWriter::create(folder / "s.ttrace", random_session(1).info);
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(fs::file_size(folder / "s.ttrace"), 8u);
  EXPECT_EQ(file_names(folder.path()), std::vector<std::string>{"s.ttrace"});
}

TEST(SessionWriter, ReportsMissingFolder) {
  TempFolder folder;
  const auto writer = SessionWriter::create(folder / "no/s.ttrace", random_session(1).info);
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().kind, Kind::NotFound) << writer.error().message;
}

TEST(SessionReader, DistinguishesEndFromMissingStep) {
  TempFolder folder;
  const RandomSession session = random_session(6);
  ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  const auto n = static_cast<std::uint32_t>(session.steps.size());
  EXPECT_EQ(reader->step_count().value(), n);
  EXPECT_EQ(reader->step(StepId{n}).error().kind, Kind::NotFound);
  EXPECT_EQ(reader->graph(TemplateId{99}).error().kind, Kind::NotFound);
  EXPECT_EQ(reader->allocation(AllocationId{99}).error().kind, Kind::NotFound);
  EXPECT_EQ(reader->tokens(28, 100)->size(), 2u);
  EXPECT_EQ(reader->tokens(500, 100)->size(), 0u);
  std::vector<std::uint32_t> seen;
  const auto done = reader->for_each_step(StepId{n - 3}, 100, [&](const Step& step) {
    seen.push_back(step.id.v);
    return seen.size() < 2;
  });
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(seen, (std::vector{n - 3, n - 2}));
}

TEST(SessionReader, IsNotConfusedByConcurrentWrites) {
  TempFolder folder;
  constexpr std::uint32_t kSteps = 4000;
  const RandomSession session = random_session(6);
  auto writer = SessionWriter::create(folder / "s.ttrace", session.info);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE((*writer)->commit().has_value());
  std::jthread writing([&] {
    Step step;
    step.timing = Timing::Fast;
    for (step.id = StepId{0}; step.id.v < kSteps; ++step.id.v)
      if (!(*writer)->add_step(step) || !(*writer)->commit()) return;
  });
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  // Reaches the end repeatedly while the writer moves it.
  std::uint32_t at = 0;
  while (at < kSteps) {
    const auto steps = reader->for_each_step(StepId{at}, UINT32_MAX, [&](const Step& step) {
      EXPECT_EQ(step.id.v, at);
      return ++at < kSteps;
    });
    ASSERT_TRUE(steps.has_value()) << steps.error().message;
  }
}

// A finished session with another `version` or application id in its header.
std::string session_bytes(std::size_t at, std::uint32_t value) {
  TempFolder folder;
  EXPECT_TRUE(write_session(folder / "s.ttrace", random_session(2)).has_value());
  std::ifstream in(folder / "s.ttrace", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (24 - 8 * i));
  return bytes;
}

TEST(SessionReader, OpensOnlySupportedVersions) {
  constexpr std::size_t kVersion = 60, kApplication = 68;
  const struct {
    const char* name;
    std::string bytes;
    Kind error;
  } cases[] = {
      {"empty", "", Kind::NotASession},
      {"text", std::string(200, 'x'), Kind::NotASession},
      {"magic alone", std::string("SQLite format 3\0", 16), Kind::NotASession},
      {"another application", session_bytes(kApplication, 0x12345678), Kind::NotASession},
      {"no version", session_bytes(kVersion, 0), Kind::NotASession},
      {"the next version", session_bytes(kVersion, kFormatVersion + 1), Kind::NewerVersion},
      {"a far version", session_bytes(kVersion, 0xFFFFFFFF), Kind::NewerVersion},
      {"header alone", session_bytes(kVersion, 1).substr(0, 100), Kind::Damaged},
  };
  TempFolder folder;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    std::ofstream(folder / "s.ttrace", std::ios::binary) << c.bytes;
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().kind, c.error) << reader.error().message;
  }
  EXPECT_EQ(SessionReader::open(folder.path()).error().kind, Kind::NotASession);
  EXPECT_EQ(SessionReader::open(folder / "none").error().kind, Kind::NotFound);
  std::ofstream(folder / "s.ttrace", std::ios::binary)
      << session_bytes(kVersion, kFormatVersion + 1);
  EXPECT_NE(SessionReader::open(folder / "s.ttrace")
                .error()
                .message.find(std::format("version {}", kFormatVersion + 1)),
            std::string::npos);
}

// A recording was killed, and its file was removed without its -wal.
TEST(SessionFile, IgnoresWalOfRemovedFileWithSameName) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace", wal = folder / "s.ttrace-wal", kept = folder / "kept";
  const RandomSession old = random_session(5), fresh = random_session(6);
  {
    auto writer = SessionWriter::create(file, old.info).value();
    ASSERT_TRUE(tt::test::add_all(*writer, old).has_value());
    fs::copy_file(wal, kept);
  }
  ASSERT_GT(fs::file_size(kept), 4096u);
  fs::remove(file);
  fs::rename(kept, wal);
  ASSERT_TRUE(write_session(file, fresh).has_value());
  const auto read = tt::test::read_session(file);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->steps, fresh.steps);
  EXPECT_EQ(read->tokens, fresh.tokens);
  EXPECT_TRUE(check_session(file)->empty());
}

}  // namespace
}  // namespace tt
