// Files that are no regular files, without end, or too large, wherever tt reads one: a message and
// exit code 1, never an abort or an endless wait.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/exchange/import/import.h"
#include "cli/commands/verbs.h"
#include "tests/cli/tt_program.h"
#include "tests/support/sessions/half_changed_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

struct Bad {
  const char* name;
  const char* reason;  // part of the message; empty: the verb says what the content lacks
};
constexpr Bad kBad[] = {
    {"fifo", "it is a pipe"},
    {"folder", ""},
    {"/dev/zero", "it is a device"},
    {"loop", "Too many levels of symbolic links"},
    {"none", ""},
    {"terabyte", ""},
    {"to-fifo", "it is a pipe"},
};

void make_bad_files(const test::TempFolder& folder) {
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_directory(folder / "folder");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("fifo", folder / "to-fifo");
  std::ofstream(folder / "terabyte") << "";
  fs::resize_file(folder / "terabyte", std::uintmax_t{1} << 40);
}

TEST(InputFiles, EveryVerbRefusesOtherFilesThanRegularOnes) {
  const test::TempFolder folder;
  make_bad_files(folder);
  fs::copy_file(source_path("tests/data/session-v7.ttrace"), folder / "s.ttrace");
  std::ofstream(folder / "a.json") << "[]";
  // {}: the file; MODEL: a model.
  const std::multimap<std::string, std::string> verbs = {
      {"analyze", "hot {}"},
      {"bench-model", "--compare {} a.json"},
      {"bench-model", "--compare a.json {}"},
      {"compare", "{} s.ttrace"},
      {"compare", "s.ttrace {}"},
      {"debug", "MODEL -x {}"},
      {"debug", "{} -x a.json"},
      {"disk", "s.ttrace {}"},
      {"export", "{} -o out.csv"},
      {"generality", "{} s.ttrace"},
      {"gguf", "{}"},
      {"gguf", "reorder MODEL --by-use {} -o out.gguf"},
      {"gguf", "reorder {} --by-use s.ttrace -o out.gguf"},
      {"graph", "{}"},
      {"heads", "{}"},
      {"hot", "{}"},
      {"import", "{} -o out.ttrace"},
      {"memory", "{}"},
      {"model", "dense-tiny -o m.gguf --pieces {}"},
      {"moe", "{}"},
      {"parse", "{}"},
      {"pattern", "{}"},
      {"record", "-f {} -o out.ttrace"},
      {"record", "-p x --access-pattern {} --memory-budget 10GiB -o out.ttrace"},
      {"record", "-p x --chat --chat-template-file {} -o out.ttrace"},
      {"record", "-p x -m {} -o out.ttrace"},
      {"report", "s.ttrace --compare {} -o -"},
      {"report", "{} -o -"},
      {"reuse", "{}"},
      {"show", "{}"},
      {"sql", "{} 'SELECT 1'"},
      {"trend", "{} s.ttrace"},
      {"values", "{}"},
      {"weights", "MODEL --fit 1GiB --session {}"},
      {"weights", "MODEL --imatrix {}"},
      {"weights", "MODEL --reference {}"},
      {"weights", "{}"},
  };
  for (const cli::Verb& verb : cli::kVerbs)
    EXPECT_NE(verbs.contains(verb.name), verb.name == std::string_view("attach"))
        << verb.name << ": attach reads no file; each other verb is in the table";
  for (const auto& [verb, template_of] : verbs) {
    for (const Bad& bad : kBad) {
      std::string arguments = verb + " " + template_of;
      if (const auto at = arguments.find("MODEL"); at != std::string::npos)
        arguments.replace(at, 5, kTestPaths.bundled_model);
      arguments.replace(arguments.find("{}"), 2, bad.name);
      SCOPED_TRACE(arguments);
      const Result result = run_tt(folder, arguments, "timeout -s KILL 20");
      EXPECT_GE(result.code, 1) << result.err;
      EXPECT_LE(result.code, 2) << result.err;
      EXPECT_FALSE(result.err.empty());
      EXPECT_FALSE(result.err.contains("terminate called")) << result.err;
      if (arguments.starts_with("show") || arguments.starts_with("import")) {
        EXPECT_TRUE(result.err.contains(bad.reason)) << result.err;
      }
    }
  }
}

// SQLite would wait for a writer of the journal.
TEST(InputFiles, JournalsAreRegularFiles) {
  const test::TempFolder folder;
  const test::SmallSession session({test::small_step(0), test::small_step(1)});
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    const fs::path file = folder / "s.ttrace";
    fs::copy_file(session.path, file, fs::copy_options::overwrite_existing);
    const std::string beside = file.string() + suffix;
    for (const bool pipe : {true, false}) {
      if (pipe) {
        ASSERT_EQ(mkfifo(beside.c_str(), 0600), 0);
      } else {
        fs::create_directory(beside);
      }
      const Result result = run_tt(folder, "show s.ttrace", "timeout -s KILL 20");
      EXPECT_EQ(result.code, 1) << beside;
      EXPECT_TRUE(result.err.contains(std::string("s.ttrace") + suffix +
                                      " cannot be read: it is a " + (pipe ? "pipe" : "folder")))
          << result.err;
      fs::remove_all(beside);
    }
  }
}

