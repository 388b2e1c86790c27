#include <gtest/gtest.h>

#include "analysis/accesses/access_table.h"
#include "analysis/tables/op_table.h"
#include "analysis/tables/session_overview.h"
#include "analysis/tables/step_summary.h"
#include "analysis/tables/token_speed.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/model/server_slots.h"

namespace tt {
namespace {

using test::small_step;
using test::SmallSession;

constexpr PageRange kEveryRow{.from = 0, .limit = 1000};

std::vector<std::int64_t> numbers(const std::vector<Ns>& times) {
  std::vector<std::int64_t> out;
  for (const Ns t : times) out.push_back(t.v);
  return out;
}

std::vector<std::uint64_t> numbers(const std::vector<Bytes>& bytes) {
  std::vector<std::uint64_t> out;
  for (const Bytes b : bytes) out.push_back(b.v);
  return out;
}

TEST(StepSummary, SumsOpsByLayerWithOthersInLastEntry) {
  const SmallSession session({small_step(0)});
  const auto page = step_summaries(session.reader(), kEveryRow);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  ASSERT_EQ(page->total, 1u);
  const StepSummary& step = page->rows.at(0);
  EXPECT_EQ(step.ops_timed, 5u);
  EXPECT_EQ(numbers(step.layer_ns), (std::vector<std::int64_t>{20 + 30, 40, 10 + 50}));
  // Layer 0: the norm reads 64 + 32 and writes 64, Q reads 256 + 64 and writes 64.
  // Layer 1: 256 + 64 + 64. Outside: rows 2 x 32 and ids 8, 64 written; 512 + 64, 128 written.
  EXPECT_EQ(numbers(step.layer_bytes),
            (std::vector<std::uint64_t>{64 + 32 + 64 + 256 + 64 + 64, 256 + 64 + 64,
                                        64 + 8 + 64 + 512 + 64 + 128}));
  EXPECT_EQ(step.read.v + step.written.v, 544u + 384u + 840u);
  EXPECT_EQ(step.written.v, 64u + 64 + 64 + 64 + 128);
  EXPECT_EQ(step.accesses, 16u);
}

TEST(StepSummary, CancelledStepCountsOnlyOpsThatRan) {
  Step step = small_step(0);
  step.op_ends.resize(2);
  step.aborted = true;
  const SmallSession session({step});
  const auto page = step_summaries(session.reader(), kEveryRow);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->rows.at(0).ops_timed, 2u);
  EXPECT_TRUE(page->rows.at(0).aborted);
  EXPECT_EQ(numbers(page->rows.at(0).layer_ns), (std::vector<std::int64_t>{20, 0, 10}));
}

TEST(StepSummary, StepWithoutTemplateKeepsItsMetadata) {
  Step step = small_step(0);
  step.graph = {};
  step.allocation = {};
  step.op_ends.clear();
  step.slots.clear();
  step.timing = Timing::None;
  step.dropped = true;
  const SmallSession session({step});
  const auto page = step_summaries(session.reader(), kEveryRow);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->rows.at(0).n_tokens, 2u);
  EXPECT_TRUE(page->rows.at(0).dropped);
  EXPECT_EQ(page->rows.at(0).ops_timed, 0u);
  EXPECT_EQ(page->rows.at(0).layer_ns.size(), 3u);
}

