// tt values and tt compare --values: what tt record --capture has stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <format>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/command_output.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr const char* kRecord = "record -p 'Once upon a time' -n 3 -t 1 --temp 0 --ignore-eos -q";

class ValuesCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_tt(folder_, "model small --layers 4 -q -o a.gguf").code, 0);
    record("a", "'^(l_out|norm)-@L1-2'");
  }
  void record(const std::string& name, const std::string& capture,
              const std::string& options = "") {
    const Result result =
        run_tt(folder_, std::format("{} -m {}.gguf -o {}.ttrace --force --capture {} {}", kRecord,
                                    name.substr(0, 1), name, capture, options));
    ASSERT_EQ(result.code, 0) << result.err;
  }
  const test::TempFolder folder_;
};

// Figures of numpy, over the tokens of all steps.
TEST_F(ValuesCommand, ChannelsAreThoseOfNumpy) {
  std::string files;
  for (int step = 0; step < 3; ++step) {
    const std::string file = std::format("l{}.npy", step);
    ASSERT_EQ(
        run_tt(folder_, std::format("values a.ttrace --op l_out-1 --step {} --npy {}", step, file))
            .code,
        0);
    files += " " + file;
  }
  const json numpy = json::parse(
      test::command_output(std::format("cd '{}' && python3 {}{}", folder_.path().string(),
                                       source_path("tests/cli/channels.py"), files)));
  const json page = run_json(folder_, "analyze channels a.ttrace output=l_out-1 --json");
  ASSERT_EQ(page["total"], 1U) << page;
  const json& ours = page["rows"][0];
  EXPECT_EQ(ours["layer"], 1);
  for (const auto& [name, theirs] : numpy.items()) {
    SCOPED_TRACE(name);
    if (theirs.is_number_float()) {
      EXPECT_NEAR(ours[name].get<double>(), theirs.get<double>(),
                  1e-9 * std::abs(theirs.get<double>()) + 1e-12);
    } else if (name == "top") {
      ASSERT_EQ(ours[name].size(), theirs.size());
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        EXPECT_EQ(ours[name][i]["channel"], theirs[i]["channel"]);
        for (const char* figure : {"mean", "max", "share"})
          EXPECT_NEAR(ours[name][i][figure].get<double>(), theirs[i][figure].get<double>(), 1e-9);
      }
    } else {
      EXPECT_EQ(ours[name], theirs);
    }
  }
  const json layer = run_json(folder_, "analyze channels a.ttrace layer=2 --json");
  EXPECT_EQ(layer["total"], 1U);
  const Result none = run_tt(folder_, "analyze channels a.ttrace output=l_out-3");
  EXPECT_NE(none.code, 0);
  EXPECT_TRUE(none.err.contains("no captured output of this name")) << none.err;
}

