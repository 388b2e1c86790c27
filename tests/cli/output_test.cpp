// Output paths (-o): never an input file, no existing file without --force, no incomplete files.
#include <gtest/gtest.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/verbs.h"
#include "tests/cli/tt_program.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

fs::path record_session(const test::TempFolder& folder) {
  EXPECT_EQ(run_tt(folder, "record -p Once -n 3 -t 1 --ignore-eos -o s.ttrace").code, 0);
  return folder / "s.ttrace";
}

TEST(Output, RejectsInputFiles) {
  const test::TempFolder folder;
  const fs::path session = record_session(folder);
  fs::copy_file(session, folder / "t.ttrace");
  ASSERT_EQ(run_tt(folder, "model small --layers 2 --splits 2 -q -o m.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "model small --layers 2 -q -o one.gguf").code, 0);
  std::ofstream(folder / "prompt.txt") << "Once upon a time";
  fs::create_symlink("s.ttrace", folder / "soft");
  fs::create_hard_link(session, folder / "hard");
  ASSERT_EQ(run_tt(folder, "pattern s.ttrace -o p.json").code, 0);
  fs::create_symlink("p.json", folder / "p-link");
  ASSERT_EQ(run_tt(folder, "export s.ttrace --format folder -o run").code, 0);
  std::ofstream(folder / "s.ttrace-wal") << "";
  const struct {
    const char *arguments, *input;
  } cases[] = {
      {"report s.ttrace -o s.ttrace --force", "s.ttrace"},
      {"report s.ttrace -o soft --force", "s.ttrace"},
      {"report soft -o ./s.ttrace --force", "s.ttrace"},
      {"pattern s.ttrace -o hard --force", "s.ttrace"},
      {"export s.ttrace --format csv -o s.ttrace --force", "s.ttrace"},
      {"export hard --format parquet -o soft --force", "s.ttrace"},
      {"import s.ttrace -o s.ttrace", "s.ttrace"},
      {"record -m m-00001-of-00002.gguf -p a -n 1 -t 1 -o m-00001-of-00002.gguf --force",
       "m-00001-of-00002.gguf"},
      {"record -m m-00001-of-00002.gguf -p a -n 1 -t 1 -o m-00002-of-00002.gguf --force",
       "m-00002-of-00002.gguf"},
      {"record -f prompt.txt -n 1 -t 1 -o prompt.txt --force", "prompt.txt"},
      {"record -f - -n 1 -t 1 -o prompt.txt --force <prompt.txt", "prompt.txt"},
      {"model small --layers 2 --pieces prompt.txt -o prompt.txt --force", "prompt.txt"},
      {"record --access-pattern p.json -p a -n 1 -t 1 -o p.json --force", "p.json"},
      {"record --access-pattern p.json -p a -n 1 -t 1 -o p-link --force", "p.json"},
      {"import run -o run/accesses.csv --force", "run/accesses.csv"},
      {"export s.ttrace --format csv -o s.ttrace-wal --force", "s.ttrace-wal"},
      {"report t.ttrace --compare s.ttrace -o s.ttrace --force", "s.ttrace"},
      {"values s.ttrace --safetensors s.ttrace --force", "s.ttrace"},
      {"values s.ttrace --op l_out-0 --npy soft --force", "s.ttrace"},
      {"weights m-00001-of-00002.gguf --fit 1GiB -o m-00002-of-00002.gguf --force",
       "m-00002-of-00002.gguf"},
      {"weights m-00001-of-00002.gguf --fit 1GiB --session s.ttrace -o soft --force", "s.ttrace"},
      {"debug m-00001-of-00002.gguf -x prompt.txt -o prompt.txt --force", "prompt.txt"},
      {"debug m-00001-of-00002.gguf -x prompt.txt -o m-00002-of-00002.gguf --force",
       "m-00002-of-00002.gguf"},
      {"record --chat --chat-template-file prompt.txt -p a -n 1 -t 1 -o prompt.txt --force",
       "prompt.txt"},
      {"debug --chat-template-file prompt.txt -o prompt.txt --force", "prompt.txt"},
      {"gguf reorder one.gguf --by-use s.ttrace -o s.ttrace --force", "s.ttrace"},
      {"gguf reorder one.gguf --by-use s.ttrace -o one.gguf --force", "one.gguf"},
  };
  // Each verb that writes a file it is given the name of.
  std::set<std::string> writing;
  for (const auto& c : cases)
    writing.insert(std::string(c.arguments, std::string_view(c.arguments).find(' ')));
  const std::set<std::string> others = {"analyze", "bench-model", "compare", "disk",   "generality",
                                        "graph",   "heads",       "hot",     "memory", "moe",
                                        "parse",   "reuse",       "show",    "sql",    "trend",
                                        "attach"};  // into a folder,
                                                    // under new names
  for (const cli::Verb& verb : cli::kVerbs)
    EXPECT_NE(writing.contains(verb.name), others.contains(verb.name)) << verb.name;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.arguments);
    const std::string before = contents(folder / c.input);
    const Result result = run_tt(folder, c.arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("is the same file as the input ")) << result.err;
    EXPECT_TRUE(result.err.contains(". Choose another name")) << result.err;
    EXPECT_EQ(contents(folder / c.input), before);
  }
  // A journal that does not exist yet: SQLite would take the output for one.
  for (const char* arguments : {"report s.ttrace --format md -o s.ttrace-journal",
                                "export soft --format csv -o ./s.ttrace-journal"}) {
    SCOPED_TRACE(arguments);
    const Result result = run_tt(folder, arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("is the same file as the input ")) << result.err;
    EXPECT_FALSE(fs::exists(folder / "s.ttrace-journal"));
  }
}

