// The captured values of one session over HTTP, against the values in its file.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <format>
#include <map>
#include <string>
#include <vector>

#include "tests/server/support/test_server.h"
#include "tests/support/models/backends.h"

namespace tt::test {
namespace {

class CapturedRoutes : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.wait_until_loaded()); }
  std::string recorded(const json& more) {
    json body = {{"prompt", "the cat sat and the cat sat"},
                 {"max_tokens", 2},
                 {"ignore_eos", true},
                 {"temperature", 0},
                 {"reuse_prefix", false},
                 {"level", "detailed"}};
    body.update(more);
    const std::string id = server_.generate(body);
    EXPECT_EQ(server_.wait_for_end(id)["state"], "done");
    return id;
  }
  std::vector<StepValues> values_of(const std::string& id) {
    std::vector<StepValues> steps;
    const auto read =
        server_.sessions.open(id)->for_each_values(StepId{0}, UINT32_MAX, [&](const auto& values) {
          steps.push_back(values);
          return true;
        });
    EXPECT_TRUE(read.has_value());
    return steps;
  }
  TestResponse get(const std::string& id, const std::string& route) {
    return server_.get("/api/v1/sessions/" + id + "/" + route);
  }

  std::string raw(const std::string& path) {
    const auto answer = server_.client().Get(path);
    EXPECT_TRUE(answer && answer->status == 200) << path;
    return answer ? answer->body : std::string();
  }

  TestServer server_{(ensure_backends_loaded(), TestServerOptions{})};
};

std::string place_of(StepId step, const OutputValues& output) {
  return std::format("steps/{}/ops/{}/values", step.v, output.op.v);
}

TEST_F(CapturedRoutes, ListWithTheFiguresOfTheFile) {
  const std::string id = recorded({{"capture", {"^l_out"}}});
  const std::vector<StepValues> steps = values_of(id);
  const json list = get(id, "values").body;
  std::size_t row = 0;
  std::uint64_t bytes = 0;
  for (const StepValues& step : steps) {
    for (const OutputValues& output : step.outputs) {
      const json& of = list["rows"][row++];
      SCOPED_TRACE(of.dump());
      EXPECT_EQ(of["step"], step.step.v);
      EXPECT_EQ(of["op"], output.op.v);
      EXPECT_EQ(of["part"], "output");
      EXPECT_EQ(of["type"], "f32");
      EXPECT_EQ(of["shape"][0], output.ne[0]);
      EXPECT_EQ(of["bytes"], output.values.size() * sizeof(float));
      bytes += output.values.size() * sizeof(float);
      const auto [min, max] = std::ranges::minmax(output.values);
      EXPECT_EQ(of["min"].get<double>(), double{min});
      EXPECT_EQ(of["max"].get<double>(), double{max});
      double sum = 0, squares = 0;
      for (const float value : output.values) {
        sum += double{value};
        squares += double{value} * double{value};
      }
      EXPECT_NEAR(of["mean"].get<double>(), sum / static_cast<double>(output.values.size()), 1e-9);
      EXPECT_NEAR(of["norm"].get<double>(), std::sqrt(squares), 1e-9 * std::sqrt(squares));
    }
  }
  EXPECT_GT(row, 3U);
  EXPECT_EQ(list["total"], row);
  EXPECT_EQ(list["bytes"], bytes);
  EXPECT_EQ(list["not_captured"], 0U);
  EXPECT_FALSE(list.contains("missing"));
  // Parts of the list.
  const json page = get(id, "values?from=1&limit=2").body;
  EXPECT_EQ(page["total"], row);
  EXPECT_EQ(page["rows"], json::array({list["rows"][1], list["rows"][2]}));
  EXPECT_EQ(get(id, "values?step=0&layer=1&output=l_out-1").body["total"], 1U);
  for (const char* unknown : {"values?step=99", "values?layer=99", "values?output=none"})
    EXPECT_EQ(get(id, unknown).status, 404) << unknown;
  for (const char* wrong : {"values?step=-1", "values?step=x", "values?limit=99999999",
                            "values?layer=x", "values?no=1"})
    EXPECT_EQ(get(id, wrong).status, 400) << wrong;

  // What did not fit is counted, also if nothing did.
  const std::string small = recorded({{"capture", {"^l_out"}}, {"capture_bytes", 1}});
  std::uint64_t left = 0;
  for (const StepValues& step : values_of(small)) left += step.not_captured;
  EXPECT_EQ(left, row);
  const json nothing = get(small, "values").body;
  EXPECT_EQ(nothing["not_captured"], left);
  EXPECT_EQ(nothing["total"], 0U);
  EXPECT_FALSE(nothing.contains("missing"));
  const std::string without = recorded(json::object());
  EXPECT_TRUE(get(without, "values").body["missing"].get<std::string>().contains("--capture"));
  EXPECT_EQ(get(without, "values/file").status, 404);
}

