// tt report and tt compare, as text and as JSON.
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr const char* kRecord =
    "record -p 'Once upon <b>a time' -n 12 -t 1 --ignore-eos -o a.ttrace";

TEST(ReportCommand, HtmlIsSelfContained) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, kRecord).code, 0);
  const Result result = run_tt(folder, "report a.ttrace -o report.html");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string page = contents(folder / "report.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>")) << page.substr(0, 100);
  EXPECT_TRUE(page.contains("Once upon &lt;b&gt;a time"));
  EXPECT_FALSE(page.contains("<b>a time"));
  for (const char* outside : {"src=", "href=", "url(", "@import"})
    EXPECT_FALSE(page.contains(outside)) << outside;
  EXPECT_TRUE(page.contains("default-src 'none'"));
  for (const char* part :
       {"Findings", "Advice", "Time per token", "By kind of op", "By layer", "By tensor",
        "Weight cache simulation", "Is the recording valid?", "Metadata", "<svg", "MUL_MAT"})
    EXPECT_TRUE(page.contains(part)) << part;
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("{%"), std::string::npos);
}

TEST(ReportCommand, MarkdownAndJsonHaveTheSameContent) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, kRecord).code, 0);
  const Result markdown = run_tt(folder, "report a.ttrace --format md");
  ASSERT_EQ(markdown.code, 0) << markdown.err;
  const json report = json::parse(run_tt(folder, "report a.ttrace --format json").out);
  EXPECT_EQ(json::parse(run_tt(folder, "report a.ttrace --json").out), report);
  EXPECT_TRUE(markdown.out.starts_with("# ")) << markdown.out.substr(0, 100);
  for (const auto& [file, format] :
       {std::pair{"r.md", ""}, {"r.json", " --format md"}, {"r", " --format md"}}) {
    ASSERT_EQ(run_tt(folder, std::format("report a.ttrace -o {}{}", file, format)).code, 0);
    EXPECT_EQ(contents(folder / file) + "\n", markdown.out) << file;
  }
  ASSERT_EQ(run_tt(folder, "report a.ttrace -o s.json").code, 0);
  EXPECT_EQ(json::parse(contents(folder / "s.json")), report);
  for (const json& sentence : report["findings"])
    EXPECT_TRUE(markdown.out.contains("- " + sentence.get<std::string>())) << sentence;
  for (const json& section : report["sections"])
    EXPECT_TRUE(markdown.out.contains("## " + section["title"].get<std::string>()))
        << section["title"];
  EXPECT_FALSE(markdown.out.contains("<svg"));
  EXPECT_TRUE(markdown.out.contains("| --- | ---: |")) << markdown.out;
}

json section_of(const json& report, std::string_view title) {
  for (const json& section : report["sections"])
    if (section["title"] == title) return section;
  throw std::out_of_range(std::string(title));
}

TEST(ReportCommand, SaysWhatChangedSinceAnotherSession) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, kRecord).code, 0);
  ASSERT_EQ(run_tt(folder, "record -p 'A hill' -n 20 -t 1 --ignore-eos -o b.ttrace").code, 0);
  EXPECT_EQ(json::parse(run_tt(folder, "report a.ttrace --json").out)["compared"], nullptr);
  const Result result = run_tt(folder, "report a.ttrace --compare b.ttrace --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json report = json::parse(result.out);
  const json both = json::parse(run_tt(folder, "compare a.ttrace b.ttrace --json").out);
  EXPECT_EQ(report["compared"]["change"], both["change"]["text"]);
  EXPECT_EQ(report["compared"]["causes"].size(), both["causes"].size());
  // Per token, of each phase: the two runs have different lengths.
  const json section = section_of(report, "Compared by component");
  const json &rows = section["rows"], &columns = section["columns"];
  const auto column = [&](const char* name) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i]["name"] == name) return i;
    throw std::out_of_range(name);
  };
  const std::size_t own = column("generation: read"), other = column("generation: read, other");
  for (const json& row : rows) {
    if (row[0] != "ffn") continue;
    EXPECT_EQ(row[own], row[other]) << row;  // the same weights
  }
  const std::string text = run_tt(folder, "report a.ttrace --compare b.ttrace --format md").out;
  EXPECT_TRUE(text.contains(report["compared"]["change"].get<std::string>())) << text;
  EXPECT_EQ(run_tt(folder, "report a.ttrace --compare none.ttrace").code, 1);
}

TEST(ReportCommand, HasExpertsOfAMixture) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -q -o moe.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "record -m moe.gguf -p 'a b c' -n 6 -t 1 --ignore-eos -o m.ttrace").code,
            0);
  const json report = json::parse(run_tt(folder, "report m.ttrace --json").out);
  const json moe = json::parse(run_tt(folder, "moe m.ttrace --phase generate --json").out);
  const json rows = section_of(report, "Experts, generation")["rows"];
  ASSERT_EQ(rows.size(), moe["routers"].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const json& router = moe["routers"][i];
    EXPECT_EQ(rows[i][0], std::to_string(router["layer"].get<int>()));
    EXPECT_EQ(rows[i][2], std::to_string(router["tokens"].get<int>()));
    EXPECT_TRUE(rows[i][3].get<std::string>().starts_with(
        std::format("{:.2f} of ", router["entropy_bits"].get<double>())))
        << rows[i];
  }
}

