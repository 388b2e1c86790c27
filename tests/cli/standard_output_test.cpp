// Write errors on standard output.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cli/commands/verbs.h"
#include "tests/cli/tt_program.h"

namespace tt {
namespace {

// Runs tt with standard output redirected by `to`; Result::out is empty.
Result run_into(const test::TempFolder& folder, const std::string& arguments, const char* to,
                const char* before = "") {
  const std::string command = std::format("cd {} && {} {} {} 2>err {}", folder.path().string(),
                                          before, kTestPaths.tt, arguments, to);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = {},
          .err = contents(folder / "err")};
}

TEST(StandardOutput, EveryVerbReportsWriteErrors) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -q -o moe.gguf").code, 0);
  ASSERT_EQ(run_tt(folder,
                   "record -m moe.gguf -p 'a b' -n 6 -t 1 --ignore-eos --capture l_out -o s.ttrace")
                .code,
            0);
  ASSERT_EQ(run_tt(folder, "export s.ttrace -o s.ndjson").code, 0);
  std::filesystem::copy_file(folder / "s.ttrace", folder / "t.ttrace");
  const auto model = (folder / "moe.gguf").string();
  const auto size = std::filesystem::file_size(model);
  std::ofstream(folder / "extents.txt") << std::format(
      "File size of {} is {} ({} blocks of 1 bytes)\n   0: 0..{}: 1048576..{}: {}:\n", model, size,
      size, size - 1, 1048576 + size - 1, size);
  std::ofstream(folder / "blkparse.txt") << "8,16 0 1 1.000000001 697 D RA 2048 + 8 [tt]\n";
  std::ofstream(folder / "commands.txt") << "break l_out layer 0\nrun a b\nwhere\nprint\nquit\n";
  const std::string disk = "s.ttrace blkparse.txt --extents extents.txt --partition-start 0";
  // Short outputs, which are written at exit, and long ones.
  const std::map<std::string, std::vector<std::string>> command_lines = {
      {"analyze", {"hot s.ttrace", "hot s.ttrace --json"}},
      {"attach", {"--check -- llama-completion", "--ollama"}},
      {"bench-model",
       {"-m moe.gguf -p 16 -n 16 -r 1 -t 1 --block-ms 1",
        "-m moe.gguf -p 16 -n 16 -r 1 -t 1 --block-ms 1 -o json"}},
      {"compare", {"s.ttrace s.ttrace", "s.ttrace s.ttrace --json", "--values s.ttrace s.ttrace"}},
      {"debug", {"moe.gguf -t 1 -n 2 -x commands.txt"}},
      {"disk", {disk, disk + " --json"}},
      {"generality", {"s.ttrace t.ttrace", "s.ttrace t.ttrace --json"}},
      {"export",
       {"s.ttrace --format csv -o -", "s.ttrace --format dot -o -", "s.ttrace --format arrow -o -",
        "s.ttrace --format csv --last-step 0 -o -"}},
      {"gguf", {"moe.gguf", "moe.gguf --format csv", "moe.gguf --json", "moe.gguf --compression"}},
      {"graph", {"s.ttrace", "s.ttrace --json", "s.ttrace --collapse"}},
      {"heads", {"s.ttrace", "s.ttrace --json", "s.ttrace --kv"}},
      {"hot", {"s.ttrace", "s.ttrace --top 9999", "s.ttrace --json"}},
      {"import", {}},  // no output
      {"memory", {"s.ttrace", "s.ttrace --json"}},
      {"model", {"--list", "small --layers 2 --force -o small.gguf"}},
      {"moe", {"s.ttrace", "s.ttrace --layers 0", "s.ttrace --json"}},
      {"parse", {"s.ttrace", "s.ttrace --limit 50000", "s.ttrace --stats", "s.ttrace --validate"}},
      {"pattern", {"s.ttrace", "s.ttrace --json"}},
      {"record", {"-m moe.gguf -p 'a b' -n 6 -t 1 --ignore-eos -q --force -o r.ttrace"}},
      {"report", {"s.ttrace", "s.ttrace --format md", "s.ttrace --json"}},
      {"reuse", {"s.ttrace", "s.ttrace --json"}},
      {"show", {"s.ttrace", "s.ttrace --facts", "s.ttrace --json"}},
      {"sql",
       {"s.ttrace 'select count(*) from step'", "s.ttrace 'select * from access'",
        "s.ttrace 'select * from access' --csv", "s.ttrace 'select * from access' --json"}},
      {"trend", {"s.ttrace t.ttrace", "s.ttrace t.ttrace --json"}},
      {"values", {"s.ttrace", "s.ttrace --op l_out-0", "s.ttrace --json"}},
      {"weights",
       {"moe.gguf", "moe.gguf --json", "moe.gguf blk.0.attn_q.weight --blocks",
        "moe.gguf --reference moe.gguf --format csv", "moe.gguf --fit 1GB --rows 1"}}};
  for (const cli::Verb& row : cli::kVerbs) {
    const std::string verb = row.name;
    ASSERT_TRUE(command_lines.contains(verb)) << "no commands listed for tt " << verb;
    for (const std::string& command_line : command_lines.at(verb)) {
      SCOPED_TRACE(verb + " " + command_line);
      const std::string arguments = verb + " " + command_line;
      EXPECT_EQ(run_into(folder, arguments, ">/dev/null").code, 0) << contents(folder / "err");
      const Result full = run_into(folder, arguments, ">/dev/full");
      EXPECT_EQ(full.code, 1);
      EXPECT_EQ(full.err, std::format("tt {}: standard output cannot be written: No space left on "
                                      "device\n",
                                      verb));
      // The reader has closed the pipe and SIGPIPE is ignored.
      const Result closed = run_into(folder, arguments, "| true", "trap '' PIPE;");
      EXPECT_EQ(closed.err, "");
    }
  }
  // The session was recorded despite the write error.
  EXPECT_EQ(run_tt(folder, "show r.ttrace").code, 0);
  EXPECT_EQ(run_into(folder, "--help", ">/dev/full").code, 1);
}

}  // namespace
}  // namespace tt