TEST(StepSummary, PagesByStep) {
  const SmallSession session({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = session.reader();
  struct Case {
    PageRange range;
    std::vector<std::uint32_t> steps;
  };
  const Case cases[] = {{{0, 2}, {0, 1}},
                        {{1, 1}, {1}},
                        {{2, 10}, {2}},
                        {{3, 10}, {}},
                        {{4'294'967'295, 4'294'967'295}, {}},
                        {{0, 0}, {}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.range.from);
    const auto page = step_summaries(reader, c.range);
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(page->total, 3u);
    std::vector<std::uint32_t> steps;
    for (const StepSummary& step : page->rows) steps.push_back(step.id.v);
    EXPECT_EQ(steps, c.steps);
  }
}

TEST(StepSummary, RejectsImplausibleLayerCount) {
  SessionInfo info = SmallSession::small_info();
  info.n_layers = 1025;
  const SmallSession session({small_step(0)}, info);
  const auto page = step_summaries(session.reader(), kEveryRow);
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().kind, TraceError::Kind::Damaged);
}

TEST(OpTable, ReportsOpsAndTheirSources) {
  const SmallSession session({small_step(0)});
  const auto table = op_table(session.reader(), StepId{0}, {}, {}, kEveryRow);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->page.total, 5u);
  std::string text;
  for (const OpRow& row : table->page.rows) {
    const Tensor& output = table->graph->tensor(row.output);
    text += row.name + " " + output.name + " " + to_text(row.component) + "/" + to_text(row.role) +
            " " + std::to_string(row.begin.v) + "+" + std::to_string(row.duration->v) + " r" +
            std::to_string(row.read.v) + " w" + std::to_string(row.written.v) + " <-";
    for (const TensorId source : row.sources) text += " " + table->graph->tensor(source).name;
    text += "\n";
  }
  // A fused pair is one op; the norm inside it is not a source.
  EXPECT_EQ(text,
            "GET_ROWS embd embedding/ 100+10 r72 w64 <- token_embd.weight inp_tokens\n"
            "RMS_NORM+MUL attn_norm-0 norm/norm 110+20 r96 w64 <- embd blk.0.attn_norm.weight\n"
            "MUL_MAT Qcur-0 attention/Q 130+30 r320 w64 <- blk.0.attn_q.weight attn_norm-0\n"
            "MUL_MAT ffn_out-1 ffn/down 160+40 r320 w64 <- blk.1.ffn_down.weight Qcur-0\n"
            "MUL_MAT result_output output/logits 200+50 r576 w128 <- output.weight ffn_out-1\n");
}

TEST(OpTable, PagesMatchFullTable) {
  const SmallSession session({small_step(0)});
  const SessionReader reader = session.reader();
  const auto whole = op_table(reader, StepId{0}, {}, {}, kEveryRow);
  ASSERT_TRUE(whole.has_value());
  std::vector<OpRow> rows;
  for (std::uint64_t from = 0; from < 6; from += 2) {
    const auto page = op_table(reader, StepId{0}, {}, {}, {.from = from, .limit = 2});
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(page->page.total, 5u);
    rows.insert(rows.end(), page->page.rows.begin(), page->page.rows.end());
  }
  EXPECT_EQ(rows, whole->page.rows);
  const auto beyond = op_table(reader, StepId{0}, {}, {}, {.from = 4'294'967'295, .limit = 10'000});
  ASSERT_TRUE(beyond.has_value());
  EXPECT_TRUE(beyond->page.rows.empty());
}

TEST(OpTable, ReportsOutputStatistics) {
  const ValueStats described{.op = OpId{2}, .min = -1, .max = 2, .mean = 0.5F, .std = 1, .nan = 3};
  Step step = small_step(0);
  step.stats = {described};
  const SmallSession session({step});
  const auto table = op_table(session.reader(), StepId{0}, {}, {}, kEveryRow);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->page.rows.size(), 5u);
  for (const OpRow& row : table->page.rows)
    EXPECT_EQ(row.stats, row.op == OpId{2} ? std::optional(described) : std::nullopt);
}

TEST(OpTable, OpWithoutTimeBeginsWithTheStepAndHasNoDuration) {
  Step step = small_step(0);
  step.op_ends.clear();
  step.timing = Timing::None;
  const SmallSession session({step});
  const auto table = op_table(session.reader(), StepId{0}, {}, {}, kEveryRow);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->page.rows.size(), 5u);
  EXPECT_EQ(table->page.rows[3].begin, Ns{90});
  EXPECT_EQ(table->page.rows[3].duration, std::nullopt);
}

