// Tokens per second: one figure in every verb, and advice on sampling where it limits the speed.
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

// The time between the steps counts. The begins of the generating steps bound it: the last token
// is not evaluated.
TEST(Speed, IsOneFigureInShowAndReport) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder,
                   "record -p 'Once upon a time' -n 12 -t 1 --ignore-eos -o a.ttrace "
                   "--grammar 'root ::= [a-z ]*'")
                .code,
            0);
  const json show = run_json(folder, "show a.ttrace");
  const json& speed = show["speed"];
  const double rate = speed["tokens_per_second"];
  EXPECT_EQ(speed["tokens"],
            std::stoi(show["facts"]["result.generated_tokens"].get<std::string>()) - 1);
  const json steps = run_json(folder,
                              "sql a.ttrace \"SELECT min(begin_ns), max(end_ns), "
                              "max(begin_ns) FROM step WHERE phase = 'generate'\"")["rows"][0];
  EXPECT_GT(speed["ns"], steps[2].get<double>() - steps[0].get<double>());
  EXPECT_LE(speed["first_token_ns"], steps[0]);
  EXPECT_GE(speed["first_token_ns"].get<double>() + speed["ns"].get<double>(),
            steps[1].get<double>());

  const std::string text = std::format("{:.1f} tokens/s", rate);
  const Result table = run_tt(folder, "show a.ttrace");
  EXPECT_TRUE(table.out.contains("speed      " + text)) << table.out;
  EXPECT_TRUE(table.out.contains("evaluated/s")) << table.out;
  const json report = json::parse(run_tt(folder, "report a.ttrace --json").out);
  EXPECT_TRUE(report["findings"].dump().contains(
      std::format("{:.{}f} tokens/s.", rate, rate < 100 ? 1 : 0)))
      << report["findings"];
}

TEST(Speed, AdviceIsOnSamplingIfItTakesAFifthOfTheTime) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder,
                   "model small --layers 1 --embd 64 --ff 64 --heads 2 --kv-heads 2 "
                   "--vocab 20000 --quant f16 -o m.gguf")
                .code,
            0);
  // Without top-k, all tokens of the vocabulary are sorted. Other programs may make the evaluation
  // wait for a processor for longer than the sampler takes: that recording says so, and another one
  // is made.
  double share = 0;
  for (int i = 0; i < 20 && share <= 0.2; ++i) {
    ASSERT_EQ(run_tt(folder,
                     "record -m m.gguf -p 'Once upon a time' -n 16 -t 1 --ignore-eos "
                     "--top-k 0 --top-p 0.99 -o a.ttrace --force")
                  .code,
              0);
    share = run_json(folder, "show a.ttrace")["speed"]["sample_share"];
  }
  EXPECT_GT(share, 0.2);
  const std::string report = run_tt(folder, "report a.ttrace --json").out;
  EXPECT_TRUE(report.contains("sampling limits the speed")) << report;
  EXPECT_FALSE(report.contains("memory-bound")) << report;
}

TEST(Speed, ShowSaysWhyTheSessionEnded) {
  const test::TempFolder folder;
  const struct {
    const char* options;
    const char* ended;
  } cases[] = {{"-n 3 --ignore-eos", "the maximum number of tokens (3) was reached"},
               {"-n 300 --ignore-eos -c 256", "the context was full"}};
  for (const auto& [options, ended] : cases) {
    SCOPED_TRACE(options);
    const Result record = run_tt(
        folder, std::format("record -p 'Once upon a time' {} -t 1 -o a.ttrace --force", options));
    ASSERT_EQ(record.code, 0) << record.err;
    const Result show = run_tt(folder, "show a.ttrace");
    EXPECT_TRUE(show.out.contains(std::string("ended      ") + ended)) << show.out;
    EXPECT_TRUE(run_json(folder, "show a.ttrace")["ended"].get<std::string>().starts_with(ended));
  }
}

}  // namespace
}  // namespace tt