TEST_F(CapturedRoutes, ValuesHistogramPictureAndFilesOfAnOp) {
  const std::string id = recorded({{"capture", {"^l_out", "^ffn_out@I1@K3", "lens"}}});
  const StepValues step = values_of(id).front();
  const auto of_kind = [&](auto is) { return *std::ranges::find_if(step.outputs, is); };
  const OutputValues output =
      of_kind([](const OutputValues& of) { return of.of == ValuesOf::Output; });
  const std::string place = place_of(step.step, output);
  const json all = get(id, place + "?limit=10000").body;
  ASSERT_LE(output.values.size(), 10000U);
  EXPECT_EQ(all["values"].get<std::vector<float>>(), output.values);
  EXPECT_EQ(all["total"], output.values.size());
  const json some = get(id, place + "?from=5&limit=2").body["values"];
  EXPECT_EQ(some.get<std::vector<float>>(),
            std::vector<float>(output.values.begin() + 5, output.values.begin() + 7));
  // Each value is in the last bin that begins at or before it.
  std::vector<std::uint64_t> counts(all["histogram"].size());
  for (const float value : output.values) {
    std::size_t at = 0;
    while (at + 1 < counts.size() &&
           all["histogram"][at + 1]["from"].get<double>() <= double{value})
      ++at;
    ++counts[at];
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(all["histogram"][i]["count"], counts[i]) << i;
  EXPECT_EQ(counts.size(), 64U);

  // The picture has the values if there is room, else their mean or the largest absolute one.
  const auto columns = output.ne[0];
  const auto rows = output.values.size() / columns;
  const json picture = get(id, place + "/picture?width=4096&height=2000").body;
  ASSERT_EQ(picture["cells"].size(), rows);
  std::vector<float> cells;
  for (const json& row : picture["cells"])
    for (const json& cell : row) cells.push_back(cell.get<float>());
  EXPECT_EQ(cells, output.values);
  EXPECT_EQ(picture["values_per_cell"], 1U);
  const json part = get(id, place + "/picture?x_from=3&x_to=5&y_from=1&y_to=2").body["cells"];
  EXPECT_EQ(part.size(), 1U);
  EXPECT_EQ(part[0].get<std::vector<float>>(),
            std::vector<float>(output.values.begin() + static_cast<std::ptrdiff_t>(columns) + 3,
                               output.values.begin() + static_cast<std::ptrdiff_t>(columns) + 5));
  double sum = 0, most = 0;
  for (const float value : output.values) {
    sum += double{value};
    most = std::max(most, std::abs(double{value}));
  }
  EXPECT_NEAR(get(id, place + "/picture?width=1&height=1").body["cells"][0][0].get<double>(),
              sum / static_cast<double>(output.values.size()), 1e-6);
  EXPECT_NEAR(
      get(id, place + "/picture?width=1&height=1&value=max_abs").body["cells"][0][0].get<double>(),
      most, 1e-6);

  // Only the values of the largest ones, not their columns.
  const OutputValues top = of_kind([](const OutputValues& of) { return of.ne[1] == 2; });
  const std::string top_place = place_of(step.step, top);
  const json largest = get(id, top_place).body;
  EXPECT_EQ(largest["part"], "largest of input 1");
  EXPECT_EQ(largest["shape"][0], 3U);
  EXPECT_EQ(largest["values"][0].get<float>(), top.values[3]);
  EXPECT_EQ(largest["values"][3].get<float>(), top.values[9]);

  // Files: a .npy with a header of numpy, and all outputs one after the other.
  const std::string npy = raw(std::format("/api/v1/sessions/{}/{}/file", id, place));
  ASSERT_TRUE(npy.starts_with("\x93NUMPY"));
  const auto bytes = output.values.size() * sizeof(float);
  ASSERT_GT(npy.size(), bytes);
  EXPECT_EQ(std::memcmp(npy.data() + npy.size() - bytes, output.values.data(), bytes), 0);
  EXPECT_TRUE(npy.contains(std::format("'shape': ({}, {}, )", rows, columns))) << npy.substr(0, 90);
  const std::string file = raw(std::format("/api/v1/sessions/{}/values/file", id));
  std::uint64_t size = 0;
  ASSERT_GT(file.size(), sizeof size);
  std::memcpy(&size, file.data(), sizeof size);
  const json header = json::parse(file.substr(sizeof size, size));
  std::size_t arrays = 0;
  for (const StepValues& one : values_of(id)) arrays += one.outputs.size();
  EXPECT_EQ(header.size(), arrays);
  const json& entry =
      header[std::format("step0.op{}.{}", output.op.v, all["output"].get<std::string>())];
  const std::size_t at = entry["data_offsets"][0];
  EXPECT_EQ(std::memcmp(file.data() + sizeof size + size + at, output.values.data(), bytes), 0);
  EXPECT_EQ(entry["data_offsets"][1], at + bytes);

  // The lens is no array; what is not there is said.
  const json listed = get(id, "values?step=0").body["rows"];
  const auto lens =
      std::ranges::find(listed, json("logit lens"), [](const json& row) { return row["part"]; });
  ASSERT_NE(lens, listed.end());
  const TestResponse refused =
      get(id, std::format("steps/0/ops/{}/values?output={}", (*lens)["op"].get<std::uint64_t>(),
                          (*lens)["output"].get<std::string>()));
  EXPECT_EQ(refused.status, 404);
  EXPECT_TRUE(refused.body["detail"].get<std::string>().contains("/lens")) << refused.body;
  for (const std::string& unknown :
       {place + "?output=none", place + "/picture?output=none", place + "/file?output=none",
        place + "/picture?x_from=99999", std::string("steps/99/ops/0/values"),
        std::string("steps/0/ops/99999/values/file"), std::string("steps/x/ops/0/values"),
        std::string("steps/0/ops/-1/values/picture"), std::string("values/file?step=99")})
    EXPECT_EQ(get(id, unknown).status, 404) << unknown;
  for (const std::string& wrong :
       {place + "?limit=10001", place + "?from=-1", place + "/picture?width=0",
        place + "/picture?width=99999", place + "/picture?value=scale",
        place + "/picture?x_from=5&x_to=2", place + "/picture?width=4096&height=4096",
        place + "/picture?format=png", place + "/file?output=" + std::string(201, 'x'),
        std::string("values/file?step=x")})
    EXPECT_EQ(get(id, wrong).status, 400) << wrong;
}

// By token, from the rows of each head.
TEST_F(CapturedRoutes, MeanAttentionIsThatOfTheHeads) {
  const std::string id = recorded({{"capture", {"attention"}}});
  const json heads = get(id, "attention/weights?limit=10000").body["rows"];
  for (const std::string& layer : {std::string(), std::string("layer=1"), std::string("head=1")}) {
    SCOPED_TRACE(layer);
    std::map<std::uint32_t, std::vector<double>> sums;
    std::map<std::uint32_t, std::uint64_t> counts;
    for (const json& row : heads) {
      if ((layer == "layer=1" && row["layer"] != 1) || (layer == "head=1" && row["head"] != 1))
        continue;
      auto& sum = sums[row["token"]];
      sum.resize(std::max(sum.size(), row["weights"].size()));
      ++counts[row["token"]];
      for (std::size_t i = 0; i < row["weights"].size(); ++i)
        sum[i] += row["weights"][i].get<double>();
    }
    const json means = get(id, "attention/tokens?" + layer).body;
    ASSERT_EQ(means["total"], sums.size());
    ASSERT_EQ(means["rows"].size(), sums.size());
    for (const json& row : means["rows"]) {
      const std::uint32_t token = row["token"];
      EXPECT_EQ(row["heads"], counts[token]);
      ASSERT_EQ(row["weights"].size(), sums[token].size());
      for (std::size_t i = 0; i < sums[token].size(); ++i)
        EXPECT_NEAR(row["weights"][i].get<double>(),
                    sums[token][i] / static_cast<double>(counts[token]), 1e-6);
    }
    if (!layer.empty()) continue;
    const json part = get(id, "attention/tokens?from_token=2&to_token=4").body;
    EXPECT_EQ(part["rows"], json::array({means["rows"][2], means["rows"][3]}));
    EXPECT_EQ(get(id, "attention/tokens?from=1&limit=1").body["rows"][0], means["rows"][1]);
  }
  for (const char* unknown : {"layer=99", "head=99", "from_token=9999"})
    EXPECT_EQ(get(id, std::string("attention/tokens?") + unknown).status, 404) << unknown;
  EXPECT_EQ(get(id, "attention/tokens?from_token=3&to_token=1").status, 400);
}

}  // namespace
}  // namespace tt::test