// A change that was interrupted is undone, as by sqlite3; it is no damage.
TEST(InputFiles, InterruptedChangesAreUndone) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 400; ++i) steps.push_back(test::small_step(i));
  const test::SmallSession session(steps);
  for (const char* verb : {"show", "hot", "parse --validate"}) {
    SCOPED_TRACE(verb);
    const test::TempFolder folder;
    fs::copy_file(session.path, folder / "whole.ttrace");
    test::copy_half_changed(session.path, folder / "s.ttrace");
    const Result undone = run_tt(folder, std::string(verb) + " s.ttrace");
    EXPECT_EQ(undone.err, "");
    fs::rename(folder / "whole.ttrace", folder / "s.ttrace");
    const Result whole = run_tt(folder, std::string(verb) + " s.ttrace");
    EXPECT_EQ(undone.code, whole.code);
    EXPECT_EQ(undone.out, whole.out);
  }
}

TEST(InputFiles, FoldersForImportHoldRegularFiles) {
  const test::TempFolder folder;
  const test::SmallSession session({test::small_step(0), test::small_step(1)});
  fs::copy_file(session.path, folder / "s.ttrace");
  ASSERT_EQ(run_tt(folder, "export s.ttrace --format folder -o run").code, 0);
  for (const std::string_view name : exchange::kImportedFiles) {
    const fs::path part = folder.path() / "run" / name;
    const fs::path kept = folder / "kept";
    fs::rename(part, kept);
    ASSERT_EQ(mkfifo(part.c_str(), 0600), 0);
    const Result result = run_tt(folder, "import run -o out.ttrace", "timeout -s KILL 20");
    EXPECT_EQ(result.code, 1) << part;
    EXPECT_TRUE(result.err.contains("cannot be read: it is a pipe")) << result.err;
    fs::remove(part);
    fs::rename(kept, part);
  }
  EXPECT_EQ(run_tt(folder, "import run -o out.ttrace").code, 0);
}

// A limit on memory ends in a message, wherever it is reached first.
TEST(InputFiles, ALackOfMemoryIsNoAbort) {
  const test::TempFolder folder;
  const test::SmallSession session({test::small_step(0), test::small_step(1)});
  fs::copy_file(session.path, folder / "s.ttrace");
  for (const int mib : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    const Result result =
        run_tt(folder, "hot s.ttrace", std::format("ulimit -d {} &&", mib * 1024));
    EXPECT_NE(result.code, -1) << mib << ": ended by a signal. " << result.err;
    EXPECT_NE(result.code, 134) << mib << ": aborted. " << result.err;
  }
}

// A file name with control characters, in every message about it and in the output.
TEST(InputFiles, NamesAreEscaped) {
  const test::TempFolder folder;
  const test::SmallSession session({test::small_step(0), test::small_step(1)});
  const std::string name = "a\x1b[31m\x07\x9b.ttrace";
  fs::copy_file(session.path, folder.path() / name);
  std::ofstream(folder.path() / "b\x1b[31m.json") << "[]";
  const std::string quoted = "$'a\\x1b[31m\\x07\\x9b.ttrace'";
  // Other than those whose only output is of what is in the file.
  const std::vector<std::string> unnamed = {"show " + quoted, "hot " + quoted,
                                            "parse " + quoted + " --validate", "reuse " + quoted,
                                            "report " + quoted + " -o -"};
  std::vector<std::string> cases = {"hot $'none\\x1b[31m'",
                                    "compare " + quoted + " " + quoted,
                                    "gguf " + quoted,
                                    "import " + quoted + " -o x.ttrace",
                                    "disk s.ttrace " + quoted,
                                    "record -p x -m " + quoted + " -o y.ttrace",
                                    "record -f $'none\\x1b[31m' -o y.ttrace",
                                    "record -p x -o $'none\\x1b[31m/y.ttrace'",
                                    "bench-model --compare $'c\\x1b[31m.json' $'b\\x1b[31m.json'",
                                    "bench-model " + quoted};
  const std::size_t named = cases.size();
  cases.insert(cases.end(), unnamed.begin(), unnamed.end());
  fs::copy_file(source_path("tests/data/session-v7.ttrace"), folder / "s.ttrace");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& arguments = cases[i];
    std::ofstream(folder / "run.sh") << "cd " << folder.path().string() << "; " << kTestPaths.tt
                                     << " " << arguments << " >out 2>err";
    ASSERT_NE(std::system(("bash " + (folder / "run.sh").string()).c_str()), -1);
    const std::string text = contents(folder / "out") + contents(folder / "err");
    EXPECT_FALSE(text.empty()) << arguments;
    EXPECT_FALSE(text.contains('\x1b') || text.contains('\x07') || text.contains('\x9b'))
        << arguments << ": " << text;
    EXPECT_TRUE(i >= named || text.contains("\\x1b[31m")) << arguments << ": " << text;
  }
}

}  // namespace
}  // namespace tt
