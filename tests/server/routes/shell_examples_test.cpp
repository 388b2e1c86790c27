// Runs the commands shown in README.md and docs/*.md: tt, curl against a running server,
// sqlite3.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

struct Example {
  std::string place, command;
};

// The commands of all shell blocks; a backslash continues a line.
std::vector<Example> examples_in(const fs::path& document) {
  std::vector<Example> examples;
  std::ifstream file(document);
  bool inside = false, continued = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside && (line == "```" || line == "```sh");
      continue;
    }
    if (!inside) continue;
    const bool more = line.ends_with('\\');
    if (more) line.pop_back();
    if (continued) {
      examples.back().command += line;
    } else {
      examples.push_back({std::format("{}:{}", document.filename().string(), number), line});
    }
    continued = more;
  }
  const auto other = [](const Example& example) {
    static const std::set<std::string> kRun = {"tt", "curl", "sqlite3", "tar"};
    const std::string& command = example.command;
    return !kRun.contains(command.substr(0, command.find(' '))) ||
           command.contains("https://trace.example");
  };
  std::erase_if(examples, other);
  return examples;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

TEST(ShellExamples, DocumentedCommandsSucceed) {
  std::vector<fs::path> documents = {source_path("README.md")};
  for (const auto& entry : fs::directory_iterator(source_path("docs")))
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  std::ranges::sort(documents);
  std::vector<Example> examples;
  for (const fs::path& document : documents) examples.append_range(examples_in(document));
  EXPECT_GE(examples.size(), 10u);

  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id =
      server.generate({{"prompt", "Once"}, {"max_tokens", 4}, {"ignore_eos", true}});
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  const TempFolder folder;
  const auto shell = [&](const std::string& command) {
    std::ofstream(folder / "example.sh")
        << "set -e -o pipefail\nPATH=" << fs::path(kTestPaths.tt).parent_path().string()
        << ":$PATH\ncurl() { command curl -sS --fail-with-body \"$@\"; }\n"
        << command << '\n';
    return std::system(
        std::format("cd {} && bash example.sh >out 2>err", folder.path().string()).c_str());
  };
  ASSERT_EQ(shell("tt record -q -p Once -n 4 -t 1 --ignore-eos -o s.ttrace\n"
                  "cp s.ttrace session.ttrace\ncp s.ttrace dense.ttrace\n"
                  "mkdir -p runs/4-threads runs/8-threads\n"
                  "for to in runs runs/4-threads runs/8-threads; do cp s.ttrace $to; done\n"
                  "tt export s.ttrace -o s.ndjson\ntt model moe -o moe.gguf\n"
                  "tt record -q -m moe.gguf -p Once -n 4 -t 1 --ignore-eos -o moe.ttrace\n"
                  "tt model small --layers 1 -q -o model.gguf\n"
                  "tt model small --layers 1 --quant q4_k -q -o model-q4.gguf\n"
                  "tt model small --layers 1 --quant f16 -q -o model-f16.gguf\n"
                  "cp model-f16.gguf model-mix.gguf"),
            0);
  for (auto& [place, command] : examples) {
    SCOPED_TRACE(place + ": " + command);
    const bool experts = command.starts_with("tt moe");
    ASSERT_EQ(shell(std::format("cp {}.ttrace s.ttrace", experts ? "moe" : "dense")), 0);
    for (const char* host : {"localhost:8080", "127.0.0.1:8080"})
      replace_all(command, host, std::format("127.0.0.1:{}", server.port));
    replace_all(command, "/ID/", "/" + id + "/");
    replace_all(command, "/usr/lib/x86_64-linux-gnu/tensor-trace/tensor_trace",
                kTestPaths.extension);
    const auto output = [&](const char* name) {
      std::ifstream file(folder / name);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    EXPECT_EQ(shell(command), 0) << output("out") << output("err");
    if (command.starts_with("sqlite3") || command.contains("sql ")) {
      EXPECT_NE(output("out"), "");
    }
  }
}

}  // namespace
}  // namespace tt::test
