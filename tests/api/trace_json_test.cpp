#include "api/trace_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/format/graph_maker.h"

namespace tt {
namespace {

TEST(TraceJson, ReplacesBytesThatAreNoText) {
  const Token half{.index = 0, .id = 1, .text = "a\xc3"};
  EXPECT_EQ(text_of(to_json(half)),
            "{\"index\":0,\"id\":1,\"position\":0,\"generated\":false,\"reused\":false,"
            "\"text\":\"a\xef\xbf\xbd\"}");
  test::GraphMaker m;
  const TensorId out = m.node("\xff", "\xfe-0", {4}, {});
  const OpRow row{.op = OpId{0}, .name = "\xff", .output = out, .sources = {out}};
  EXPECT_NO_THROW(text_of(to_json(m.graph, row)));
}

TEST(TraceJson, AnAccessSaysNullForWhatItHasNot) {
  test::GraphMaker m;
  const TensorId w = m.weight("blk.3.ffn_up_exps.weight", {4, 4, 8});
  m.graph.tensors[w.v].layer = LayerId{3};
  m.node("MUL_MAT_ID", "ffn_moe_up-3", {4, 2}, {w});
  AccessRow row;
  row.access.tensor = w;
  row.access.touched = Bytes{64};
  Json json = to_json(m.graph, row);
  EXPECT_TRUE(json["file"].is_null());
  EXPECT_TRUE(json["address"].is_null());
  EXPECT_TRUE(json["expert"].is_null());
  EXPECT_TRUE(json["score"].is_null());
  EXPECT_EQ(json["layer"], 3);

  row.address = 0x7f0000001000;
  row.access.range = {.file = 1, .offset = std::uint64_t{1} << 40, .length = 64};
  row.access.expert = 5;
  row.access.rank = 0;
  row.access.score = 0.25F;
  json = to_json(m.graph, row);
  EXPECT_EQ(json["address"], "0x7f0000001000");
  EXPECT_EQ(text_of(json["file"]), R"({"index":1,"offset":1099511627776,"length":64})");
  EXPECT_EQ(json["expert"], 5);
  EXPECT_EQ(json["rank"], 0);
  EXPECT_EQ(json["score"], 0.25F);

  row.access.score = std::numeric_limits<float>::quiet_NaN();  // the weight was not recorded
  EXPECT_TRUE(to_json(m.graph, row)["score"].is_null());
}

TEST(TraceJson, AnOpOutsideOfAnyLayerHasNone) {
  test::GraphMaker m;
  const TensorId out = m.node("ADD", "sum", {4}, {});
  const OpRow row{.op = OpId{0}, .name = "ADD", .output = out, .sources = {}};
  EXPECT_TRUE(to_json(m.graph, row)["layer"].is_null());
}

}  // namespace
}  // namespace tt