TEST_F(ValuesCommand, ListsPrintsAndExportsTheSameValues) {
  const json all = run_json(folder_, "values a.ttrace");
  ASSERT_EQ(all["outputs"].size(), 6U) << "three steps, two layers";
  EXPECT_EQ(all["not_captured"], 12U) << "two norms per layer are first nodes of fused pairs";
  EXPECT_FALSE(all["outputs"][0].contains("values"));
  const json one = run_json(folder_, "values a.ttrace --op l_out-2 --step 0");
  ASSERT_EQ(one["outputs"].size(), 1U);
  const auto values = one["outputs"][0]["values"].get<std::vector<float>>();
  const auto shape = one["outputs"][0]["shape"].get<std::vector<std::size_t>>();
  ASSERT_EQ(values.size(), shape[0] * shape[1]);
  ASSERT_GT(shape[1], 1U) << "a row per token of the prompt";

  // The SQL table.
  const json rows =
      run_json(folder_,
               "sql a.ttrace \"SELECT elements, ne0, ne1, output_norm, op_layer_id FROM "
               "value WHERE tensor_name = 'l_out-2' AND step = 0\"")["rows"];
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(json::parse(rows[0][0].get<std::string>()).get<std::vector<float>>(), values);
  EXPECT_EQ(rows[0][1], shape[0]);
  EXPECT_EQ(rows[0][2], shape[1]);
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  EXPECT_NEAR(rows[0][3].get<double>(), std::sqrt(squares), 1e-9);
  EXPECT_EQ(rows[0][4], 2);

  // .npy, version 1.0: the magic, the version, the length of the header, the header, the values.
  ASSERT_EQ(run_tt(folder_, "values a.ttrace --op l_out-2 --step 0 --npy v.npy").code, 0);
  const std::string npy = contents(folder_ / "v.npy");
  ASSERT_GT(npy.size(), 10U);
  EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header =
      static_cast<unsigned char>(npy[8]) + 256U * static_cast<unsigned char>(npy[9]);
  EXPECT_EQ((10 + header) % 64, 0U);
  EXPECT_TRUE(
      npy.substr(10, header)
          .contains(std::format("'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}, )",
                                shape[1], shape[0])))
      << npy.substr(10, header);
  ASSERT_EQ(npy.size(), 10 + header + values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(npy.data() + 10 + header, values.data(), values.size() * sizeof(float)), 0);

  // As text: of each row the first and the last three.
  const Result printed = run_tt(folder_, "values a.ttrace --op l_out-2 --step 0");
  ASSERT_EQ(printed.code, 0);
  EXPECT_TRUE(printed.out.contains(std::format(
      "[{:12.4f}, {:12.4f}, {:12.4f}, ..., {:12.4f}, {:12.4f}, {:12.4f} ],", values[0], values[1],
      values[2], values[shape[0] - 3], values[shape[0] - 2], values[shape[0] - 1])))
      << printed.out;
  EXPECT_TRUE(
      run_tt(folder_, "values a.ttrace").out.contains("6 outputs captured, 12 not captured"));
}

