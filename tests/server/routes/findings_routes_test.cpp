// The findings of a dense model, a mixture of experts and a recurrent model: the sentences of the
// report, with figures equal to those of the other routes, and evidence that can be shown.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/server/models/model_files.h"
#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

class Findings : public ::testing::TestWithParam<const char*> {
 protected:
  json ask(const std::string& question) {
    const TestResponse answer = server_.get("/api/v1/sessions/" + id_ + "/" + question);
    EXPECT_EQ(answer.status, 200) << question << answer.body;
    return answer.body;
  }
  void record(std::size_t prompt) {
    ASSERT_TRUE(server_.wait_until_loaded());
    std::vector<int> tokens(prompt);
    std::iota(tokens.begin(), tokens.end(), 1);
    for (int& token : tokens) token = token % 200 + 1;
    id_ = server_.generate(
        {{"tokens", tokens}, {"max_tokens", 9}, {"temperature", 0}, {"ignore_eos", true}});
    ASSERT_EQ(server_.wait_for_end(id_)["state"], "done");
    findings_ = ask("findings");
  }
  const json& finding(const std::string& kind) const {
    for (const json& one : findings_["findings"])
      if (one["kind"] == kind) return one;
    ADD_FAILURE() << "no " << kind;
    static const json kNone;
    return kNone;
  }
  static json figure(const json& of, const std::string& name) {
    for (const json& one : of["figures"])
      if (one["name"] == name) return one["value"];
    return nullptr;
  }

  bool is(const char* model) const { return std::string(GetParam()) == model; }

  TestServer server_{{.model = (ensure_backends_loaded(), model_files(GetParam()).front()),
                      .context = {.context = 4096, .batch = 4096, .ubatch = 512, .threads = 2}}};
  std::string id_;
  json findings_;
};

TEST_P(Findings, AreThoseOfTheReportAndOfTheOtherRoutes) {
  record(9);
  const json report = ask("report?format=json");
  std::vector<std::string> texts;
  for (const json& one : findings_["findings"]) texts.push_back(one["text"]);
  EXPECT_EQ(json(texts), report["findings"]);
  ASSERT_EQ(findings_["advice"].size(), report["advice"].size());
  for (std::size_t i = 0; i < report["advice"].size(); ++i) {
    EXPECT_EQ(findings_["advice"][i]["text"], report["advice"][i]["advice"]);
    EXPECT_EQ(findings_["advice"][i]["because"], report["advice"][i]["because"]);
  }

  // Bytes: the parts are all bytes, the largest first.
  const json& bytes = finding("token_bytes");
  const json all = ask("breakdown?by=all")["sums"]["generate"];
  const double tokens = bytes["basis"]["steps"];
  EXPECT_NEAR(figure(bytes, "bytes_read").get<double>() * tokens, all["bytes_read"].get<double>(),
              1);
  std::vector<double> parts;
  bool is_part = false;
  for (const json& one : bytes["figures"]) {
    if (is_part && one["unit"] == "bytes") parts.push_back(one["value"]);
    is_part |= one["name"] == "rate";
  }
  ASSERT_GE(parts.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(parts, std::greater{}));
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0),
              figure(bytes, "bytes_read").get<double>(), 1);

  // Order: of what is read from the mapped file, by bytes.
  const json& order = finding("read_in_order");
  const json reads = ask("sequentiality?limit=0")["sums"];
  const json mapped = ask("breakdown?by=all&source=disk&kind=weight")["sums"]["all"];
  const json weights = ask("breakdown?by=all&kind=weight")["sums"]["all"];
  EXPECT_EQ(figure(order, "mapped_bytes"), reads["bytes"].get<double>());
  EXPECT_NEAR(reads["bytes"].get<double>(), mapped["bytes_read"].get<double>(), 1);
  EXPECT_NEAR(figure(order, "mapped_of_weight_bytes").get<double>(),
              mapped["bytes_read"].get<double>() / weights["bytes_read"].get<double>(), 1e-9);
  if (reads["bytes"] > 0) {
    EXPECT_NEAR(figure(order, "in_order").get<double>(),
                reads["sequential_bytes"].get<double>() / reads["bytes"].get<double>(), 1e-9);
  }

  // Caches and states have their names.
  const std::string said = findings_.dump();
  EXPECT_EQ(said.contains("of recurrent state"), is("mamba"));
  EXPECT_EQ(said.contains("of KV cache"), !is("mamba"));
  const json& memory = finding("enough_memory");
  EXPECT_EQ(figure(memory, "exact"), "yes");
  EXPECT_EQ(figure(memory, is("mamba") ? "kv_cache" : "recurrent_state"), 0);

  EXPECT_EQ(figure(finding("same_weights"), "experts_again").is_number(), is("moe"));
  ASSERT_EQ(findings_["headline"].size(), 3U);
  EXPECT_EQ(findings_["headline"][1]["name"], "read per token");
}

TEST_P(Findings, HaveEvidenceThatCanBeShown) {
  record(9);
  for (const json& one : findings_["findings"]) {
    SCOPED_TRACE(one["kind"].get<std::string>());
    const json& evidence = one["evidence"];
    ask(evidence["rest"]);
    const TestResponse rows =
        server_.post("/api/v1/sessions/" + id_ + "/query", json{{"sql", evidence["sql"]}}.dump());
    EXPECT_EQ(rows.status, 200) << rows.body;
    EXPECT_TRUE(rows.body.contains("rows"));
  }
}

// After a long prompt most of what a token reads is the KV cache.
TEST_P(Findings, NameTheLargestPartFirst) {
  if (is("mamba")) {
    record(400);
    EXPECT_TRUE(finding("token_bytes")["text"].get<std::string>().contains("recurrent state"));
    return;
  }
  record(3000);
  const json& bytes = finding("token_bytes");
  const std::string text = bytes["text"];
  const double kv = figure(bytes, "kv_cache"), all = figure(bytes, "bytes_read");
  EXPECT_GT(kv, all / 2) << text;
  EXPECT_LT(text.find("KV cache"), text.find("weights")) << text;
}

INSTANTIATE_TEST_SUITE_P(Models, Findings, ::testing::Values("small", "moe", "mamba"));

}  // namespace
}  // namespace tt::test
