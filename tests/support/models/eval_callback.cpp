#include "tests/support/models/eval_callback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <format>
#include <fstream>
#include <ostream>

#include "tests/support/models/backends.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/engine/backends.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::test {

std::ostream& operator<<(std::ostream& out, const PrintedNode& node) {
  return out << std::format("{} = ({}) {}({}, {}) = {{{}}}", node.name, node.type, node.op,
                            node.sources[0], node.sources[1], node.shape);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

namespace {

// "common_debug_cb_eval:  NAME = (TYPE)  OP(SRC{a, b, c, d}, SRC{a, b, c, d}}) = {a, b, c, d}"
bool parse(std::string_view text, PrintedNode& line) {
  constexpr std::string_view kPrefix = "common_debug_cb_eval:";
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  const auto type_at = text.find(" = (");
  const auto type_end = text.find(')', type_at);
  const auto op_end = text.find('(', type_end);
  const auto shape_at = text.rfind(") = {");
  if (type_at == std::string::npos || op_end == std::string::npos || shape_at == std::string::npos)
    return false;
  line.name = trimmed(text.substr(0, type_at));
  line.type = text.substr(type_at + 4, type_end - type_at - 4);
  line.op = trimmed(text.substr(type_end + 1, op_end - type_end - 1));
  line.shape = text.substr(shape_at + 5, text.rfind('}') - shape_at - 5);
  std::string_view sources = text.substr(op_end + 1, shape_at - op_end - 1);
  const auto first_end = sources.find("}, ");
  line.sources[0] = sources.substr(0, first_end + 1);
  sources.remove_prefix(first_end + 3);
  line.sources[1] = sources.substr(0, sources.size() - 1);  // an extra closing brace is printed
  return true;
}

// "[  0.1391,  -0.1269,  -0.1024,  ...,  0.1329,  -0.0752,  -0.1346 ]," or "sum = -1.916211"
void take_values(std::string_view text, EvalCallbackRun::Values& values) {
  constexpr std::string_view kSum = "sum = ", kBetween = " ,[]";
  text = trimmed(text);
  if (text.starts_with(kSum)) {
    values.sum = std::strtod(std::string(text.substr(kSum.size())).c_str(), nullptr);
    return;
  }
  while (!text.empty()) {
    const auto begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return;
    const auto end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    if (word != "...") values.printed.push_back(std::strtof(word.c_str(), nullptr));
    text.remove_prefix(end);
  }
}

}  // namespace

EvalCallbackRun run_eval_callback(const std::filesystem::path& model, const std::string& prompt,
                                  const ContextOptions& context) {
  const TempFolder folder;
  ensure_backends_loaded();
  const auto index = GgufIndex::open(model);
  EXPECT_TRUE(index.has_value());
  const char* repack = index && repacking_error(*index).empty() ? "--repack" : "--no-repack";
  const std::string command = std::format(
      "LD_PRELOAD='{}' '{}' -m '{}' -p '{}' -c {} -b {} -ub {} -t {} -ngl 0 -n 1 {} "
      "> '{}' 2> '{}'",
      kTestPaths.log_flush, kTestPaths.eval_callback, model.string(), prompt, context.context,
      context.batch, context.ubatch, context.threads, repack, (folder / "nodes").string(),
      (folder / "log").string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  EvalCallbackRun result;
  PrintedNode node;
  std::ifstream nodes(folder / "nodes");
  for (std::string line; std::getline(nodes, line);) {
    if (parse(line, node)) {
      result.nodes.push_back(node);
      result.values.emplace_back();
    } else if (!result.values.empty()) {
      take_values(line, result.values.back());
    }
  }
  std::ifstream log(folder / "log");
  bool listing = false;  // the ids follow "number of input tokens", one per line
  for (std::string line; std::getline(log, line);) {
    if (line.contains("number of input tokens")) {
      listing = true;
    } else if (const auto at = line.find(" I   "); listing && at != std::string::npos) {
      result.tokens.push_back(std::stoi(line.substr(at + 5)));
    }
  }
  return result;
}

}  // namespace tt::test