TEST(OpTable, UnknownStepIsNotFound) {
  const SmallSession session({small_step(0)});
  const auto table = op_table(session.reader(), StepId{7}, {}, {}, kEveryRow);
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().kind, TraceError::Kind::NotFound);
}

TEST(AccessTable, ReportsFileRangeAndAddress) {
  const SmallSession session({small_step(0)});
  const auto table = access_table(session.reader(), StepId{0}, {.op = OpId{2}}, {}, kEveryRow);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->total, 3u);
  const AccessRow& weight = table->rows[0];
  EXPECT_EQ(weight.tensor().name, "blk.0.attn_q.weight");
  EXPECT_EQ(weight.access.range, (FileRange{.file = 0, .offset = 3000, .length = 256}));
  EXPECT_EQ(weight.address, 0x3000u);  // the third tensor
  EXPECT_EQ(weight.derived->categories[weight.access.tensor.v], Category::Layer);
  EXPECT_FALSE(weight.access.write);
  EXPECT_TRUE(table->rows[2].access.write);
}

TEST(AccessTable, FiltersBeforePaging) {
  const SmallSession session({small_step(0)});
  const SessionReader reader = session.reader();
  const auto whole = access_table(reader, StepId{0}, {}, {}, kEveryRow);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->total, 16u);
  std::uint64_t counted = 0;
  for (std::uint32_t op = 0; op < 5; ++op) {
    const auto page =
        access_table(reader, StepId{0}, {.op = OpId{op}}, {}, {.from = 1, .limit = 1});
    ASSERT_TRUE(page.has_value());
    counted += page->total;
    ASSERT_EQ(page->rows.size(), 1u);
    EXPECT_EQ(page->rows[0].access.op, OpId{op});
  }
  EXPECT_EQ(counted, 16u);
  const auto none = access_table(reader, StepId{0}, {.op = OpId{99}}, {}, kEveryRow);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->total, 0u);
}

// Without the times of the tokens, as in older files: up to the last token that was evaluated.
TEST(TokenSpeed, OfStepsIncludesTheTimeBetweenThem) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 5; ++i) {
    Step step = small_step(i);
    step.begin = Ns{1000 * i};
    step.end = Ns{1000 * i + 100};
    step.n_tokens = 1;
    step.first_token = i;
    steps.push_back(step);
  }
  const SmallSession session(steps);
  const auto speed = token_speed(session.reader());
  ASSERT_TRUE(speed.has_value());
  EXPECT_EQ(speed->tokens, 3u);
  EXPECT_EQ(speed->ns, 3000);
  EXPECT_EQ(speed->first_token_ns, 1000);
  EXPECT_EQ(speed->per_second(), 1e6);
  EXPECT_EQ(speed->prompt_tokens, 1u);
  EXPECT_EQ(speed->prompt_ns, 100);
  EXPECT_EQ(speed->sample_share(), std::nullopt);
}