TEST(Output, NeverReplacesASessionThatIsBeingRecorded) {
  const test::TempFolder folder;
  record_session(folder);
  ASSERT_EQ(run_tt(folder, "export s.ttrace -o s.ndjson").code, 0);
  auto writer = SessionWriter::create(folder / "live.ttrace", test::SmallSession::small_info());
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  fs::create_symlink("live.ttrace", folder / "link");
  for (const char* arguments :
       {"import s.ndjson -o live.ttrace --force", "record -p a -n 1 -t 1 -o link --force",
        "report s.ttrace --format md -o live.ttrace --force",
        "export s.ttrace --format csv -o link --force"}) {
    SCOPED_TRACE(arguments);
    const Result result = run_tt(folder, arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("is being recorded")) << result.err;
  }
  // Nor what SQLite keeps beside it, or would take for that.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    for (const char* verb : {"report s.ttrace --format md", "model small --layers 2 -q"}) {
      const fs::path beside = folder.path() / (std::string("live.ttrace") + suffix);
      const std::string before = fs::exists(beside) ? contents(beside) : "";
      const Result rejected =
          run_tt(folder, std::format("{} --force -o live.ttrace{}", verb, suffix));
      EXPECT_EQ(rejected.code, 1) << verb << suffix;
      EXPECT_TRUE(rejected.err.contains("would be a journal of ")) << rejected.err;
      EXPECT_EQ(fs::exists(beside) ? contents(beside) : "", before);
    }
  }
  SessionInfo info = test::SmallSession::small_info();
  info.state = SessionState::Done;
  EXPECT_TRUE((*writer)->finish(info, {}).has_value());
  EXPECT_EQ(run_tt(folder, "show live.ttrace").code, 0);
}

TEST(Output, ReplacesExistingFilesOnlyWithForce) {
  const test::TempFolder folder;
  record_session(folder);
  ASSERT_EQ(run_tt(folder, "export s.ttrace -o s.ndjson").code, 0);
  const std::vector<std::string> replacing = {
      "report s.ttrace -o there", "pattern s.ttrace -o there",
      "export s.ttrace --format csv -o there", "record -p a -n 1 -t 1 -o there",
      "model small --layers 2 -q -o there"};
  for (const std::string& arguments : replacing) {
    SCOPED_TRACE(arguments);
    std::ofstream(folder / "there") << "existing";
    const Result rejected = run_tt(folder, arguments);
    EXPECT_EQ(rejected.code, 1);
    EXPECT_TRUE(rejected.err.contains("there already exists. Choose another name or use --force"))
        << rejected.err;
    EXPECT_EQ(contents(folder / "there"), "existing");
    const Result forced = run_tt(folder, arguments + " --force");
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_GT(fs::file_size(folder / "there"), 300u);
  }
  // tt import never replaces files.
  const Result imported = run_tt(folder, "import s.ndjson -o there");
  EXPECT_EQ(imported.code, 1);
  EXPECT_TRUE(imported.err.contains("there already exists")) << imported.err;
}

