// DOT output, checked with Graphviz.
#include "api/text/graph_dot.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <format>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

struct Drawn {
  int code = 0;
  std::string out, messages;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Drawn render_dot(const std::string& dot, const char* as) {
  const test::TempFolder folder;
  std::ofstream(folder / "graph.dot") << dot;
  const std::string command = std::format("cd {} && {} -T{} graph.dot >out 2>err",
                                          folder.path().string(), kTestPaths.dot, as);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = contents(folder / "out"),
          .messages = contents(folder / "err")};
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

GraphPart part_of(GraphTemplate graph, const LayerSet& layers) {
  GraphPart part{.step = StepId{3},
                 .id = TemplateId{1},
                 .graph = std::make_shared<const GraphTemplate>(std::move(graph)),
                 .layers = 2,
                 .subgraph = {}};
  part.subgraph = layer_subgraph(*part.graph, layers);
  return part;
}

TEST(GraphDot, CategoriesHaveDistinctColoursAndShapes) {
  const std::string dot = to_dot(part_of(test::small_graph(), LayerSet::one(LayerId{0})));
  // embd -> norm-0 -> Qcur-0 of layer 0 -> ffn_out-1 of layer 1.
  for (const char* part :
       {R"(label="blk.0.attn_q.weight\nweight f32 8x8", class="layer", shape=box, color="#1f6fd0")",
        R"(label="embd\nGET_ROWS f32 8x2", class="embedding", shape=parallelogram)",
        R"(label="ffn_out-1\nMUL_MAT f32 8x2", class="cross_layer_output", shape=ellipse)",
        R"(label="layer 0")", R"(label="layer 1")", R"([style=dashed, color="#b35a00"])"}) {
    EXPECT_TRUE(dot.contains(part)) << "missing " << part << " in\n" << dot;
  }
  const std::string next = to_dot(part_of(test::small_graph(), LayerSet::one(LayerId{1})));
  EXPECT_TRUE(next.contains(R"(class="cross_layer_input", shape=invhouse, color="#b35a00")"));
  EXPECT_TRUE(next.contains(R"(class="output", shape=octagon)")) << next;
  const std::string whole = to_dot(part_of(test::small_graph(), LayerSet::all()));
  EXPECT_TRUE(whole.contains(R"(class="infrastructure", shape=hexagon, color="#1c8450")"));

  const Drawn svg = render_dot(whole, "svg");
  EXPECT_EQ(svg.code, 0);
  EXPECT_EQ(svg.messages, "");
  EXPECT_EQ(count(svg.out, "class=\"node "), test::small_graph().tensors.size());
  EXPECT_EQ(count(svg.out, "class=\"cluster\""), 2U);
  EXPECT_EQ(count(svg.out, "stroke-dasharray"), 1U) << "Qcur-0 -> ffn_out-1";
}

TEST(GraphDot, CollapsedGraphHasOneBoxPerLayerAndComponent) {
  const GraphPart part = part_of(test::small_graph(), LayerSet::all());
  const CollapsedGraph groups = collapsed(*part.graph, part.subgraph);
  const std::string dot = collapsed_dot(part);
  EXPECT_TRUE(dot.contains(R"(label="attention\n1 op, 1 weight, 256 B")")) << dot;
  const Drawn svg = render_dot(dot, "svg");
  EXPECT_EQ(svg.code, 0);
  EXPECT_EQ(svg.messages, "");
  EXPECT_EQ(count(svg.out, "class=\"node "), groups.groups.size());
  EXPECT_EQ(count(svg.out, "class=\"edge\""), groups.edges.size());
}

// Names from a file may contain quotes, backslashes, entities, NUL and invalid UTF-8.
TEST(GraphDot, AcceptsAnyNames) {
  const auto expect_read = [](const std::string& dot, std::size_t boxes) {
    const Drawn canonical = render_dot(dot, "canon");
    EXPECT_EQ(canonical.code, 0);
    EXPECT_EQ(canonical.messages, "");
    EXPECT_EQ(count(canonical.out, "fillcolor="), boxes);
  };
  test::GraphMaker m;
  m.node("MUL", R"(a "b" \ \N & &amp; <c>)", {8}, {m.input("\xff\x01 x\n\\", {8})});
  expect_read(to_dot(part_of(std::move(m.graph), LayerSet::all())), 2);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    test::Dice dice(seed);
    const GraphPart part = part_of(test::random_template(dice, {}), LayerSet::all());
    expect_read(to_dot(part), part.subgraph.nodes.size());
    expect_read(collapsed_dot(part), collapsed(*part.graph, part.subgraph).groups.size());
  }
}

}  // namespace
}  // namespace tt
