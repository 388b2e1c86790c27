#include "api/json/trace_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "api/json/access_cursor.h"
#include "tests/support/sessions/graph_maker.h"

namespace tt {
namespace {

OpTable table_of(const GraphTemplate& graph) {
  return {.step = {}, .graph = std::make_shared<const GraphTemplate>(graph), .page = {}};
}

TEST(TraceJson, ReplacesInvalidUtf8) {
  const Token half{.index = 0, .id = 1, .text = "a\xc3"};
  EXPECT_EQ(text_of(to_json(half)),
            "{\"index\":0,\"id\":1,\"position\":0,\"generated\":false,\"reused\":false,"
            "\"sequence\":null,\"draft\":null,\"text\":\"a\xef\xbf\xbd\"}");
  test::GraphMaker m;
  const TensorId out = m.node("\xff", "\xfe-0", {4}, {});
  const OpRow row{.op = OpId{0}, .name = "\xff", .output = out, .sources = {out}};
  EXPECT_NO_THROW(text_of(to_json(table_of(m.graph), row)));
}

TEST(TraceJson, MissingAccessFieldsAreNull) {
  test::GraphMaker m;
  const TensorId weight = m.weight("blk.3.ffn_up_exps.weight", {4, 4});
  m.node("MUL_MAT_ID", "ffn_up-3", {4}, {weight});
  m.graph.tensors[weight.v].layer = LayerId{3};
  AccessRow row;
  row.derived = derive_graph(std::make_shared<const GraphTemplate>(m.graph));
  row.step = std::make_shared<const StepFacts>(StepFacts{.id = StepId{7}, .conditions = {}});
  row.access.tensor = weight;
  row.access.touched = Bytes{64};
  Json json = to_json(row);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["operation_type"], "MUL_MAT_ID");
  EXPECT_EQ(json["tensor_name"], "blk.3.ffn_up_exps.weight");
  EXPECT_EQ(json["layer_id"], 3);
  EXPECT_EQ(json["size_bytes"], 64);
  for (const char* missing :
       {"duration_ns", "tensor_ptr", "file_offset", "file_bytes", "attention_head", "expert_id",
        "expert_rank", "routing_score", "expert_name"})
    EXPECT_TRUE(json.at(missing).is_null()) << missing;
  EXPECT_FALSE(json.contains("session"));

  row.duration = Ns{5};
  row.address = 0x7f0000001000;
  row.access.range = {.file = 1, .offset = std::uint64_t{1} << 40, .length = 64};
  row.access.expert = 5;
  row.access.rank = 0;
  row.access.score = 0.25F;
  json = to_json(row);
  EXPECT_EQ(json["duration_ns"], 5);
  EXPECT_EQ(json["tensor_ptr"], 0x7f0000001000);
  EXPECT_EQ(json["file_offset"], std::uint64_t{1} << 40);
  EXPECT_EQ(json["file_bytes"], 64);
  EXPECT_EQ(json["expert_id"], 5);
  EXPECT_EQ(json["expert_rank"], 0);
  EXPECT_EQ(json["routing_score"], 0.25F);
  EXPECT_EQ(json["expert_name"], "blk.3.expert_5.ffn_up.weight");