TEST(CompareCommand, ComparesTwoQuantizations) {
  const test::TempFolder folder;
  for (const std::string quant : {"q4_k", "q8_0"}) {
    ASSERT_EQ(
        run_tt(folder, std::format("model small --layers 2 -q --quant {0} -o {0}.gguf", quant))
            .code,
        0);
    ASSERT_EQ(run_tt(folder, std::format("record -m {0}.gguf -p 'a b' -n 4 -t 1 --ignore-eos "
                                         "-o {0}.ttrace",
                                         quant))
                  .code,
              0);
  }
  const Result result = run_tt(folder, "compare q4_k.ttrace q8_0.ttrace --by tensor --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json both = json::parse(result.out);
  for (const json& row : both["templates"]) EXPECT_EQ(row["match"], "same_ops") << row;
  // The time is judged by 3 steps, the bytes are exact.
  const auto sentence = both["change"]["text"].get<std::string>();
  EXPECT_TRUE(sentence.contains("Too few undisturbed steps to compare the times of a "))
      << sentence;
  EXPECT_TRUE(sentence.contains(" token reads ")) << sentence;
  EXPECT_GT(both["change"]["token"]["right"]["bytes_read"].get<double>(),
            1.2 * both["change"]["token"]["left"]["bytes_read"].get<double>());
  EXPECT_TRUE(run_tt(folder, "compare q4_k.ttrace q8_0.ttrace").out.contains(sentence));
  EXPECT_EQ(both["total"]["ratio"]["executions"], 1.0);
  EXPECT_GT(both["total"]["ratio"]["bytes_read"], 1.2);
  for (const json& row : both["rows"]) {
    if (row["name"] != "blk.0.ffn_down.weight") continue;
    // 4.5 and 8.5 bits per weight.
    EXPECT_NEAR(row["ratio"]["bytes_read"].get<double>(), 8.5 / 4.5, 0.01);
  }
}

TEST(CompareCommand, ComparesTwoPrompts) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, kRecord).code, 0);
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a hill' -n 20 -t 1 --ignore-eos -o b.ttrace").code,
            0);
  const Result text_result = run_tt(folder, "compare a.ttrace b.ttrace --by layer");
  ASSERT_EQ(text_result.code, 0) << text_result.err;
  EXPECT_TRUE(text_result.out.contains("right/left")) << text_result.out;
  const json both = json::parse(run_tt(folder, "compare a.ttrace b.ttrace --json").out);
  EXPECT_GT(both["tokens"]["common"], 0);
  EXPECT_LT(both["tokens"]["common"], both["tokens"]["left"]);
  EXPECT_EQ(both["phase"], "generate");
  EXPECT_EQ(both["total"]["ratio"]["executions"], 1.0) << "of one step, in runs of other lengths";
  EXPECT_EQ(both["total"]["difference"]["executions"].get<double>(),
            both["total"]["right"]["executions"].get<double>() -
                both["total"]["left"]["executions"].get<double>());
  for (const char* axis : {"component", "layer", "op_kind", "tensor"}) {
    const std::string asked = std::format("compare a.ttrace b.ttrace --phase prompt --by {}", axis);
    const json of_prompt = json::parse(run_tt(folder, asked + " --json").out);
    EXPECT_EQ(of_prompt["phase"], "prompt");
    EXPECT_FALSE(of_prompt["rows"].empty()) << axis;
    EXPECT_TRUE(run_tt(folder, asked).out.contains("In one prompt step:"));
  }

  EXPECT_TRUE(text_result.out.contains("Causes of differences:")) << text_result.out;
  bool request = false;
  for (const json& cause : both["causes"]) {
    EXPECT_TRUE(text_result.out.contains("- " + cause["title"].get<std::string>())) << cause;
    for (const json& fact : cause["facts"]) {
      request |= cause["kind"] == "request" && fact["label"] == "max tokens" &&
                 fact["left"] == "12" && fact["right"] == "20";
    }
  }
  EXPECT_TRUE(request) << both["causes"];

  const json same = json::parse(run_tt(folder, "compare a.ttrace a.ttrace --json").out);
  EXPECT_EQ(same["tokens"]["common"], same["tokens"]["left"]);
  for (const json& row : same["templates"]) EXPECT_EQ(row["match"], "identical");
  EXPECT_EQ(run_tt(folder, "compare a.ttrace none.ttrace").code, 1);
}

}  // namespace
}  // namespace tt
