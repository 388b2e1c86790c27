// The captured values of two sessions over HTTP, against the values in their files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report/values_difference.h"
#include "api/json/analysis/comparison_json.h"
#include "tests/server/support/test_server.h"
#include "tests/support/models/backends.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// What the files contain, compared element by element.
TEST(ComparedValues, AreThoseOfTheFiles) {
  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const auto begun = [&](const json& more) {
    json body = {{"prompt", "Once upon a time"}, {"max_tokens", 2},
                 {"ignore_eos", true},           {"temperature", 0},
                 {"reuse_prefix", false},        {"level", "detailed"},
                 {"capture", {"^l_out"}}};
    body.update(more);
    return server.generate(body);
  };
  const auto recorded = [&](const json& more) {
    const std::string id = begun(more);
    server.wait_for_end(id);
    return id;
  };
  const std::string left = recorded(json::object()), same = recorded(json::object());
  // The same tokens in the first step, and another output of layer 0.
  const std::string right = begun({{"breakpoints", {"^l_out layer 0"}}});
  const std::string debug = "/api/v1/generate/" + right + "/debug";
  ASSERT_TRUE(wait_until([&] { return server.get(debug).body["stop"].is_object(); }));
  for (const char* command :
       {R"({"change": "scale 1.25"})", R"({"delete": 1})", R"({"until": "breakpoint"})"})
    ASSERT_EQ(server.post(debug, command).status, 200) << command;
  server.wait_for_end(right);
  const std::string other = recorded({{"capture", {"^ffn_norm"}}});
  const auto path = [&](const std::string& with, const std::string& rest) {
    return "/api/v1/sessions/" + left + "/comparison/" + with + "/values" + rest;
  };
  const json equal = server.get(path(same, "")).body;
  EXPECT_GT(equal["total"], 0);
  EXPECT_EQ(equal["different"], 0);
  EXPECT_EQ(equal["first_beyond"], nullptr);
  EXPECT_EQ(server.get(path(other, "")).body["total"], 0);

  const json found = server.get(path(right, "")).body;
  std::vector<StepValues> ours, theirs;
  for (auto& [id, steps] : {std::pair(left, &ours), std::pair(right, &theirs)}) {
    const auto read = server.sessions.open(id)->for_each_values(StepId{0}, UINT32_MAX,
                                                                [&](const StepValues& values) {
                                                                  steps->push_back(values);
                                                                  return true;
                                                                });
    ASSERT_TRUE(read.has_value());
  }
  std::size_t row = 0;
  std::map<int, double> largest;  // relative error, by layer, of the steps with the same tokens
  for (std::size_t step = 0; step < ours.size(); ++step) {
    for (std::size_t i = 0; i < ours[step].outputs.size(); ++i, ++row) {
      const auto& a = ours[step].outputs[i].values;
      const auto& b = theirs[step].outputs[i].values;
      const json& of = found["outputs"][row];
      ASSERT_EQ(of["op"], ours[step].outputs[i].op.v);
      if (a.size() != b.size()) {
        EXPECT_EQ(of["same_shape"], false);
        continue;
      }
      double squares = 0, norm = 0, most = 0;
      for (std::size_t k = 0; k < a.size(); ++k) {
        const double error = double{a[k]} - double{b[k]};
        squares += error * error;
        norm += double{a[k]} * double{a[k]};
        most = std::max(most, std::abs(error));
      }
      EXPECT_EQ(of["max_error"].get<double>(), most);
      EXPECT_NEAR(of["relative_error"].get<double>(), std::sqrt(squares / norm), 1e-12);
      if (found["other_tokens_from_step"].is_null() ||
          step < found["other_tokens_from_step"].get<std::size_t>())
        largest[of["layer_id"]] =
            std::max(largest[of["layer_id"]], of["relative_error"].get<double>());
    }
  }
  EXPECT_EQ(found["total"], row);
  for (const json& layer : found["layers"])
    EXPECT_EQ(layer["relative_error"].get<double>(), largest.at(layer["layer_id"]));
  EXPECT_EQ(found["layers"].size(), largest.size());
  EXPECT_GT(largest.size(), 1U);
  EXPECT_EQ(found["first_beyond"]["tensor_name"], "l_out-1") << "l_out-0 is as it was computed";

  // Only the rows of a page are kept; everything else is of all outputs.
  constexpr std::uint64_t kFrom = 1, kLimit = 2;
  ASSERT_GT(row, kFrom + kLimit);
  const ValuesComparison page =
      compare_values(*server.sessions.open(left), *server.sessions.open(right),
                     {.page = {.from = kFrom, .limit = kLimit}}, never_cancel)
          .value();
  EXPECT_EQ(page.rows.size(), kLimit);
  json rest = found;
  rest["outputs"] = {found["outputs"][kFrom], found["outputs"][kFrom + 1]};
  EXPECT_EQ(json::parse(to_json(page).dump()), rest);
  EXPECT_EQ(server.get(path(right, std::format("?from={}&limit={}", kFrom, kLimit))).body, rest);
  const ValuesComparison different =
      compare_values(*server.sessions.open(left), *server.sessions.open(right),
                     {.page = {.limit = 1}, .only_different = true}, never_cancel)
          .value();
  ASSERT_EQ(different.rows.size(), 1U);
  EXPECT_EQ(different.rows[0].tensor, "l_out-1");
  EXPECT_EQ(different.different, found["different"]);

  // The picture of an output has its elements if there is room, else those that differ most.
  const OutputValues& output = ours[0].outputs[0];
  const std::string name = found["outputs"][0]["tensor_name"];
  const std::string of = std::format("/picture?step=0&op={}&tensor={}", output.op.v, name);
  const json picture = server.get(path(right, of + "&width=512&height=512")).body;
  EXPECT_EQ(picture["width"], output.ne[0]);
  EXPECT_EQ(picture["height"], output.ne[1]);
  EXPECT_EQ(picture["left"].get<std::vector<float>>(), output.values);
  EXPECT_EQ(picture["right"].get<std::vector<float>>(), theirs[0].outputs[0].values);
  const json one = server.get(path(right, of + "&width=1&height=1")).body;
  EXPECT_EQ(one["left"][0], found["outputs"][0]["left"]);
  EXPECT_EQ(one["right"][0], found["outputs"][0]["right"]);

  for (const char* wrong : {"?tolerance=-1", "?tolerance=x", "?tolerance=nan", "?limit=x",
                            "/picture?tensor=x&op=1", "/picture?step=0&op=0&tensor=x&width=0"})
    EXPECT_EQ(server.get(path(right, wrong)).status, 400) << wrong;
  EXPECT_EQ(server.get(path(right, "/picture?step=0&op=0&tensor=x")).status, 404);
  EXPECT_EQ(server.get(path("none", "")).status, 404);
}

}  // namespace
}  // namespace tt::test
