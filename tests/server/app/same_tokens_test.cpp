// Same model, prompt, seed and settings: the same tokens as llama-server.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/server/support/llama_server.h"
#include "tests/server/support/program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

struct Case {
  const char* name;
  json settings;
  bool changes = true;  // the answer of some model is not the one with the default settings
};

// The default settings, each sampler once, and combinations; with the fields that both accept.
std::vector<Case> cases() {
  return {
      {"defaults", json::object(), false},
      {"temperature 0", {{"temperature", 0}}},
      {"another seed", {{"seed", 99}}},
      {"no sampler", {{"samplers", json::array()}}},
      {"another order", {{"samplers", {"temperature", "min-p", "topk"}}}},
      {"letters", {{"samplers", "kt"}}},
      {"high temperature", {{"temperature", 2.5}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0}}},
      {"dynamic temperature", {{"dynatemp_range", 0.7}, {"dynatemp_exponent", 1.5}}},
      {"top-k 3", {{"top_k", 3}}},
      {"top-k 500", {{"top_k", 500}, {"min_p", 0}, {"top_p", 1}, {"temperature", 1.5}}},
      {"top-p", {{"top_p", 0.3}}},
      {"min-p", {{"min_p", 0.6}}},
      {"top-n-sigma", {{"top_n_sigma", 0.7}, {"temperature", 1.5}}},
      {"typical-p", {{"typical_p", 0.4}}},
      {"xtc", {{"xtc_probability", 0.8}, {"xtc_threshold", 0.05}, {"temperature", 1.3}}},
      {"min-keep", {{"min_keep", 8}, {"top_p", 0.1}, {"temperature", 2}}},
      {"repeat penalty", {{"repeat_penalty", 1.7}}},
      {"short window", {{"repeat_penalty", 3}, {"repeat_last_n", 12}}},
      {"presence penalty", {{"presence_penalty", 1.5}}},
      {"frequency penalty", {{"frequency_penalty", 1.2}}},
      {"dry",
       {{"dry_multiplier", 3},
        {"dry_allowed_length", 1},
        {"dry_base", 2},
        {"dry_penalty_last_n", 100},
        {"dry_sequence_breakers", {"."}},
        {"temperature", 0}}},
      {"dry, default breakers", {{"dry_multiplier", 5}, {"dry_allowed_length", 0}}},
      {"mirostat 1", {{"mirostat", 1}, {"mirostat_tau", 3}, {"mirostat_eta", 0.2}}},
      {"mirostat 2", {{"mirostat", 2}}},
      {"adaptive-p",
       {{"samplers", {"min_p", "adaptive_p"}}, {"adaptive_target", 0.3}, {"adaptive_decay", 0.7}}},
      {"logit bias by id", {{"logit_bias", {{300, 4.5}, {290, false}, {261, -50}}}}},
      {"logit bias by text", {{"logit_bias", {{" the", 3}, {"300", false}}}}},
      {"ignore_eos", {{"ignore_eos", true}, {"temperature", 1.5}}},
      {"grammar", {{"grammar", "root ::= [a-z ]*"}}},
      {"grammar, temperature 0",
       {{"grammar", "root ::= [A-Z]+ (\" \" [A-Z]+)*"}, {"temperature", 0}}},
      {"grammar of a list",
       {{"grammar",
         "root ::= \"[\" item (\", \" item)* \"]\"\nitem ::= [0-9]+ | \"\\\"\" [a-z]* \"\\\"\""}}},
      {"grammar that ends", {{"grammar", "root ::= \"yes\" | \"no\""}, {"temperature", 1.5}}},
      {"grammar and penalties", {{"grammar", "root ::= [a-e]+"}, {"repeat_penalty", 1.4}}},
      {"grammar without end",
       {{"grammar", "root ::= [a-z ]*"}, {"ignore_eos", true}, {"temperature", 1.2}}},
      {"stop string", {{"stop", {"e"}}}},
  };
}

std::filesystem::path write(const modelgen::ModelSpec& spec, const TempFolder& folder) {
  const auto report = modelgen::write_model(spec, folder.path() / (spec.shape + ".gguf"));
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return report->files[0];
}

// The ids of the generated tokens. The texts are not compared: the text of the token that ends the
// answer is a part of llama-server's "content".
json theirs(const LlamaServer& server, json body, int tokens) {
  body["n_predict"] = tokens;
  body["cache_prompt"] = false;
  body["return_tokens"] = true;
  const json answer = server.completion(body);
  return answer.is_null() ? answer : answer["tokens"];
}

json ours(RunningServer& server, json body, int tokens) {
  body["max_tokens"] = tokens;
  body["reuse_prefix"] = false;
  const auto accepted =
      http_client(server.url).Post("/api/v1/generate", body.dump(), "application/json");
  if (!accepted || accepted->status != 202) {
    ADD_FAILURE() << body << (accepted ? accepted->body : "no answer");
    return {};
  }
  const std::string id = json::parse(accepted->body)["id"];
  const json end = server.wait_for_end(id);
  EXPECT_EQ(end["state"], "done") << end;
  json ids = json::array();
  for (const json& token : server.get("/api/v1/sessions/" + id + "/tokens?limit=1000")["tokens"])
    if (token["generated"] == true) ids.push_back(token["id"]);
  return ids;
}

TEST(SameTokensAsLlamaServer, WithEachSampler) {
  const TempFolder folder;
  struct Model {
    std::filesystem::path path;
    int tokens;
  };
  const Model models[] = {
      {kTestPaths.bundled_model, 40},
      {write({.shape = "small", .dims = {.layers = 2}}, folder), 24},
      {write({.shape = "qwen3-moe-like", .dims = {.layers = 2}}, folder), 16},
      {write({.shape = "tinyllama-1.1b", .dims = {.layers = 1, .embd = 512}}, folder), 16},
  };
  std::set<std::string> same;  // cases that never changed the answer
  for (const Case& c : cases())
    if (c.changes) same.insert(c.name);
  for (const Model& model : models) {
    SCOPED_TRACE(model.path.filename());
    ASSERT_FALSE(model.path.empty());
    const LlamaServer llama_server(model.path, {"-c", "512"});
    if (!llama_server.started()) return;
    RunningServer server(folder.path() / ("data-" + model.path.stem().string()),
                         {"-m", model.path, "-c", "512", "-t", "1", "-tb", "1"});
    ASSERT_TRUE(server.wait_until_loaded());
    json usual;
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.name);
      json body = {{"prompt", "The wind and the sea, the wind and the"}, {"seed", 7}};
      body.update(c.settings);
      const json answer = ours(server, body, model.tokens);
      EXPECT_EQ(answer, theirs(llama_server, body, model.tokens));
      if (!c.changes) usual = answer;
      if (answer != usual) same.erase(c.name);
    }
  }
  for (const std::string& name : same) ADD_FAILURE() << name << " never changed an answer";
}

}  // namespace
}  // namespace tt::test
