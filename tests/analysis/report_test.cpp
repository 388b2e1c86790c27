// What a report says of figures: each advice when its reason is there, and not else.
#include "analysis/report.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "tests/analysis/small_session.h"

namespace tt::test {
namespace {

BreakdownRow row(const char* name, double bytes, double time_ns) {
  const TraceSums sums{.bytes_read = bytes,
                       .bytes_written = 0,
                       .reads = 1,
                       .writes = 0,
                       .executions = 1,
                       .time_ns = time_ns};
  return {.name = name, .key = 0, .all = sums, .prompt = {}, .generate = sums};
}

// 10 MB of weights read twice in 1 ms; nothing to advise but to have the memory.
ReportFigures plain() {
  ReportFigures f;
  f.info = SmallSession::small_info();
  f.info.facts = {{"context.threads", "8"},
                  {"host.cores", "8"},
                  {"host.ram_bytes", "1000000000"},
                  {"context.repack", "on"}};
  f.generated_tokens = 2;
  f.generate_time = Ns{1'000'000};
  f.token_ms = {0.4, 0.6};
  f.by_op_kind.rows = {row("MUL_MAT", 1e6, 1e5), row("GLU", 1e6, 9e5)};
  f.by_op_kind.total = row("all", 2e6, 1e6);
  f.by_op_kind.disk.bytes_read = 2e6;
  f.by_component = f.by_layer = f.by_tensor = f.by_op_kind;
  f.weights_read = Bytes{20'000'000};
  f.weights_distinct = Bytes{10'000'000};
  f.lru = {{.capacity = Bytes{0}},
           {.capacity = Bytes{5'000'000}},
           {.capacity = Bytes{10'000'000}, .reads = 2, .bytes = Bytes{10'000'000}}};
  f.pin = f.belady = f.lru;
  f.pin[1].bytes = f.belady[1].bytes = Bytes{5'000'000};
  f.devices = {"CPU"};
  return f;
}

std::set<std::string> first_words(const std::vector<Advice>& advice) {
  std::set<std::string> words;
  for (const Advice& one : advice)
    words.insert(one.advice.substr(0, one.advice.find(' ', one.advice.find(' ') + 1)));
  return words;
}

TEST(Report, AdvisesWhenThereIsAReason) {
  struct Case {
    const char* what;
    std::function<void(ReportFigures&)> change;
    std::set<std::string> advice;
  };
  const Case cases[] = {
      {"nothing else", [](ReportFigures&) {}, {"Have 10.0"}},
      {"less memory than weights",
       [](ReportFigures& f) { f.info.facts[2].second = "6000000"; },
       {"Pin 5.00"}},
      {"half of the cores",
       [](ReportFigures& f) { f.info.facts[0].second = "4"; },
       {"Have 10.0", "Try more"}},
      {"no repacking",
       [](ReportFigures& f) { f.info.facts[3].second = "off"; },
       {"Have 10.0", "Let weights"}},
      {"no repacking since it fails",
       [](ReportFigures& f) { f.info.facts[3].second = "off: AMX"; },
       {"Have 10.0"}},
      {"memory is the limit",
       [](ReportFigures& f) {
         f.by_op_kind.rows = {row("MUL_MAT", 2e6, 9e5), row("GLU", 1e5, 1e5)};
         f.by_tensor.rows = {row("w", 2e6, 9e5)};
       },
       {"Have 10.0", "Use a"}},
      {"attention without flash attention",
       [](ReportFigures& f) {
         f.by_op_kind.rows = {row("SOFT_MAX", 1e6, 1e5)};
         f.by_component.rows = {row("attention", 1e6, 5e5)};
       },
       {"Have 10.0", "Try flash"}},
      {"another device",
       [](ReportFigures& f) { f.devices = {"CPU", "RPC0"}; },
       {"Have 10.0", "Give the"}},
      {"not sound",
       [](ReportFigures& f) {
         f.validation.checks = {{.check = Check::Ops,
                                 .verdict = Verdict::Failed,
                                 .looked_at = 1,
                                 .wrong = 1,
                                 .summary = {},
                                 .evidence = {"step 3"}}};
       },
       {"Have 10.0", "Do not"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    ReportFigures figures = plain();
    one.change(figures);
    EXPECT_EQ(first_words(advice_of(figures)), one.advice);
  }
}

TEST(Report, ASessionWithoutStepsIsToldToo) {
  const SmallSession session({});
  const auto reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const auto figures = report_figures(session.path, *index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  const Report report = report_of(*figures);
  EXPECT_EQ(report.title, "a b");
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.sections.size(), 2U);
  EXPECT_EQ(report.sections[0].title, "Is the recording sound?");
}

TEST(Report, FiguresAreThoseOfTheSession) {
  Step later = small_step(1);
  later.n_tokens = 1;
  const SmallSession session({small_step(0), later});
  const auto reader = session.reader();
  const auto index = SessionIndex::build(reader);
  const auto figures = report_figures(session.path, *index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  EXPECT_EQ(figures->prompt_tokens, 2U);
  EXPECT_EQ(figures->generated_tokens, 1U);
  EXPECT_EQ(figures->generate_time, Ns{170});
  EXPECT_DOUBLE_EQ(figures->by_op_kind.total.all.time_ns, 300);
  // Two rows of the embedding, 32 + 256 + 256 + 512 of the others.
  EXPECT_EQ(figures->weights_distinct, Bytes{64 + 1056});
  EXPECT_EQ(figures->weights_read, Bytes{2 * (64 + 1056)});
  EXPECT_EQ(figures->devices, std::vector<std::string>{"CPU"});
}

}  // namespace
}  // namespace tt::test