  row.access.score = std::numeric_limits<float>::quiet_NaN();  // not recorded
  EXPECT_TRUE(to_json(row)["routing_score"].is_null());
}

TEST(TraceJson, NodeFieldsAreNullWhenNotComputed) {
  test::GraphMaker m;
  const TensorId w = m.weight("blk.0.ffn_up.weight", {4, 4});
  const TensorId view = m.idle("VIEW", "blk.0.ffn_up.weight (view)", {2, 4}, {w});
  const TensorId out = m.node("SCALE", "ffn_up-0", {2, 4}, {view});
  GraphPart layer{.step = StepId{7},
                  .id = TemplateId{2},
                  .graph = std::make_shared<const GraphTemplate>(m.graph),
                  .layers = 4,
                  .subgraph = {}};
  layer.subgraph.nodes = {{.tensor = w, .layer = LayerId{0}, .category = Category::Layer},
                          {.tensor = view, .node = NodeId{0}},
                          {.tensor = out,
                           .node = NodeId{1},
                           .op = OpId{0},
                           .layer = LayerId{1},
                           .category = Category::CrossLayerOutput}};
  layer.subgraph.edges = {{.from = w, .to = view}, {.from = view, .to = out, .cross_layer = true}};
  const Json json = to_json(layer);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["template"], 2);
  EXPECT_EQ(json["layers"], 4);
  const Json& nodes = json["nodes"];
  EXPECT_TRUE(nodes[0]["node"].is_null());
  EXPECT_TRUE(nodes[0]["op"].is_null());
  EXPECT_EQ(nodes[0]["size"], 64);
  EXPECT_EQ(nodes[1]["op"], "VIEW");
  EXPECT_TRUE(nodes[1]["executed_op"].is_null());
  EXPECT_TRUE(nodes[1]["layer"].is_null());
  EXPECT_EQ(nodes[2]["executed_op"], 0);
  EXPECT_EQ(nodes[2]["category"], "cross_layer_output");
  EXPECT_EQ(text_of(json["edges"][1]), R"({"from":1,"to":2,"cross_layer":true})");

  const Json groups = collapsed_json(layer);
  EXPECT_EQ(groups["groups"].size(), 3u);
  EXPECT_EQ(groups["groups"][0]["weights"], 1);
  EXPECT_EQ(groups["groups"][2]["ops"], 1);
  EXPECT_EQ(text_of(groups["edges"][1]), R"({"from":1,"to":2,"edges":1,"cross_layer":true})");
}

TEST(AccessCursor, IsAcceptedOnlyWithItsOwnQuery) {
  const AccessId place{.step = StepId{4'000'000'000}, .access = 77, .part = 3};
  AccessQuery query;
  query.filter.tensor.name = "attn q.\"%\n";
  query.filter.tensor.layers = LayerSet::one(kNoLayer);
  query.order = {AccessSort::ByBytes, true};
  const std::string text = encode_cursor(place, "session-1", query);
  EXPECT_LE(text.size(), 200u);
  EXPECT_EQ(parse_cursor(text, "session-1", query), place);

  const auto rejected = [](const std::string& cursor, const std::string& session,
                           const AccessQuery& other) {
    const auto parsed = parse_cursor(cursor, session, other);
    return !parsed && parsed.error().error_code == ErrorCode::BadRequest;
  };
  EXPECT_TRUE(rejected(text, "session-2", query));
  AccessQuery other = query;
  other.order.descending = false;
  EXPECT_TRUE(rejected(text, "session-1", other));
  other = query;
  other.filter.tensor.layers = LayerSet::all();
  EXPECT_TRUE(rejected(text, "session-1", other));
  other = query;
  other.filter.write = false;
  EXPECT_TRUE(rejected(text, "session-1", other));
  other = query;
  other.filter.op_name = "MUL";
  EXPECT_TRUE(rejected(text, "session-1", other));
  for (const std::string& wrong :
       {std::string(), std::string("..."), std::string("1.2.3"), text + "0", text + " ", "-" + text,
        "100000000" + text, text.substr(0, text.rfind('.')), std::string(200, 'f')})
    EXPECT_TRUE(rejected(wrong, "session-1", query)) << wrong;
}

TEST(TraceJson, OpOutsideLayersHasNullLayer) {
  test::GraphMaker m;
  const TensorId out = m.node("ADD", "sum", {4}, {});
  const OpRow row{.op = OpId{0}, .name = "ADD", .output = out, .sources = {}};
  EXPECT_TRUE(to_json(table_of(m.graph), row)["op_layer_id"].is_null());
}

}  // namespace
}  // namespace tt