// Of a program that was attached to: the time between its requests is of none, requests at the same
// time count once, and the warm-up and rejected drafts do not count.
TEST(TokenSpeed, OfRequestsLeavesOutTheTimeBetweenThem) {
  const test::TempFolder folder;
  const auto path = folder.path() / "attached.ttrace";
  SessionInfo info = test::SmallSession::small_info();
  info.facts = {{"attach.pid", "7"}};
  auto writer = SessionWriter::create(path, info);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE((*writer)->add_template(TemplateId{1}, test::small_graph()).has_value());
  ASSERT_TRUE((*writer)
                  ->add_allocation({.id = AllocationId{1},
                                    .graph = TemplateId{1},
                                    .addresses = std::vector<std::uint64_t>(
                                        test::small_graph().tensors.size(), 0x1000)})
                  .has_value());
  struct Made {
    std::int64_t begin;
    std::vector<Token> tokens;
  };
  const auto prompt = [](std::optional<std::uint32_t> of) {
    return Token{.text = "", .sequence = of};
  };
  const auto generated = [](std::uint32_t of, Draft draft = Draft::None) {
    return Token{.generated = true, .text = "", .sequence = of, .draft = draft};
  };
  const std::vector<Made> made = {
      {0, {prompt(std::nullopt)}},  // the warm-up
      {1000, {prompt(1), prompt(1)}},
      {1200, {generated(1)}},
      {1400, {generated(1), generated(1, Draft::Rejected)}},
      {1600, {generated(1)}},
      // The program waits for the next request.
      {90'000, {prompt(2)}},
      {90'300, {generated(2), prompt(3)}},
      {90'500, {generated(2), generated(3)}},
      {90'700, {generated(2), generated(3)}},
      {90'900, {generated(3)}},
  };
  std::uint32_t tokens = 0;
  for (std::uint32_t i = 0; i < made.size(); ++i) {
    Step step = test::small_step(i);
    step.begin = Ns{made[i].begin};
    step.first_op = step.begin;
    step.end = Ns{made[i].begin + 100};
    step.op_ends.clear();
    step.timing = Timing::None;
    step.first_token = tokens;
    step.n_tokens = static_cast<std::uint32_t>(made[i].tokens.size());
    std::vector<Token> rows = made[i].tokens;
    for (Token& token : rows) token.index = tokens++;
    ASSERT_TRUE((*writer)->add_tokens(rows).has_value());
    ASSERT_TRUE((*writer)->add_step(step).has_value());
  }
  info.state = SessionState::Done;
  ASSERT_TRUE((*writer)->finish(info, {}).has_value());
  const auto speed = token_speed(*SessionReader::open(path));
  ASSERT_TRUE(speed.has_value());
  EXPECT_EQ(speed->tokens, 2U + 2 + 2);
  EXPECT_EQ(speed->ns, (1600 - 1200) + (90'900 - 90'300));
  EXPECT_EQ(speed->first_token_ns, 200);
  EXPECT_EQ(speed->prompt_tokens, 4U);
  EXPECT_EQ(speed->prompt_ns, 100 + 100 + 100);
}

// Two requests, one of which checks drafts, while their session grows: what was read before is not
// read again, and the result is the same. A draft is known to be rejected three steps later.
TEST(TokenSpeed, OfAGrowingSessionContinues) {
  const test::TempFolder folder;
  const auto path = folder.path() / "growing.ttrace";
  SessionInfo info = test::SmallSession::small_info();
  info.state = SessionState::Running;
  info.facts = {{"attach.pid", "7"}};
  auto writer = SessionWriter::create(path, info);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE((*writer)->add_template(TemplateId{1}, test::small_graph()).has_value());
  ASSERT_TRUE((*writer)
                  ->add_allocation({.id = AllocationId{1},
                                    .graph = TemplateId{1},
                                    .addresses = std::vector<std::uint64_t>(
                                        test::small_graph().tensors.size(), 0x1000)})
                  .has_value());
  RequestsSoFar so_far;
  std::vector<Token> drafts;
  std::uint32_t tokens = 0, generated = 0;
  for (std::uint32_t i = 0; i < 900; ++i) {
    Step step = test::small_step(i);
    step.begin = step.first_op = Ns{1000 * std::int64_t{i}};
    step.end = Ns{step.begin.v + 900};
    step.op_ends.clear();
    step.timing = Timing::None;
    step.first_token = tokens;
    const std::uint32_t sequence = i < 450 ? 1 : 2;
    std::vector<Token> rows(3, Token{.generated = i % 450 > 0, .text = "", .sequence = sequence});
    if (i % 5 == 4) rows[2].draft = Draft::Unknown;
    for (Token& token : rows) token.index = tokens++;
    step.n_tokens = 3;
    generated += i % 450 > 0 ? 3 : 0;
    ASSERT_TRUE((*writer)->add_tokens(rows).has_value());
    ASSERT_TRUE((*writer)->add_step(step).has_value());
    if (i % 5 == 4) drafts = {rows[2]};
    if (i % 5 == 2 && !drafts.empty()) {
      drafts[0].draft = Draft::Rejected;
      ASSERT_TRUE((*writer)->replace_tokens(drafts).has_value());
      --generated;
    }
    if (i % 90 != 89) continue;
    ASSERT_TRUE((*writer)->commit().has_value());
    const SessionReader reader = *SessionReader::open(path);
    const auto whole = token_speed(reader), continued = token_speed(reader, &so_far);
    ASSERT_TRUE(whole.has_value() && continued.has_value());
    EXPECT_EQ(*continued, *whole) << i;
    EXPECT_EQ(whole->tokens, generated - (i < 450 ? 1 : 2)) << i;
    EXPECT_EQ(so_far.steps, i < kStepsThatChange ? 0 : i + 1 - kStepsThatChange);
  }
  // Another session in its place.
  so_far.session = "another";
  const SessionReader reader = *SessionReader::open(path);
  EXPECT_EQ(*token_speed(reader, &so_far), *token_speed(reader));
}

TEST(TokenSpeed, IsUnknownWithoutATokenAfterTheFirst) {
  const SmallSession session({small_step(0), small_step(1)});
  const auto speed = token_speed(session.reader());
  ASSERT_TRUE(speed.has_value());
  EXPECT_EQ(speed->per_second(), std::nullopt);
}

TEST(SessionOverview, NamesTheProgramThatWasAttached) {
  SessionInfo info;
  EXPECT_FALSE(attached_program(info).has_value());
  const auto text = [&](std::vector<std::pair<std::string, std::string>> facts) {
    info.facts = std::move(facts);
    const auto program = attached_program(info);
    return program ? program->name + "; " + program->text : "";
  };
  EXPECT_EQ(text({{"attach.command", "ollama serve"},
                  {"attach.program", "llama-server"},
                  {"attach.pid", "12"},
                  {"library.ggml", "0.27.0"}}),
            "llama-server; llama-server, process 12, ggml 0.27.0");
  EXPECT_EQ(text({{"attach.command", "/opt/llama-server -m x.gguf"}, {"attach.pid", "12"}}),
            "llama-server; llama-server, process 12");
}

TEST(ServerSlots, AreThoseOfTheirText) {
  const ServerSlots slots = {3, std::nullopt, 0, 12};
  SessionInfo info;
  EXPECT_TRUE(server_slots(info).empty());
  info.facts = {{"attach.server_slots", format_server_slots(slots)}};
  EXPECT_EQ(info.fact("attach.server_slots"), "3 - 0 12");
  EXPECT_EQ(server_slots(info), slots);
  EXPECT_EQ(server_slot_of(slots, 1), 3U);
  EXPECT_EQ(server_slot_of(slots, 4), 12U);
  for (const std::uint32_t sequence : {0U, 2U, 5U, 4'294'967'295U})
    EXPECT_EQ(server_slot_of(slots, sequence), std::nullopt);
  EXPECT_EQ(server_slot_of(slots, std::nullopt), std::nullopt);
  info.facts = {{"attach.server_slots", "x 1  4294967296 2"}};
  EXPECT_EQ(server_slots(info), (ServerSlots{std::nullopt, 1, std::nullopt, std::nullopt, 2}));
}

TEST(SessionOverview, ContainsFieldsOfTheSessionList) {
  const SmallSession session({small_step(0), small_step(1)});
  const auto overview = session_overview(session.reader());
  ASSERT_TRUE(overview.has_value());
  EXPECT_EQ(overview->info.title, "a b");
  EXPECT_EQ(overview->info.state, SessionState::Done);
  EXPECT_EQ(overview->steps, 2u);
  EXPECT_EQ(overview->tokens, 2u);
  EXPECT_EQ(overview->losses.steps_without_times, 1u);
}

}  // namespace
}  // namespace tt