TEST_F(ValuesCommand, AttentionHasOneNameWithAndWithoutFlashAttention) {
  record("a1", "attention@L1-2", "--flash-attn on");
  record("a2", "attention@L1-2", "--flash-attn off");
  const json outputs = run_json(folder_, "values a1.ttrace")["outputs"];
  ASSERT_EQ(outputs.size(), 6U) << "three steps, two layers";
  EXPECT_EQ(outputs[0]["tensor_name"], "attention-1");
  EXPECT_EQ(outputs[0]["operation_type"], "FLASH_ATTN_EXT");
  EXPECT_EQ(run_json(folder_, "values a2.ttrace")["outputs"][0]["operation_type"], "SOFT_MAX");
  const Result same = run_tt(folder_, "compare --values a1.ttrace a2.ttrace --tolerance 0.001");
  EXPECT_EQ(same.code, 0) << same.out;

  const json heads = run_json(folder_, "analyze attention a1.ttrace")["heads"];
  ASSERT_EQ(heads.size(), 16U) << "two layers, 8 heads";
  const json rows = run_json(folder_, "analyze attention-weights a1.ttrace layer=2 head=7 token=3");
  ASSERT_EQ(rows["total"], 1U);
  // The same from all values: the cache was empty, so its first cells have the first tokens.
  const json whole = run_json(folder_, "values a1.ttrace --op attention-2 --step 0")["outputs"][0];
  const auto shape = whole["shape"].get<std::vector<std::size_t>>();
  ASSERT_EQ(shape[2], 8U);
  const json& weights = rows["rows"][0]["weights"];
  ASSERT_GE(weights.size(), 4U);
  double sum = 0;
  for (std::size_t token = 0; token < weights.size(); ++token) {
    EXPECT_EQ(weights[token].get<float>(),
              whole["values"][(7 * shape[1] + 3) * shape[0] + token].get<float>());
    sum += weights[token].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  const Result none = run_tt(folder_, "analyze attention a.ttrace");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(none.err.contains("Record with --capture attention")) << none.err;
}

// From the captured queries and keys, in all layers: heads that share keys; sinks, and a window in
// every other layer.
TEST_F(ValuesCommand, AttentionOfAllLayersIsThatOfNumpy) {
  std::string prompt;
  for (int i = 0; i < 9; ++i) prompt += "once upon a time there was a little sea and the wind ";
  for (const auto& [shape, window] : {std::pair("small", 0), std::pair("gpt-oss-like", 128)}) {
    SCOPED_TRACE(shape);
    ASSERT_EQ(run_tt(folder_, std::format("model {} --layers 4 -q --force -o w.gguf", shape)).code,
              0);
    const Result recorded = run_tt(
        folder_, std::format("record -m w.gguf -p '{}' -n 3 -t 1 --temp 0 --ignore-eos -q --force "
                             "-o w.ttrace --flash-attn on --capture attention "
                             "--capture '^(node_|__fattn__)@I0-1' --capture "
                             "'^(node_|__fattn__)@I4'",
                             prompt));
    ASSERT_EQ(recorded.code, 0) << recorded.err;
    ASSERT_EQ(run_tt(folder_, "values w.ttrace --safetensors w.safetensors --force").code, 0);
    const json layers = json::parse(test::command_output(
        std::format("cd '{}' && python3 {} w.safetensors {}", folder_.path().string(),
                    source_path("tests/cli/attention_weights.py"), window)));
    ASSERT_EQ(layers.size(), 4U);
    for (const auto& [layer, of] : layers.items()) {
      SCOPED_TRACE("layer " + layer);
      std::printf("%s, layer %s: largest difference %g\n", shape, layer.c_str(),
                  of["difference"].get<double>());
      EXPECT_GT(of["rows"], 8 * 300) << "8 heads, longer than the window";
      EXPECT_LT(of["difference"].get<double>(), 1e-5);
      EXPECT_EQ(of["unseen"], 0.0);
      if (window > 0) {
        EXPECT_EQ(of["far"] > 0.0, layer == "1" || layer == "3");
      }
    }
  }
}

// tt analyze has the rows of the stored arrays.
TEST_F(ValuesCommand, LensSaysWhatTheModelWouldHaveSaid) {
  record("a1", "lens");
  const json outputs = run_json(folder_, "values a1.ttrace")["outputs"];
  ASSERT_EQ(outputs.size(), 15U) << "three steps, four layers and the output";
  EXPECT_EQ(outputs[0]["tensor_name"], "lens-0");
  EXPECT_EQ(outputs[4]["tensor_name"], "lens");
  const json tokens = run_json(
      folder_,
      "sql a1.ttrace 'SELECT token_id, vocabulary_id FROM token WHERE generated ORDER BY 1'");
  for (int step = 0; step < 3; ++step) {
    const json& token = tokens["rows"][static_cast<std::size_t>(step)];
    const json page = run_json(
        folder_, std::format("analyze lens a1.ttrace layer=2 token={}", token[0].get<int>()));
    ASSERT_EQ(page["total"], 1);
    const json& row = page["rows"][0];
    EXPECT_EQ(row["chosen"]["id"], token[1]);
    const json whole = run_json(
        folder_, std::format("values a1.ttrace --op lens-2 --step {}", step))["outputs"][0];
    const auto values = whole["values"].get<std::vector<float>>();
    const auto width = whole["shape"][0].get<std::size_t>();
    EXPECT_EQ(row["rank"].get<float>(), values[0]);
    EXPECT_EQ(row["entropy"].get<float>(), values[1]);
    ASSERT_EQ(values.size(), width * 12);
    ASSERT_EQ(row["likely"].size(), 10U);
    EXPECT_EQ(row["most_likely"], row["likely"][0]);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(row["likely"][i]["id"].get<float>(), values[(i + 2) * width]);
      EXPECT_NEAR(row["likely"][i]["probability"].get<double>(),
                  std::exp(double{values[(i + 2) * width + 1]}), 1e-12);
    }
  }
  const Result none = run_tt(folder_, "analyze lens a.ttrace");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(none.err.contains("Record with --capture lens")) << none.err;
  EXPECT_NE(run_tt(folder_, "analyze lens a1.ttrace layer=4").code, 0);
  const Result wrong =
      run_tt(folder_, std::string(kRecord) + " -m a.gguf -o w.ttrace --capture lens@X1");
  EXPECT_NE(wrong.code, 0);
  EXPECT_TRUE(wrong.err.contains("is not a range")) << wrong.err;
}

