// embed_openapi IN.yaml OUT.cpp: build tool, not installed.
#include <format>
#include <fstream>
#include <iterator>
#include <print>
#include <string>

#include "api/json/version.h"
#include "api/openapi/yaml_json.h"

namespace {

constexpr const char* kSource = R"(// Generated from openapi.yaml by embed_openapi.
#include "api/openapi/openapi.h"

namespace tt {{

std::string_view openapi_json() {{
  return R"contract({})contract";
}}

}}  // namespace tt
)";

int fail(const std::string& why) {
  std::println(stderr, "embed_openapi: {}", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("usage: embed_openapi IN.yaml OUT.cpp");
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) return fail(std::format("cannot read {}", argv[1]));
  auto document = tt::json_of_yaml(std::string(std::istreambuf_iterator<char>(in), {}));
  if (!document) return fail(std::format("{}: {}", argv[1], document.error()));

  (*document)["info"]["version"] = tt::kVersion;
  const std::string json = document->dump();
  if (json.contains(")contract\"")) return fail("the document contains the raw string delimiter");
  std::ofstream out(argv[2], std::ios::binary);
  out << std::vformat(kSource, std::make_format_args(json));
  return out.flush() ? 0 : fail(std::format("cannot write {}", argv[2]));
}
