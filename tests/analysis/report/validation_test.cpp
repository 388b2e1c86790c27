// Valid recordings pass; each kind of defect fails its check.
#include "analysis/report/validation.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/index/session_index.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt::test {
namespace {

SessionInfo valid_info() {
  SessionInfo info = SmallSession::small_info();
  info.model_files = {{.path = "small.gguf", .size = 6000, .mtime_ns = 0, .header_hash = {}}};
  info.facts = {{"trace.weights", "5"},
                {"trace.offsets_by_name", "5"},
                {"trace.offsets_by_address", "4"},
                {"trace.offsets_agree", "4"}};
  return info;
}

std::set<std::string> failed(const std::filesystem::path& session) {
  std::set<std::string> failed;
  const auto validation = validate(session);
  EXPECT_TRUE(validation.has_value()) << validation.error().message;
  if (!validation) return failed;
  EXPECT_EQ(validation->checks.size(), kChecks);
  for (const CheckResult& check : validation->checks) {
    EXPECT_EQ(check.status == CheckStatus::Failed || check.status == CheckStatus::Incomplete,
              check.wrong > 0);
    EXPECT_EQ(check.evidence.empty(), check.wrong == 0);
    if (check.status == CheckStatus::Failed) failed.insert(to_text(check.check));
  }
  EXPECT_EQ(validation->passed(), failed.empty());
  return failed;
}

std::set<std::string> failed(const SmallSession& session) { return failed(session.path); }

struct Defect {
  const char* what;
  std::function<void(SessionInfo&, std::vector<Step>&)> make;
  std::set<std::string> fails;
};

TEST(Validation, EachDefectFailsItsCheck) {
  const Defect cases[] = {
      {"nothing", [](SessionInfo&, std::vector<Step>&) {}, {}},
      {"an op is missing", [](SessionInfo&, auto& s) { s[0].op_ends.pop_back(); }, {"ops"}},
      {"an op is missing, cancelled",
       [](SessionInfo&, auto& s) {
         s[0].op_ends.pop_back();
         s[0].aborted = true;
       },
       {}},
      {"ops end out of order",
       [](SessionInfo&, auto& s) { std::swap(s[0].op_ends[1], s[0].op_ends[2]); },
       {"op_times"}},
      {"an op ends after its step",
       [](SessionInfo&, auto& s) { s[0].op_ends[4] = Ns{261}; },
       {"op_times"}},
      {"a step ends before it begins",
       [](SessionInfo&, auto& s) { s[0].begin = Ns{300}; },
       {"steps", "op_times"}},
      {"two overlapping steps",
       [](SessionInfo&, auto& s) {
         s.push_back(small_step(1));
         s[1].first_token = 0;
         s[1].n_tokens = 0;
       },
       {"steps"}},
      {"a token is evaluated twice",
       [](SessionInfo&, auto& s) {
         s.push_back(small_step(1));
         s[1].first_token = 1;
         s[1].n_tokens = 1;
         s[1].begin = s[1].first_op = Ns{300};
         s[1].op_ends.assign(5, Ns{300});
         s[1].end = Ns{300};
       },
       {"tokens"}},
      {"a different token id in memory",
       [](SessionInfo&, auto& s) { s[0].slots[0].ints[1] = 6; },
       {"token_ids"}},
      {"a layer is missing",
       [](SessionInfo& i, auto&) { i.n_layers = 3; },
       {"layers", "hyper_parameters"}},
      {"all but two of the maximum number of layers are missing",
       [](SessionInfo& i, auto&) { i.n_layers = 65'536; },
       {"layers"}},
      {"a weight ends after the end of the file",
       [](SessionInfo& i, auto&) { i.model_files[0].size = 5511; },
       {"file_ranges"}},
      {"the file of a weight is missing",
       [](SessionInfo& i, auto&) { i.model_files.clear(); },
       {"file_ranges"}},
      {"offsets by name and by address differ",
       [](SessionInfo& i, auto&) { i.facts[3].second = "3"; },
       {"offsets_by_name_and_address"}},
  };
  for (const Defect& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    SessionInfo info = valid_info();
    std::vector<Step> steps = {small_step(0)};
    wrong.make(info, steps);
    EXPECT_EQ(failed(SmallSession(steps, info)), wrong.fails);
  }
}

TEST(Validation, MissingDataIsNamedAndDoesNotMakeARecordingInvalid) {
  struct Case {
    LossCounters losses;
    CheckStatus status;
    const char* verdict;
  };
  const Case cases[] = {
      {{}, CheckStatus::Passed, "valid"},
      {{.steps_without_times = 77}, CheckStatus::Incomplete, "valid, times of 77 steps missing"},
      {{.steps_without_times = 1}, CheckStatus::Incomplete, "valid, times of 1 step missing"},
      {{.slot_values_dropped = 2, .steps_not_written = 3, .page_faults_lost = 4},
       CheckStatus::Incomplete,
       "valid, 2 slot values, 3 steps, 4 page faults missing"},
      {{.steps_without_times = 77, .count_mismatches = 1}, CheckStatus::Failed, "NOT valid"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.verdict);
    const SmallSession session({small_step(0)}, valid_info(), small_graph(), c.losses);
    const auto validation = validate(session.path);
    ASSERT_TRUE(validation.has_value()) << validation.error().message;
    EXPECT_EQ(validation->verdict(), c.verdict);
    EXPECT_EQ(validation->passed(), c.status != CheckStatus::Failed);
    EXPECT_EQ(validation->checks.at(static_cast<std::size_t>(Check::Losses)).status, c.status);
  }
}

// A session with token counts only: the first token and the token count of each step.
struct TokenSteps {
  const char* what;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> steps;
  std::set<std::uint32_t> reused;
  std::set<std::string> fails;
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::uint64_t not_written = 0;
};

std::filesystem::path write_token_session(const TempFolder& folder, const TokenSteps& token_steps) {
  const auto path = folder.path() / "progress.ttrace";
  SessionInfo info;
  info.id = "progress";
  info.level = Level::Minimal;
  info.state = SessionState::Done;
  info.facts = token_steps.facts;
  auto writer = SessionWriter::create(path, info);
  EXPECT_TRUE(writer.has_value());
  std::vector<Token> tokens(8);
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    tokens[i].index = i;
    tokens[i].reused = token_steps.reused.contains(i);
  }
  EXPECT_TRUE((*writer)->add_tokens(tokens).has_value());
  for (std::uint32_t i = 0; const auto& [first, count] : token_steps.steps) {
    Step step;
    step.id = StepId{i};
    step.begin = step.first_op = Ns{i * 10};
    step.end = Ns{i++ * 10 + 5};
    step.first_token = first;
    step.n_tokens = count;
    EXPECT_TRUE((*writer)->add_step(step).has_value());
  }
  EXPECT_TRUE((*writer)->finish(info, {.steps_not_written = token_steps.not_written}).has_value());
  return path;
}

TEST(Validation, DetectsSkippedAndRepeatedTokens) {
  const std::set<std::string> passing, wrong = {"tokens"};
  const TokenSteps cases[] = {
      {"consecutive, the last sampled token is not evaluated",
       {{0, 3}, {3, 1}, {4, 1}},
       {},
       passing},
      {"a reused prefix", {{3, 2}, {5, 1}}, {0, 1, 2}, passing},
      {"a skipped prefix", {{3, 2}, {5, 1}}, {}, wrong},
      {"three skipped", {{0, 2}, {5, 1}}, {}, wrong},
      {"three reused", {{0, 2}, {5, 1}}, {2, 3, 4}, passing},
      {"one skipped between reused ones", {{0, 2}, {5, 1}}, {2, 4}, wrong},
      {"more skipped than the session has", {{0, 2}, {4'000'000'000, 1}}, {}, {"file", "tokens"}},
      {"repeated", {{0, 3}, {2, 1}}, {}, wrong},
      {"repeated after a step without tokens", {{0, 3}, {0, 0}, {2, 1}}, {}, wrong},
      {"a step without tokens at any position", {{0, 3}, {7, 0}, {3, 1}}, {}, passing},
      {"steps lost", {{0, 2}, {5, 1}}, {}, passing, {}, 1},
      {"an imported part of a session", {{3, 2}}, {}, passing, {{"trace.imported_from", "log"}}},
      {"skipped in an import", {{3, 2}, {6, 1}}, {}, wrong, {{"trace.imported_from", "log"}}},
      {"an import with unknown token counts",
       {{0, 1}, {5, 1}},
       {},
       passing,
       {{"trace.imported_from", "log"}, {"trace.steps_without_token_count", "2"}}},
  };
  for (const TokenSteps& token_steps : cases) {
    SCOPED_TRACE(token_steps.what);
    const TempFolder folder;
    EXPECT_EQ(failed(write_token_session(folder, token_steps)), token_steps.fails);
  }
}

TEST(Validation, ReportsUnevaluatedTokens) {
  const TempFolder folder;
  const auto path = write_token_session(folder, {"", {{0, 2}, {5, 1}, {2, 1}}, {2}, {}});
  const auto validation = validate(path);
  ASSERT_TRUE(validation.has_value()) << validation.error().message;
  const auto tokens = std::ranges::find(validation->checks, Check::Tokens, &CheckResult::check);
  EXPECT_EQ(tokens->items_checked, 4U);
  EXPECT_EQ(tokens->wrong, 3U);
  EXPECT_EQ(tokens->evidence,
            (std::vector<std::string>{"step 1 begins at token 5: 2 before it, from token 3 on, "
                                      "were neither evaluated nor reused",
                                      "step 2 evaluates token 2 again"}));
}

// The tokens of an unreadable step are unknown, so the next step has no gap.
TEST(Validation, UnreadableStepIsNotATokenGap) {
  const TempFolder folder;
  const auto path = write_token_session(folder, {"", {{0, 2}, {2, 3}, {5, 1}}, {}, {}});
  {
    const auto db = Database::open(path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(db->run("UPDATE tt_step SET end_ns = end_ns + 1 WHERE id = 1").has_value());
  }
  EXPECT_EQ(failed(path), std::set<std::string>{"file"});
}

TEST(Validation, DetectsInvalidExpertIds) {
  GraphTemplate graph = small_graph();
  graph.tensors.push_back(dense("ffn_moe_topk-1", {2, 2}, kI32));
  graph.slots.push_back({.kind = SlotKind::Experts,
                         .tensor = TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)},
                         .read_at = OpId{3},
                         .layer = LayerId{1}});
  SessionInfo info = valid_info();
  info.n_experts = 4;
  const auto failed_with = [&](std::vector<std::int64_t> experts) {
    Step step = small_step(0);
    step.slots.push_back({.ints = std::move(experts), .floats = {}});
    return failed(SmallSession({step}, info, graph));
  };
  const std::set<std::string> passing, wrong = {"experts"};
  EXPECT_EQ(failed_with({0, 3, 3, 0}), passing);
  EXPECT_EQ(failed_with({0, 4, 3, 0}), wrong);
  EXPECT_EQ(failed_with({0, -1, 3, 0}), wrong);
  EXPECT_EQ(failed_with({0, 3, 2, 2}), wrong);
}

TEST(Validation, MissingFileIsNotFound) {
  TempFolder folder;
  EXPECT_EQ(validate(folder.path() / "none.ttrace").error().kind, TraceError::Kind::NotFound);
}

// The file declares more steps than it has, with a valid checksum.
TEST(Validation, BoundsTheDeclaredStepCount) {
  const SmallSession session({small_step(0), small_step(1)}, valid_info());
  {
    const auto db = Database::open(session.path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(write_meta(*db, {{"steps", "4294967295"}}).has_value());
  }
  const auto validation = validate(session.path);
  ASSERT_TRUE(validation.has_value()) << validation.error().message;
  EXPECT_FALSE(validation->passed());
  // The declared steps count as damaged, up to a limit.
  const SessionReader reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->damaged().front(), StepId{2});
  EXPECT_EQ(index->damaged().size(), 1U << 20);
  EXPECT_EQ(SessionIndex::build(reader, [] { return false; }).error().kind,
            TraceError::Kind::Cancelled);
}

TEST(Validation, CanBeCancelled) {
  const SmallSession session({small_step(0)}, valid_info());
  EXPECT_EQ(validate(session.path, [] { return false; }).error().kind, TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