// What another type of the K cache did to the probability of each token that was chosen.
TEST_F(ValuesCommand, ComparisonHasTheProbabilitiesOfChosenTokens) {
  record("a1", "lens");
  record("a2", "lens", "-ctk q4_0 -fa on");
  // By token, of the model's output.
  const auto chosen = [&](const char* file) {
    std::map<std::uint32_t, json> tokens;
    const json page = run_json(folder_, std::format("analyze lens {}", file));
    for (const json& row : page["rows"])
      if (row["layer"].is_null() && !row["chosen"].is_null())
        tokens.emplace(row["token"], row["chosen"]);
    return tokens;
  };
  const auto left = chosen("a1.ttrace"), right = chosen("a2.ttrace");
  ASSERT_EQ(left.size(), 3U);
  const json ours = run_json(folder_, "compare a1.ttrace a2.ttrace");
  const std::uint32_t common = ours["tokens"]["common"];
  std::uint32_t tokens = 0;
  json first, largest, other;
  const auto distance = [](const json& at) {
    return std::abs(at["left"]["probability"].get<double>() -
                    at["right"]["probability"].get<double>());
  };
  for (const auto& [token, mine] : left) {
    if (token > common || !right.contains(token)) continue;
    const json& theirs = right.at(token);
    json at{{"token", token}, {"left", mine}, {"right", theirs}};
    for (const char* side : {"left", "right"}) at[side].erase("id");
    if (mine["id"] != theirs["id"]) {
      other = at;
      continue;
    }
    ++tokens;
    if (distance(at) == 0) continue;
    if (first.is_null()) first = at;
    if (largest.is_null() || distance(at) > distance(largest)) largest = at;
  }
  ASSERT_FALSE(first.is_null() && other.is_null()) << "a K cache of 4 bits changes something";
  EXPECT_EQ(ours["chosen"]["tokens"], tokens);
  EXPECT_EQ(ours["chosen"]["first"], first);
  EXPECT_EQ(ours["chosen"]["largest"], largest);
  EXPECT_EQ(ours["chosen"]["other"], other);
  // Nothing differs from itself, and without the lens there is nothing to compare.
  const json same = run_json(folder_, "compare a1.ttrace a1.ttrace")["chosen"];
  EXPECT_EQ(same["tokens"], 3U);
  EXPECT_EQ(same["first"], nullptr);
  EXPECT_EQ(run_json(folder_, "compare a1.ttrace a.ttrace")["chosen"], nullptr);
  // Its arrays have numbers of tokens, which have no difference.
  const Result values = run_tt(folder_, "compare --values a1.ttrace a2.ttrace");
  EXPECT_EQ(values.code, 1);
  EXPECT_TRUE(values.err.contains("have no captured output in common")) << values.err;
}

