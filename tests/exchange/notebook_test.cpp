// The notebook answers its five questions on a model with experts and on one without.
#include <gtest/gtest.h>

#include <cstdio>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/exchange/export_check.h"
#include "tests/places.h"
#include "tests/tracer/traced_model.h"

namespace tt::testing {
namespace {

using nlohmann::json;

json answers_of(const char* shape) {
  modelgen::ModelSpec spec;
  spec.shape = shape;
  TracedModel model(generated_model(spec));
  const auto run = model.run(greedy_tokens(9, 12));
  const TempFolder folder;
  std::ofstream(folder / "s.parquet", std::ios::binary)
      << exported(run.reader(), {.format = exchange::Format::Parquet});
  const std::string command =
      std::format("cd {} && HOME={} IPYTHONDIR={} python3 {}/run_notebook.py {} s.parquet 2>err",
                  folder.path().string(), folder.path().string(), folder.path().string(),
                  in_tree("tests/exchange"), in_tree("analysis/notebook/session.ipynb"));
  FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  std::ifstream err(folder / "err");
  EXPECT_EQ(pclose(pipe), 0) << std::string(std::istreambuf_iterator<char>(err), {});
  return json::parse(said, nullptr, false);
}

TEST(Notebook, OnADenseModel) {
  const json answers = answers_of("small");
  ASSERT_TRUE(answers.is_object());
  EXPECT_GE(answers["images"], 4);
  const json& found = answers["findings"];
  EXPECT_EQ(found["identical_pairs"], 1.0);  // every token reads the same weights
  EXPECT_EQ(found["experts"], 0);
  EXPECT_GT(found["hot_share"], found["cold_share"]);
  EXPECT_GT(found["pinned_half"], found["lru_half"]);  // a cycle defeats LRU
  EXPECT_GT(found["cache_share"], 0.0);
}

TEST(Notebook, OnAModelWithExperts) {
  const json answers = answers_of("moe");
  ASSERT_TRUE(answers.is_object());
  EXPECT_EQ(answers["images"], 5);
  const json& found = answers["findings"];
  EXPECT_GT(found["experts"], 0);
  EXPECT_GT(found["entropy"], 0.0);
  EXPECT_LE(found["entropy"], 1.0);
  EXPECT_LT(found["identical_pairs"], 1.0);
}

}  // namespace
}  // namespace tt::testing
