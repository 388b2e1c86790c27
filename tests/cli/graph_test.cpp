// tt graph, as DOT rendered by Graphviz and as JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using nlohmann::json;

std::string svg_of(const test::TempFolder& folder, const std::string& dot) {
  std::ofstream(folder / "graph.dot") << dot;
  const std::string command = std::format("cd {} && {} -Tsvg graph.dot >svg 2>complaints",
                                          folder.path().string(), kTestPaths.dot);
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(contents(folder / "complaints"), "");
  return contents(folder / "svg");
}

json graph_of(const test::TempFolder& folder, const std::string& options) {
  const Result result = run_tt(folder, "graph a.ttrace --json " + options);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(run_tt(folder, "graph a.ttrace --format json " + options).out, result.out);
  return json::parse(result.out, nullptr, false);
}

void record(const test::TempFolder& folder, const std::string& model) {
  std::string options;
  if (!model.empty()) {
    ASSERT_EQ(run_tt(folder, "model " + model + " -o m.gguf").code, 0);
    options = "-m m.gguf ";
  }
  const Result result = run_tt(
      folder, "record " + options + "-p 'Once upon a time' -n 3 -t 1 --ignore-eos -o a.ttrace");
  ASSERT_EQ(result.code, 0) << result.err;
}

class GraphCommand : public ::testing::TestWithParam<const char*> {};

TEST_P(GraphCommand, PrintsCompleteGraphsAndSelectedLayers) {
  const test::TempFolder folder;
  record(folder, GetParam());
  const json whole = graph_of(folder, "");
  const auto layers = whole["layers"].get<int>();
  ASSERT_GE(layers, 2);
  EXPECT_EQ(whole["step"], 2) << "the last step";
  // Each tensor of the graph belongs to one layer or is outside all layers.
  std::set<int> tensors;
  for (int layer = 0; layer <= layers; ++layer) {
    const std::string part = layer < layers ? std::to_string(layer) : "outside";
    const json graph = graph_of(folder, "--layers " + part);
    std::set<std::string> edges;
    for (const json& edge : whole["edges"]) edges.insert(edge["from"].dump() + edge["to"].dump());
    for (const json& edge : graph["edges"])
      EXPECT_TRUE(edges.contains(edge["from"].dump() + edge["to"].dump()));
    for (const json& node : graph["nodes"]) tensors.insert(node["tensor"].get<int>());
  }
  EXPECT_EQ(tensors.size(), whole["nodes"].size());

  for (const char* options : {"--layers 0", "--layers 1,outside --step 0", "--collapse",
                              "--collapse --template 1 --layers 0-1"}) {
    SCOPED_TRACE(options);
    const Result dot = run_tt(folder, std::string("graph a.ttrace ") + options);
    ASSERT_EQ(dot.code, 0) << dot.err;
    const json graph = graph_of(folder, options);
    const std::string svg = svg_of(folder, dot.out);
    std::size_t boxes = 0;
    for (auto at = svg.find("class=\"node "); at != std::string::npos;
         at = svg.find("class=\"node ", at + 1))
      ++boxes;
    EXPECT_EQ(boxes, graph[graph.contains("groups") ? "groups" : "nodes"].size());
    EXPECT_TRUE(svg.contains(">layer 1<")) << "a cluster";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GraphCommand, ::testing::Values("", "moe", "mamba", "rwkv"),
                         [](const auto& param) {
                           return *param.param == '\0' ? "bundled" : std::string(param.param);
                         });

TEST(GraphCommandErrors, HaveDistinctExitCodes) {
  const test::TempFolder folder;
  EXPECT_EQ(run_tt(folder, "graph none.ttrace").code, 1);
  EXPECT_EQ(run_tt(folder, "graph none.ttrace --layers 3-1").code, 2);
  EXPECT_EQ(run_tt(folder, "graph none.ttrace --format svg").code, 2);
  EXPECT_EQ(run_tt(folder, "graph none.ttrace --step 1 --template 1").code, 2);
  record(folder, "");
  for (const char* options : {"--layers 99", "--step 99", "--template 99"}) {
    const Result result = run_tt(folder, std::string("graph a.ttrace ") + options);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("99")) << result.err;
  }
}

struct Point {
  double x = 0, y = 0;
};

// Graphviz places y = 0 at the bottom.
TEST(CollapsedGraph, FitsAPageWithLayersInOrder) {
  for (const char* model : {"small --layers 1", "small --layers 2", "small --layers 80",
                            "moe --layers 8", "mamba --layers 24", "t5"}) {
    SCOPED_TRACE(model);
    const test::TempFolder folder;
    ASSERT_EQ(run_tt(folder, std::string("model ") + model + " -o m.gguf -q").code, 0);
    ASSERT_EQ(
        run_tt(folder, "record -m m.gguf --tokens 1,2,3 -n 2 -t 1 --ignore-eos -o a.ttrace").code,
        0);
    const json groups = graph_of(folder, "--collapse")["groups"];
    std::ofstream(folder / "graph.dot") << run_tt(folder, "graph a.ttrace --collapse").out;
    ASSERT_EQ(std::system(std::format("cd {} && {} -Tplain graph.dot >plain",
                                      folder.path().string(), kTestPaths.dot)
                              .c_str()),
              0);
    std::map<int, Point> first_boxes;  // by layer
    Point size;
    std::istringstream plain(contents(folder / "plain"));
    for (std::string line; std::getline(plain, line);) {
      std::istringstream words(line);
      std::string kind, name;
      Point at;
      words >> kind >> name >> at.x >> at.y;
      if (kind == "graph") size = at;
      if (kind != "node" || name[0] != 'n') continue;
      const auto number = static_cast<std::size_t>(std::stoul(name.substr(1)));
      const json layer = groups.at(number)["layer"];
      if (layer.is_null()) continue;
      const auto [known, is_new] = first_boxes.try_emplace(layer.get<int>(), at);
      if (!is_new) known->second.x = std::min(known->second.x, at.x);
    }
    EXPECT_LE(std::max(size.x, size.y) / std::min(size.x, size.y), 3) << size.x << " " << size.y;
    int columns = 1;
    for (auto at = first_boxes.begin(); std::next(at) != first_boxes.end(); ++at) {
      const Point upper = at->second, lower = std::next(at)->second;
      if (lower.y < upper.y) continue;
      ++columns;
      EXPECT_GT(lower.x, upper.x) << at->first;
    }
    EXPECT_LE(columns, 2);
  }
}

}  // namespace
}  // namespace tt