// Routers that choose by probabilities, by sigmoids with a bias, and by logits.
TEST_F(ValuesCommand, RouterMarginsAreThoseOfNumpy) {
  struct Shape {
    const char* name;
    const char* scores;
    std::size_t chosen;
    bool has_probabilities;
  };
  for (const Shape& shape : {Shape{"moe", "ffn_moe_probs-", 2, true},
                             Shape{"deepseek-like", "ffn_moe_probs_biased-", 4, true},
                             Shape{"gpt-oss-like", "ffn_moe_probs-", 4, false}}) {
    SCOPED_TRACE(shape.name);
    ASSERT_EQ(
        run_tt(folder_, std::format("model {} --layers 3 -q --force -o r.gguf", shape.name)).code,
        0);
    record("r", "router");
    ASSERT_EQ(run_tt(folder_, "values r.ttrace --safetensors r.safetensors --force").code, 0);
    const json numpy = json::parse(test::command_output(
        std::format("cd '{}' && python3 {} r.safetensors {}", folder_.path().string(),
                    source_path("tests/cli/router_margins.py"), shape.chosen)));
    const json table = run_json(folder_, "analyze expert-margins r.ttrace below=5");
    EXPECT_EQ(table["below"], 0.05);
    ASSERT_EQ(table["routers"].size(), numpy.size());
    std::size_t all = 0;
    double near = 0;
    for (const json& router : table["routers"]) {
      const std::string layer = std::to_string(router["layer"].get<int>());
      SCOPED_TRACE("layer " + layer);
      const json& theirs = numpy.at(layer);
      EXPECT_EQ(router["scores"], shape.scores + layer);
      EXPECT_EQ(router["tokens"], theirs["rows"].size());
      EXPECT_NEAR(router["margin"].get<double>(), theirs["margin"].get<double>(), 1e-12);
      EXPECT_NEAR(router["near"].get<double>(), theirs["near"].get<double>(), 1e-12);
      near += router["near"].get<double>();
      const json page = run_json(
          folder_, std::format("analyze expert-token-margins r.ttrace layer={} limit=1000", layer));
      ASSERT_EQ(page["rows"].size(), theirs["rows"].size());
      double entropy = 0;
      json chosen = json::array();
      for (std::size_t i = 0; i < page["rows"].size(); ++i) {
        const json &ours = page["rows"][i], &row = theirs["rows"][i];
        SCOPED_TRACE(ours.dump());
        EXPECT_NEAR(ours["margin"].get<double>(), row["margin"].get<double>(), 1e-12);
        ASSERT_EQ(ours["entropy"].is_null(), !shape.has_probabilities);
        if (shape.has_probabilities) {
          EXPECT_NEAR(ours["entropy"].get<double>(), row["entropy"].get<double>(), 1e-9);
          entropy += row["entropy"].get<double>();
        }
        std::size_t at = 0;
        for (const char* list : {"chosen", "next"}) {
          ASSERT_EQ(ours[list].size(), row[list].size());
          for (std::size_t n = 0; n < ours[list].size(); ++n, ++at) {
            const json& one = ours[list][n];
            EXPECT_EQ(one["expert"], row[list][n]);
            EXPECT_EQ(one["score"], row["scores"][at]);
            EXPECT_EQ(one["probability"],
                      shape.has_probabilities ? row["probabilities"][at] : json());
          }
        }
        for (const json& one : ours["chosen"]) chosen.push_back({ours["token"], one["expert"]});
        ++all;
      }
      if (shape.has_probabilities) {
        EXPECT_NEAR(router["entropy"].get<double>(),
                    entropy / static_cast<double>(page["rows"].size()), 1e-9);
      } else {
        EXPECT_TRUE(router["entropy"].is_null());
      }
      // The routing that was recorded without the scores.
      EXPECT_EQ(run_json(folder_, std::format("sql r.ttrace \"SELECT token_id, expert_id FROM "
                                              "expert WHERE layer_id = {} ORDER BY token_id, "
                                              "expert_rank\"",
                                              layer))["rows"],
                chosen);
    }
    EXPECT_GT(near, 0) << "else `below` is not tested";
    EXPECT_LT(near, static_cast<double>(table["routers"].size()));
    EXPECT_EQ(run_json(folder_, "analyze expert-token-margins r.ttrace")["total"], all);
    const json one = run_json(folder_, "analyze expert-token-margins r.ttrace layer=1 token=3");
    ASSERT_EQ(one["rows"].size(), 1U);
    EXPECT_EQ(one["rows"][0]["token"], 3);
  }
  for (const char* name : {"expert-margins", "expert-token-margins"}) {
    const Result none = run_tt(folder_, std::format("analyze {} a.ttrace", name));
    EXPECT_EQ(none.code, 1);
    EXPECT_TRUE(none.err.contains("Record with --capture router")) << none.err;
  }
  const Result wrong =
      run_tt(folder_, std::string(kRecord) + " -m r.gguf -o w.ttrace --capture router@L1@K8");
  EXPECT_NE(wrong.code, 0);
  EXPECT_TRUE(wrong.err.contains("write (router)")) << wrong.err;
}

