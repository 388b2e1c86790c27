// The causes of differences between two sessions, and their words.
#include "api/text/cause_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

SessionInfo described(std::vector<std::pair<std::string, std::string>> facts) {
  SessionInfo info = SmallSession::small_info();
  info.facts = std::move(facts);
  return info;
}

TEST(ComparisonCauses, NamesEachDifference) {
  SessionConditions clean, contended;
  clean.verdict = Verdict::Clean;
  clean.phases[Phase::Prompt].learned = 1;
  contended.verdict = Verdict::Contended;
  contended.text = "contended: ...";
  const SessionInfo a = described({{"model.description", "llama 1B Q4_K"},
                                   {"context.threads", "2"},
                                   {"context.repack", "on"},
                                   {"request.prompt", "Once upon a time there was a tiny house"},
                                   {"request.seed", "1"},
                                   {"result.prompt_tokens", "30"},
                                   {"result.reused_tokens", "0"},
                                   {"host.cpu", "x"},
                                   {"host.memory_available_bytes", "1"},
                                   {"library.llama", "1"}});
  SessionInfo b = described({{"model.description", "llama 1B Q8_0"},
                             {"context.threads", "4"},
                             {"context.repack", "on"},
                             {"request.prompt", "Once"},
                             {"request.seed", "1"},
                             {"result.prompt_tokens", "30"},
                             {"result.reused_tokens", "29"},
                             {"result.reused_from", "S1"},
                             {"host.cpu", "y"},
                             {"host.memory_available_bytes", "2"},
                             {"library.llama", "2"}});
  b.exact_timing = !a.exact_timing;
  EXPECT_EQ(causes_of({.info = a, .conditions = clean}, {.info = a, .conditions = clean}),
            std::vector<DifferenceCause>());
  std::vector<std::string> lines;
  for (const DifferenceCause& cause :
       causes_of({.info = a, .conditions = clean}, {.info = b, .conditions = contended}))
    lines.push_back(cause_line(cause));
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          "Other model: description llama 1B Q4_K and llama 1B Q8_0.",
          "Other settings: threads 2 and 4.",
          "Other recording: timing fast and exact. Exact timing and higher levels make every "
          "op slower.",
          "Other request: prompt text Once upon a time there was a tiny house and Once.",
          "Reused prefix: reused from session none and S1, reused tokens 0 and 29. Reused tokens "
          "are not evaluated.",
          "New graphs: steps with a new graph 1 and 0. The recording slows down the step in "
          "which a graph appears first.",
          "The machine held up a session: machine not disturbed and contended. Its times are not "
          "those of the model alone.",
          "Other machine: processor x and y.", "Other version of llama.cpp: llama 1 and 2."}));
}

// Its other graphs are not those of another prompt.
TEST(ComparisonCauses, SaysWhatFlashAttentionChanges) {
  const SessionConditions clean;
  const auto line = [&](const char* left, const char* right) {
    const SessionInfo a = described({{"context.flash_attention", left}}),
                      b = described({{"context.flash_attention", right}});
    const auto causes =
        causes_of({.info = a, .conditions = clean}, {.info = b, .conditions = clean});
    return causes.size() == 1 ? cause_line(causes[0]) : "";
  };
  EXPECT_TRUE(line("auto", "off")
                  .starts_with("Other settings: flash attention auto and off. With flash attention "
                               "one op computes the attention of a layer"));
  // Auto is on wherever it can be.
  EXPECT_EQ(line("auto", "on"), "Other settings: flash attention auto and on.");
}

// Where a run stopped changes nothing; what it was changed to compute does.
TEST(ComparisonCauses, NamesTheChangesAtBreakpoints) {
  const SessionConditions clean;
  const SessionInfo altered = described({{"request.breakpoints.0", "kqv_out-1"},
                                         {"altered.0", "step 3, op 17 kqv_out-1: zero head 2"}});
  const SessionInfo plain = described({});
  const auto causes =
      causes_of({.info = altered, .conditions = clean}, {.info = plain, .conditions = clean});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(cause_line(causes[0]),
            "Changed at a breakpoint in the first session: step 3, op 17 kqv_out-1: zero head 2.");
}

// The user's own text is never changed into words.
TEST(ComparisonCauses, KeepsTheTextOfPrompts) {
  const SessionConditions clean;
  const SessionInfo a = described({{"request.prompt", "Say: prompt my_var and Copy, silent: a_b"},
                                   {"request.messages.0.user", "x_y"},
                                   {"request.stop.0", "size"}});
  const SessionInfo b = described({{"request.max_tokens", "3"}});
  const auto causes = causes_of({.info = a, .conditions = clean}, {.info = b, .conditions = clean});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(cause_line(causes[0]),
            "Other request: max tokens none and 3, prompt text (user message 1) x_y and none, "
            "prompt text Say: prompt my_var and Copy, silent: a_b and none, stop text 1 size and "
            "none.");
}

}  // namespace
}  // namespace tt::test
