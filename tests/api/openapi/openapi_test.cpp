// The OpenAPI document as JSON: values keep their YAML types.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "api/json/version.h"
#include "api/openapi/openapi.h"
#include "api/openapi/yaml_json.h"
#include "tests/support/test_paths.h"
#include "tracer/request/request_bounds.h"

namespace tt {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlJson, KeepsScalarTypes) {
  struct Case {
    const char* yaml;
    const char* json;
  };
  const Case cases[] = {
      {"200", "200"},
      {"'200'", R"("200")"},
      {"\"200\"", R"("200")"},
      {"-1", "-1"},
      {"4294967295", "4294967295"},
      {"0.95", "0.95"},
      {"1e3", "1000.0"},
      {"0.1.0", R"("0.1.0")"},
      {"1 or 2", R"("1 or 2")"},
      {"-start", R"("-start")"},
      {"inf", R"("inf")"},
      {"nan", R"("nan")"},
      {"true", "true"},
      {"'true'", R"("true")"},
      {"false", "false"},
      {"off", R"("off")"},
      {"no", R"("no")"},
      {"null", "null"},
      {"~", "null"},
      {"'null'", R"("null")"},
      {"''", R"("")"},
      {"", "null"},
      {"a: ", R"({"a":null})"},
      {"'200': { 7: x }", R"({"200":{"7":"x"}})"},
      {"{b: 1, a: 2}", R"({"b":1,"a":2})"},
      {"[null, eos, 'null', {}, []]", R"([null,"eos","null",{},[]])"},
      {"|\n  a\n  1\n", R"("a\n1\n")"},
      {"a: 'it''s \\n'", R"({"a":"it's \\n"})"},
      {"a: &x 1\nb: *x", R"({"a":1,"b":1})"},
  };
  for (const auto& [yaml, json] : cases) {
    const auto converted = json_of_yaml(yaml);
    ASSERT_TRUE(converted.has_value()) << yaml << ": " << converted.error();
    EXPECT_EQ(converted->dump(), json) << yaml;
  }
}

TEST(YamlJson, ReportsLineOfErrors) {
  EXPECT_EQ(json_of_yaml("a: 1\nb:\n  c: 1\n  c: 2\n").error(),
            "line 4: \"c\" is a duplicate key.");
  EXPECT_TRUE(json_of_yaml("a: [1").error().contains("line "));
}

TEST(Openapi, MatchesFileWithCurrentVersion) {
  std::ifstream in(source_path("api/openapi.yaml"));
  const auto file = json_of_yaml(std::string(std::istreambuf_iterator<char>(in), {}));
  ASSERT_TRUE(file.has_value()) << file.error();
  Json expected = *file;
  expected["info"]["version"] = kVersion;
  EXPECT_EQ(Json::parse(openapi_json()), expected);
}

TEST(Openapi, OperationIdsAreUnique) {
  const Json document = Json::parse(openapi_json());
  std::set<std::string> names;
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method == "parameters") continue;
      EXPECT_TRUE(names.insert(operation["operationId"]).second) << method << ' ' << path;
    }
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(Openapi, RequestBoundsMatchValidation) {
  const Json fields =
      Json::parse(openapi_json())["components"]["schemas"]["GenerateRequest"]["properties"];
  for (const NumberBounds& bounds : kRequestBounds) {
    const Json& field = fields[bounds.name];
    EXPECT_EQ(field["minimum"].get<double>(), bounds.min) << bounds.name;
    EXPECT_EQ(field["maximum"].get<double>(), bounds.max) << bounds.name;
  }
  EXPECT_EQ(fields["tokens"]["items"]["maximum"].get<double>(), kTokenBounds.max);
  EXPECT_EQ(fields["stop"]["maxItems"].get<std::size_t>(), kMaxStops);
  EXPECT_EQ(fields["grammar"]["maxLength"].get<std::size_t>(), kMaxGrammarBytes);
  EXPECT_EQ(fields["capture"]["maxItems"].get<std::size_t>(), kMaxCaptures);
  EXPECT_EQ(fields["stats_pattern"]["maxLength"].get<std::size_t>(), kMaxPatternBytes);
}

}  // namespace
}  // namespace tt