TEST(Output, DoesNotModifyNeighboringFiles) {
  const test::TempFolder folder;
  const fs::path session = record_session(folder);
  // The names of the temporary files for a.csv and run.
  fs::copy_file(session, folder / "a.csv-new");
  fs::create_directory(folder / "run-new");
  fs::copy_file(session, folder / "run-new" / "s.ttrace");
  const std::string bytes = contents(session);
  EXPECT_EQ(run_tt(folder, "export a.csv-new -o a.csv").code, 0);
  EXPECT_EQ(contents(folder / "a.csv-new"), bytes);
  EXPECT_EQ(run_tt(folder, "export run-new/s.ttrace -o run/ --format folder").code, 0);
  EXPECT_EQ(contents(folder / "run-new" / "s.ttrace"), bytes);
  EXPECT_TRUE(fs::exists(folder / "run" / "accesses.csv"));
  EXPECT_FALSE(fs::exists(folder / "a.csv-new2"));
  EXPECT_FALSE(fs::exists(folder / "run-new2"));
}

TEST(Output, FollowsLinksAndWritesPipes) {
  const test::TempFolder folder;
  record_session(folder);
  std::ofstream(folder / "old.md") << "old";
  fs::create_symlink("old.md", folder / "link.md");
  EXPECT_EQ(run_tt(folder, "report s.ttrace --format md -o link.md").code, 1);
  EXPECT_EQ(contents(folder / "old.md"), "old");
  EXPECT_EQ(run_tt(folder, "report s.ttrace --format md -o link.md --force").code, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "link.md"));
  const std::string report = contents(folder / "old.md");
  EXPECT_GT(report.size(), 1000u);
  EXPECT_EQ(run_tt(folder, "report s.ttrace --format md -o /dev/stdout | cat").out, report);
  EXPECT_EQ(run_tt(folder, "export s.ttrace --format csv -o /dev/null").code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Result full = run_tt(folder, "report s.ttrace -o /dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.err, "tt report: /dev/full: No space left on device\n");
  EXPECT_EQ(run_tt(folder, "model small --layers 2 -q --force -o /dev/null").code, 1);
  EXPECT_EQ(run_tt(folder, "record -p a -n 1 -t 1 --force -o /dev/null").code, 1);
}

// One rule for links in all verbs that write a file.
TEST(Output, LinkStandsForWhatItLeadsTo) {
  const test::TempFolder folder;
  record_session(folder);
  ASSERT_EQ(run_tt(folder, "export s.ttrace -o s.ndjson").code, 0);
  fs::create_directory(folder / "far");
  const std::vector<std::string> writing = {"report s.ttrace -o link",
                                            "pattern s.ttrace -o link",
                                            "export s.ttrace --format csv -o link",
                                            "import s.ndjson -o link",
                                            "record -p a -n 1 -t 1 -o link",
                                            "model small --layers 2 -q -o link"};
  for (const std::string& arguments : writing) {
    SCOPED_TRACE(arguments);
    fs::remove(folder / "link");
    fs::remove(folder / "far/file");
    fs::create_symlink("far/next", folder / "link");
    fs::remove(folder / "far/next");
    fs::create_symlink("file", folder / "far/next");
    const Result made = run_tt(folder, arguments);
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_TRUE(fs::is_symlink(folder / "far/next"));
    EXPECT_GT(fs::file_size(folder / "far/file"), 300u);
    std::ofstream(folder / "far/file") << "existing";
    const Result rejected = run_tt(folder, arguments);
    EXPECT_EQ(rejected.code, 1);
    EXPECT_TRUE(rejected.err.contains("link already exists")) << rejected.err;
    EXPECT_EQ(contents(folder / "far/file"), "existing");
    const Result forced = run_tt(folder, arguments + " --force");
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_GT(fs::file_size(folder / "far/file"), 300u);
    fs::remove(folder / "link");
    fs::create_symlink("nowhere/file", folder / "link");
    const Result nowhere = run_tt(folder, arguments + " --force");
    EXPECT_EQ(nowhere.code, 1);
    EXPECT_TRUE(nowhere.err.contains("nowhere does not exist")) << nowhere.err;
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
  }
  fs::remove(folder / "link");
  fs::create_symlink("far/run", folder / "link");
  const Result made = run_tt(folder, "export s.ttrace --format folder -o link");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(fs::exists(folder / "far/run/accesses.csv"));
  fs::create_symlink("nowhere/run", folder / "to-nowhere");
  const Result nowhere = run_tt(folder, "export s.ttrace --format folder -o to-nowhere");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_TRUE(nowhere.err.contains("nowhere does not exist")) << nowhere.err;
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
}

// SQLite would apply the journal of the replaced session to the new one.
TEST(Output, ReplacedSessionLeavesNoJournal) {
  const test::TempFolder folder;
  record_session(folder);
  ASSERT_EQ(run_tt(folder, "export s.ttrace -o s.ndjson").code, 0);
  for (const char* arguments :
       {"record -p a -n 1 -t 1 -o s.ttrace --force", "import s.ndjson -o s.ttrace --force"}) {
    SCOPED_TRACE(arguments);
    for (const char* journal : {"s.ttrace-journal", "s.ttrace-wal", "s.ttrace-shm"})
      std::ofstream(folder / journal) << "of another session";
    EXPECT_EQ(run_tt(folder, arguments).code, 0);
    for (const char* journal : {"s.ttrace-journal", "s.ttrace-wal", "s.ttrace-shm"})
      EXPECT_FALSE(fs::exists(folder / journal)) << journal;
    EXPECT_EQ(run_tt(folder, "parse --validate s.ttrace").code, 0);
  }
}

TEST(Output, ChecksPathBeforeReadingInput) {
  const test::TempFolder folder;
  fs::create_directory(folder / "here");
  // The session does not exist, but the output error is reported first.
  for (const char* verb : {"report none", "pattern none", "export none --format csv"}) {
    SCOPED_TRACE(verb);
    const Result in_folder = run_tt(folder, std::string(verb) + " -o here");
    EXPECT_EQ(in_folder.code, 1);
    EXPECT_TRUE(in_folder.err.contains("here is a folder")) << in_folder.err;
    const Result nowhere = run_tt(folder, std::string(verb) + " -o nowhere/out");
    EXPECT_EQ(nowhere.code, 1);
    EXPECT_TRUE(nowhere.err.contains("nowhere does not exist")) << nowhere.err;
  }
}

TEST(Output, DashIsStandardOutputIfSupported) {
  const test::TempFolder folder;
  record_session(folder);
  std::ofstream(folder / "-") << "existing";  // a file named "-" is ignored
  EXPECT_EQ(run_tt(folder, "report s.ttrace -o -").out, run_tt(folder, "report s.ttrace").out);
  EXPECT_EQ(run_tt(folder, "pattern s.ttrace -o -").out,
            run_tt(folder, "pattern s.ttrace --json").out);
  const Result csv = run_tt(folder, "export s.ttrace --format csv -o -");
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_GT(csv.out.size(), 1000u);
  for (const char* no_stdout :
       {"export s.ttrace -o - --format folder",
        "export s.ttrace -o - --format parquet --part-rows 10", "import s.ndjson -o -",
        "record -p a -n 1 -o -", "model small -o -"}) {
    SCOPED_TRACE(no_stdout);
    const Result result = run_tt(folder, no_stdout);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("cannot go to standard output")) << result.err;
  }
  EXPECT_EQ(contents(folder / "-"), "existing");
}

}  // namespace
}  // namespace tt
