// Recordings that are sound pass; each thing that can be wrong fails its check.
#include "analysis/validation.h"

#include <functional>
#include <set>
#include <string>

#include "analysis/session_index.h"
#include "tests/analysis/small_session.h"
#include "tracer/format/session_tables.h"
#include "tracer/format/sqlite_handle.h"

namespace tt::test {
namespace {

SessionInfo sound_info() {
  SessionInfo info = SmallSession::small_info();
  info.model_files = {{.path = "small.gguf", .size = 6000, .mtime_ns = 0, .header_hash = {}}};
  info.facts = {{"trace.weights", "5"},
                {"trace.offsets_by_name", "5"},
                {"trace.offsets_by_address", "4"},
                {"trace.offsets_agree", "4"}};
  return info;
}

std::set<std::string> failed(const SmallSession& session) {
  std::set<std::string> failed;
  const auto validation = validate(session.path);
  EXPECT_TRUE(validation.has_value()) << validation.error().message;
  if (!validation) return failed;
  EXPECT_EQ(validation->checks.size(), kChecks);
  for (const CheckResult& check : validation->checks) {
    EXPECT_EQ(check.verdict == Verdict::Failed, check.wrong > 0);
    EXPECT_EQ(check.evidence.empty(), check.wrong == 0);
    if (check.verdict == Verdict::Failed) failed.insert(to_text(check.check));
  }
  EXPECT_EQ(validation->passed(), failed.empty());
  return failed;
}

struct Wrong {
  const char* what;
  std::function<void(SessionInfo&, std::vector<Step>&)> make;
  std::set<std::string> fails;
};

TEST(Validation, EachThingThatIsWrongFailsItsCheck) {
  // SmallSession says that it lost the times of a step.
  const Wrong cases[] = {
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
      {"an op ends behind its step",
       [](SessionInfo&, auto& s) { s[0].op_ends[4] = Ns{261}; },
       {"op_times"}},
      {"a step ends before it begins",
       [](SessionInfo&, auto& s) { s[0].begin = Ns{300}; },
       {"steps", "op_times"}},
      {"two steps at once",
       [](SessionInfo&, auto& s) {
         s.push_back(small_step(1));
         s[1].first_token = 0;
         s[1].n_tokens = 0;
       },
       {"steps"}},
      {"tokens twice",
       [](SessionInfo&, auto& s) {
         s.push_back(small_step(1));
         s[1].first_token = 1;
         s[1].n_tokens = 1;
         s[1].begin = s[1].first_op = Ns{300};
         s[1].op_ends.assign(5, Ns{300});
         s[1].end = Ns{300};
       },
       {"tokens"}},
      {"another token in memory",
       [](SessionInfo&, auto& s) { s[0].slots[0].ints[1] = 6; },
       {"token_ids"}},
      {"a layer is missing", [](SessionInfo& i, auto&) { i.n_layers = 3; }, {"layers"}},
      {"all but two of the layers that there may be",
       [](SessionInfo& i, auto&) { i.n_layers = 4'294'967'295; },
       {"layers"}},
      {"a weight ends behind the file",
       [](SessionInfo& i, auto&) { i.model_files[0].size = 5511; },
       {"file_ranges"}},
      {"the other file of a split model",
       [](SessionInfo& i, auto&) { i.model_files.clear(); },
       {"file_ranges"}},
      {"the two ways disagree",
       [](SessionInfo& i, auto&) { i.facts[3].second = "3"; },
       {"offset_ways"}},
  };
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    SessionInfo info = sound_info();
    std::vector<Step> steps = {small_step(0)};
    wrong.make(info, steps);
    std::set<std::string> expected = wrong.fails;
    expected.insert("losses");
    EXPECT_EQ(failed(SmallSession(steps, info)), expected);
  }
}

TEST(Validation, RoutersChooseExpertsThatThereAre) {
  GraphTemplate graph = small_graph();
  graph.tensors.push_back(dense("ffn_moe_topk-1", {2, 2}, kI32));
  graph.slots.push_back({.kind = SlotKind::Experts,
                         .tensor = TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)},
                         .read_at = OpId{3},
                         .layer = LayerId{1}});
  SessionInfo info = sound_info();
  info.n_experts = 4;
  const auto failed_with = [&](std::vector<std::int64_t> experts) {
    Step step = small_step(0);
    step.slots.push_back({.ints = std::move(experts), .floats = {}});
    return failed(SmallSession({step}, info, graph));
  };
  const std::set<std::string> sound = {"losses"}, wrong = {"losses", "experts"};
  EXPECT_EQ(failed_with({0, 3, 3, 0}), sound);
  EXPECT_EQ(failed_with({0, 4, 3, 0}), wrong);
  EXPECT_EQ(failed_with({0, -1, 3, 0}), wrong);
  EXPECT_EQ(failed_with({0, 3, 2, 2}), wrong);
}

TEST(Validation, AFileThatIsNoneIsAnError) {
  TempFolder folder;
  EXPECT_EQ(validate(folder.path() / "none.ttrace").error().kind, TraceError::Kind::NotFound);
}

// A total with a right checksum, behind which there is nothing.
TEST(Validation, MoreStepsThanThereAreEndIt) {
  const SmallSession session({small_step(0), small_step(1)}, sound_info());
  {
    const auto db = Database::open(session.path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(write_meta(*db, {{"steps", "4294967295"}}).has_value());
  }
  const auto validation = validate(session.path);
  ASSERT_TRUE(validation.has_value()) << validation.error().message;
  EXPECT_FALSE(validation->passed());
  // As far as it can be believed all that the file counts is lost.
  const SessionReader reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->damaged().front(), StepId{2});
  EXPECT_EQ(index->damaged().size(), 1U << 20);
  EXPECT_EQ(SessionIndex::build(reader, [] { return false; }).error().kind,
            TraceError::Kind::Cancelled);
}

TEST(Validation, CanBeWithdrawn) {
  const SmallSession session({small_step(0)}, sound_info());
  EXPECT_EQ(validate(session.path, [] { return false; }).error().kind, TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