TEST_F(ValuesCommand, SaysWhyThereIsNothingToShow) {
  const auto says = [&](const std::string& arguments) {
    const Result result = run_tt(folder_, arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    return result.err;
  };
  EXPECT_TRUE(says("values a.ttrace --op nosuch").contains("no output of nosuch was captured"));
  EXPECT_TRUE(says("values a.ttrace --step 9").contains("no output in step 9 was captured"));
  EXPECT_TRUE(
      says("values a.ttrace --op l_out-2 --npy v.npy").contains("has 3 outputs of l_out-2"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v.npy"));
  ASSERT_EQ(run_tt(folder_, std::string(kRecord) + " -m a.gguf -o n.ttrace").code, 0);
  EXPECT_TRUE(says("values n.ttrace").contains("Record with --capture"));
  EXPECT_TRUE(says("compare --values a.ttrace n.ttrace").contains("no captured output in common"));
  EXPECT_EQ(run_tt(folder_, "compare a.ttrace n.ttrace --tolerance 1").code, 2);
}

TEST_F(ValuesCommand, RunsOfTheSameModelAreIdentical) {
  record("a2", "'.*@S0-1'");
  record("a3", "'.*@S0-1'");
  const json same = run_json(folder_, "compare --values a2.ttrace a3.ttrace");
  EXPECT_GT(same["outputs"].size(), 100U);
  EXPECT_EQ(same["first_beyond"], nullptr);
  EXPECT_EQ(same["only_left"], 0);
  EXPECT_EQ(same["only_right"], 0);
  EXPECT_EQ(same["other_tokens_from_step"], nullptr);
  for (const json& output : same["outputs"]) EXPECT_EQ(output["max_error"], 0) << output;
  const json part = run_json(folder_, "compare --values a2.ttrace a.ttrace");
  EXPECT_EQ(part["outputs"].size(), 4U) << "l_out-1 and l_out-2 of two steps";
  EXPECT_EQ(part["only_left"], same["outputs"].size() - 4);
  EXPECT_EQ(part["only_right"], 2) << "of the third step";
}

TEST_F(ValuesCommand, SaysFromWhichStepTheRunsHaveOtherTokens) {
  json tokens[2];
  for (const int run : {0, 1}) {
    const std::string file = std::format("r{}.ttrace", run);
    ASSERT_EQ(run_tt(folder_, std::format("record -m a.gguf -p 'Once upon a time' -n 8 -t 1 --temp "
                                          "9 --seed {} --ignore-eos -q -o {} --capture 'l_out'",
                                          run + 1, file))
                  .code,
              0);
    tokens[run] = run_json(folder_, "sql " + file +
                                        " 'SELECT vocabulary_id, generated FROM token ORDER BY "
                                        "token_id'")["rows"];
  }
  std::size_t other = 0, prompt = 0;
  while (other < tokens[0].size() && tokens[0][other] == tokens[1][other]) ++other;
  while (prompt < tokens[0].size() && tokens[0][prompt][1] == 0) ++prompt;
  ASSERT_LT(other, tokens[0].size());
  ASSERT_GE(other, prompt);
  // The prompt is step 0, and each generated token has a step of its own, which begins with the
  // embedding of another token.
  const std::size_t step = other - prompt + 1;
  const json found = run_json(folder_, "compare --values r0.ttrace r1.ttrace");
  EXPECT_EQ(found["other_tokens_from_step"], step);
  EXPECT_EQ(found["first_beyond"]["step"], step);
  EXPECT_TRUE(run_tt(folder_, "compare --values r0.ttrace r1.ttrace")
                  .out.contains(std::format("From step {} on, the two runs evaluate different "
                                            "tokens",
                                            step)));
}

// One block of blk.2.attn_q.weight has another byte.
TEST_F(ValuesCommand, FirstDifferenceIsTheOpThatReadsADamagedBlock) {
  constexpr const char* kWeight = "blk.2.attn_q.weight";
  std::uint64_t offset = 0;
  for (const json& tensor : run_json(folder_, "gguf a.gguf")["tensors"])
    if (tensor["name"] == kWeight) offset = tensor["file_offset"].get<std::uint64_t>();
  ASSERT_GT(offset, 0U);
  std::string bytes = contents(folder_ / "a.gguf");
  bytes[offset + 5] ^= 0x55;
  std::ofstream(folder_ / "b.gguf", std::ios::binary) << bytes;
  record("a2", "'.*@S0'");
  record("b", "'.*@S0'");
  const json found = run_json(folder_, "compare --values a2.ttrace b.ttrace");
  const json& first = found["first_beyond"];
  ASSERT_TRUE(first.is_object()) << found.dump().substr(0, 500);
  EXPECT_EQ(first["layer_id"], 2);
  EXPECT_EQ(first["operation_type"], "MUL_MAT");
  const json reads = run_json(folder_, std::format("sql a2.ttrace \"SELECT DISTINCT op FROM access "
                                                   "WHERE step = 0 AND tensor_name = '{}'\"",
                                                   kWeight))["rows"];
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0][0], first["op"]);
  bool reached = false;
  for (const json& output : found["outputs"]) {
    reached |= output["op"] == first["op"];
    if (!reached) {
      EXPECT_EQ(output["max_error"], 0) << output;
    }
  }
  // How the errors grow: the largest one of each layer.
  for (const json& layer : found["layers"]) {
    double largest = 0;
    for (const json& output : found["outputs"])
      if (output["layer_id"] == layer["layer_id"])
        largest = std::max(largest, output["relative_error"].get<double>());
    EXPECT_EQ(layer["relative_error"].get<double>(), largest) << layer;
    EXPECT_EQ(largest > 0, layer["layer_id"] >= 2) << layer;
  }
  EXPECT_EQ(found["layers"].size(), 4U);
  const Result text = run_tt(folder_, "compare --values a2.ttrace b.ttrace --limit 2");
  EXPECT_TRUE(text.out.contains(std::format("First beyond the tolerance: step 0, op {}, MUL_MAT {}",
                                            first["op"].get<int>(),
                                            first["tensor_name"].get<std::string>())))
      << text.out;
  EXPECT_TRUE(run_tt(folder_, "compare --values a2.ttrace b.ttrace --tolerance 1000000")
                  .out.contains("No output differs by more than the tolerance"));
}

// Inputs and forms are in the list, in SQL and in exports, under names of their own.
TEST_F(ValuesCommand, ShowsInputsAndForms) {
  record("a3", "'^ffn_out-@L1@S0@I1@K4' --capture '^l_out-@L1@S0@R2@F16'");
  const json outputs = run_json(folder_, "values a3.ttrace")["outputs"];
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0]["tensor_name"], "ffn_out-1.src1.top");
  EXPECT_EQ(outputs[0]["shape"][0], 4);
  EXPECT_EQ(outputs[0]["shape"][1], 2);
  EXPECT_EQ(outputs[1]["tensor_name"], "l_out-1");
  EXPECT_EQ(outputs[1]["shape"][1], 2);
  const json top = run_json(folder_, "values a3.ttrace --op ffn_out-1.src1.top")["outputs"][0];
  const auto values = top["values"].get<std::vector<float>>();
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(std::abs(values[3 + i]), std::abs(values[4 + i]));
  // The figures are of the values, not of their columns.
  float largest = values[4];
  for (std::size_t row = 0; row < values.size(); row += 8)
    for (std::size_t i = 4; i < 8; ++i) largest = std::max(largest, values[row + i]);
  EXPECT_EQ(top["max"].get<float>(), largest);
  const json rows = run_json(
      folder_,
      "sql a3.ttrace \"SELECT tensor_name, ne0, ne1, elements, output_max FROM value ORDER BY op\"")
      ["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0], "ffn_out-1.src1.top");
  EXPECT_EQ(json::parse(rows[0][3].get<std::string>()).get<std::vector<float>>(), values);
  EXPECT_EQ(rows[0][4].get<float>(), largest);
  ASSERT_EQ(run_tt(folder_, "values a3.ttrace --safetensors a3.safetensors").code, 0);
  EXPECT_TRUE(contents(folder_ / "a3.safetensors").contains("ffn_out-1.src1.top"));
  EXPECT_EQ(run_tt(folder_, "parse a3.ttrace --validate").code, 0);
}

}  // namespace
}  // namespace tt
