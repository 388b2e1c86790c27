// tt record.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Record : public ::testing::Test {
 protected:
  Result record(const std::string& arguments) { return run_tt(folder, "record " + arguments); }
  SessionReader open(const char* name) const {
    auto reader = SessionReader::open(folder.path() / name);
    EXPECT_TRUE(reader.has_value());
    return *std::move(reader);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
  }
  test::TempFolder folder;
};

TEST_F(Record, WritesSessionAndStreamsAnswer) {
  const Result result = record("-p 'Once upon a time' -n 12 --temp 0 --ignore-eos -o a.ttrace");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(result.out.empty());
  EXPECT_NE(result.err.find("12 generated (length)"), std::string::npos) << result.err;
  const SessionReader reader = open("a.ttrace");
  EXPECT_EQ(reader.info()->state, SessionState::Done);
  std::string text;
  for (const Token& token : *reader.tokens(0, 1000))
    if (token.generated) text += token.text;
  EXPECT_EQ(result.out, text + "\n");
  EXPECT_TRUE(check_session(folder.path() / "a.ttrace")->empty());
  EXPECT_EQ(files(), 3u);  // the session, out and err; no temporary file
}

TEST_F(Record, ReadsPromptsFromFilesAndTokens) {
  std::ofstream(folder.path() / "prompt.txt") << "The wind";
  EXPECT_EQ(record("-f prompt.txt -n 2 -o f.ttrace").code, 0);
  EXPECT_EQ(open("f.ttrace").info()->title, "The wind");
  EXPECT_EQ(record("-f - -n 2 -o s.ttrace < prompt.txt").code, 0);
  EXPECT_EQ(open("s.ttrace").info()->title, "The wind");
  EXPECT_EQ(record("--tokens 300,301,302 -n 2 --ignore-eos -o t.ttrace").code, 0);
  EXPECT_EQ(open("t.ttrace").tokens(0, 3)->at(2).id, 302);
  EXPECT_EQ(record("-p Hello --chat -n 2 --level minimal -q -o c.ttrace").code, 0);
  EXPECT_EQ(open("c.ttrace").info()->level, Level::Minimal);
}

// What the load did not do as requested is printed, recorded as a fact and shown.
TEST_F(Record, WarnsOfOptionsWithoutEffect) {
  const struct {
    const char *options, *warning;
  } cases[] = {
      {"-ngl 9", "-ngl 9 has no effect: this llama.cpp has no device to offload layers to"},
      {"-c 300", "The context has 512 tokens, not 300 (-c): llama.cpp rounds it up"},
      {"-c 512", ""},
      {"-m bert.gguf -c 5000", "The context has 512 tokens, not 5000 (-c): the model has no more"},
  };
  ASSERT_EQ(run_tt(folder, "model bert -q -o bert.gguf").code, 0);
  for (const auto& [options, warning] : cases) {
    SCOPED_TRACE(options);
    const Result result =
        run_tt(folder, std::format("record -p x -n 1 {} --force -o a.ttrace", options));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err.contains("tt record: "), *warning != '\0') << result.err;
    EXPECT_TRUE(result.err.contains(warning)) << result.err;
    const std::string shown = run_tt(folder, "show a.ttrace").out;
    EXPECT_EQ(shown.contains("\nwarning "), *warning != '\0') << shown;
    EXPECT_TRUE(shown.contains(warning)) << shown;
    const std::string report = run_tt(folder, "report a.ttrace --format md").out;
    EXPECT_TRUE(report.contains(warning)) << report;
    const auto info = open("a.ttrace").info();
    ASSERT_TRUE(info.has_value());
    EXPECT_TRUE(info->fact("load.warning").contains(warning)) << info->fact("load.warning");
    // What advice needs to know of the machine.
    EXPECT_GT(info->fact_number("host.memory_available_bytes").value_or(0), 0U);
    EXPECT_LE(info->fact_number("host.memory_available_bytes"),
              info->fact_number("host.memory_limit_bytes"));
    EXPECT_EQ(info->fact("context.memory_budget"), "off");
  }
}

// How the weights are loaded and where they are does not change the output; the session says it.
TEST_F(Record, LoadModesAndPlacementKeepTheOutput) {
  ASSERT_EQ(run_tt(folder, "model moe --layers 3 -q -o m.gguf").code, 0);
  const auto with = [&](const std::string& options) {
    const Result result = run_tt(
        folder, std::format("record -m m.gguf -p 'Once upon' -n 12 --temp 0 --ignore-eos -t 1 "
                            "--no-repack --force -o a.ttrace {}",
                            options));
    EXPECT_EQ(result.code, 0) << options << result.err;
    return result.out;
  };
  const std::string expected = with("");
  EXPECT_FALSE(expected.empty());
  const struct {
    const char *options, *fact, *value;
  } cases[] = {{"--load-mode none", "context.mmap", "off"},
               {"--load-mode mmap", "context.mmap", "on"},
               {"--load-mode mlock", "context.mlock", "on"},
               {"--load-mode mmap+mlock", "context.mlock", "on"},
               {"--load-mode dio", "context.mmap", "off"},
               {"--lazy-mode on", "context.mmap", "on"},
               {"-ot exps=CPU", "context.mmap", "on"},
               {"-ncmoe 2", "context.mmap", "on"}};
  for (const auto& [options, fact, value] : cases) {
    EXPECT_EQ(with(options), expected) << options;
    EXPECT_EQ(open("a.ttrace").info()->fact(fact), value) << options;
  }
  // Without a GPU backend, llama.cpp has no such cache.
  const Result cached = record("-m m.gguf -p x -n 1 --moe-cache-mib 8 -o b.ttrace");
  EXPECT_EQ(cached.code, 1);
  EXPECT_TRUE(cached.err.contains("--moe-cache-mib needs a GPU backend")) << cached.err;
}

// The mlock limit of normal users is smaller than most models; root has no limit.
TEST_F(Record, ReportsFailedMemoryLock) {
  const std::string limited =
      std::string("ulimit -l 64 && ") + (geteuid() == 0 ? "setpriv --bounding-set=-ipc_lock" : "");
  for (const bool mmap : {true, false}) {
    SCOPED_TRACE(mmap);
    const Result result = run_tt(
        folder,
        std::format("record -p x -n 1 --mlock {} -o {}.ttrace", mmap ? "" : "--no-mmap", mmap),
        limited);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(result.err.contains("ulimit -l unlimited")) << result.err;
    const auto info = open(mmap ? "true.ttrace" : "false.ttrace").info();
    ASSERT_TRUE(info.has_value());
    EXPECT_TRUE(info->fact("context.mlock").starts_with("off: only "))
        << info->fact("context.mlock");
  }
}

TEST_F(Record, KeepsExistingFile) {
  std::ofstream(folder.path() / "a.ttrace") << "mine";
  const Result kept = record("-p x -n 1 -o a.ttrace");
  EXPECT_EQ(kept.code, 1);
  EXPECT_NE(kept.err.find("--force"), std::string::npos) << kept.err;
  EXPECT_EQ(contents(folder / "a.ttrace"), "mine");
  EXPECT_EQ(record("-p x -n 1 --force -o a.ttrace").code, 0);
  EXPECT_TRUE(open("a.ttrace").info().has_value());
}

TEST_F(Record, RejectsPromptFileThatIsNotUtf8) {
  std::ofstream(folder.path() / "latin1.txt") << "na\xefve";
  const Result result = record("-f latin1.txt -o a.ttrace");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.err.contains("latin1.txt is not valid UTF-8: invalid byte 0xef at offset 2"))
      << result.err;
  EXPECT_FALSE(fs::exists(folder / "a.ttrace"));
}

TEST_F(Record, AcceptsAnyStopTextAndLlamaCppNames) {
  const Result result = record(
      "-p Once --stop '[/INST]' --stop '[a,b]' --stop '{}' --temperature 0 --predict 1 -nr "
      "-o a.ttrace");
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<std::string> stops;
  for (const auto& [name, value] : open("a.ttrace").info()->facts)
    if (name.starts_with("request.stop.")) stops.push_back(value);
  EXPECT_EQ(stops, (std::vector<std::string>{"[/INST]", "[a,b]", "{}"}));
}

TEST_F(Record, PromptFileOptionOverridesPromptVariable) {
  std::ofstream(folder.path() / "p.txt") << "The wind";
  const Result result =
      run_tt(folder, "record -f p.txt -n 1 -o a.ttrace", "TT_PROMPT=x TT_LEVEL=minimal");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(open("a.ttrace").info()->title, "The wind");
}

TEST_F(Record, ReportsErrorsAndLeavesNoFiles) {
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"-p x", 2, "--output"},
      {"-p x -o a.ttrace --nope", 2, "--nope"},
      {"-p x --tokens 1 -o a.ttrace", 2, "excludes"},
      {"-o a.ttrace", 2, "a prompt is required"},
      {"-p '' -o a.ttrace", 2, "empty"},
      {"--tokens 1 --chat -o a.ttrace", 2, "excludes"},
      {"--tokens -1 -o a.ttrace", 2, "--tokens: must be"},
      {"-p $(printf 'ab\\377') -o a.ttrace", 2,
       "is not valid UTF-8: invalid byte 0xff at offset 2"},
      {"-p x --stop '' -o a.ttrace", 2, "--stop: must not be empty"},
      {"-p x --temp nan -o a.ttrace", 2, "--temp: must be a number from 0 to 100"},
      {"-p x -t 513 -o a.ttrace", 2, "--threads: must be a whole number from 0 to 512"},
      {"-p x -c 16777217 -o a.ttrace", 2, "--ctx-size: must be"},
      {"-p x -o .", 1, "is a folder"},
      {"-p x -o . --force", 1, "is a folder"},
      {"-p x -o ./ --force", 1, "is a folder"},
      {"-p x -o /dev/null --force", 1, "is not a regular file"},
      {"-p x -o $(printf '%0300d' 1)", 1, "name too long"},
      {"-f out -o a.ttrace", 1, "out is empty"},
      {"-f . -o a.ttrace", 1, ". cannot be read: it is a folder"},
      {"-f absent.txt -o a.ttrace", 1, "absent.txt"},
      {"-p x -m absent.gguf -o a.ttrace", 1, "absent.gguf"},
      {"-p x -o no/such/folder/a.ttrace", 1, "no/such/folder"},
      {"-p x --grammar '(' -o a.ttrace", 1, "rammar"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Result result = record(c.arguments);
    EXPECT_EQ(result.code, c.code);
    EXPECT_NE(result.err.find(c.message), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(files(), 2u);
  }
  // llama.cpp's own messages, and the grammar, are not printed.
  EXPECT_EQ(record("-p x --grammar 'root ::= other' -o a.ttrace").err,
            "tt record: The grammar does not parse: Undefined rule identifier 'other'. It must be "
            "GBNF and have a rule named root, as in root ::= \"yes\" | \"no\".\n");
}

// Starts `tt record -o a.ttrace` with a long answer and waits for the first output. It prints into
// files of its own: those of run_tt() are `out` and `err`.
pid_t start_long_recording(const test::TempFolder& folder) {
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(folder.path().c_str()) != 0 || std::freopen("recorder.out", "w", stdout) == nullptr ||
        std::freopen("recorder.err", "w", stderr) == nullptr)
      _exit(99);
    execl(kTestPaths.tt, kTestPaths.tt, "record", "-p", "Once", "-n", "4000", "--ignore-eos", "-o",
          "a.ttrace", nullptr);
    _exit(99);
  }
  EXPECT_TRUE(test::wait_until([&] { return contents(folder / "recorder.out").size() >= 20; }));
  return child;
}

int end_with(pid_t child, int signal) {
  kill(child, signal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(Record, InterruptFinishesTheFile) {
  const int status = end_with(start_long_recording(folder), SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130) << contents(folder / "recorder.err");
  EXPECT_EQ(open("a.ttrace").info()->state, SessionState::Cancelled);
  EXPECT_TRUE(check_session(folder / "a.ttrace")->empty());
}

// The next command turns the remaining files into one valid session file.
TEST_F(Record, NextCommandRecoversFileOfKilledRecorder) {
  const pid_t child = start_long_recording(folder);
  fs::path file;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".ttrace") file = entry.path();
  ASSERT_FALSE(file.empty());
  const std::string show = "show " + file.filename().string();
  const Result before = run_tt(folder, show);
  EXPECT_TRUE(before.out.contains("running")) << before.out;
  EXPECT_EQ(before.err, "") << "it is still being recorded";

  end_with(child, SIGKILL);
  const Result after = run_tt(folder, show);
  EXPECT_EQ(after.code, 0);
  EXPECT_TRUE(after.err.contains("was not finished; recovered ")) << after.err;
  EXPECT_TRUE(after.out.contains("recovered")) << after.out;
  EXPECT_TRUE(check_session(file)->empty());
  for (const char* beside : {"-wal", "-shm", "-reserve"})
    EXPECT_FALSE(fs::exists(file.string() + beside)) << beside;
  EXPECT_EQ(run_tt(folder, show).err, "") << "recovers only once";
  // The size of the compute buffers is recorded at the end.
  EXPECT_TRUE(after.out.contains("At least ")) << after.out;
  EXPECT_TRUE(after.out.contains("of compute buffers, whose size was not recorded")) << after.out;
}

// The sentence on RAM, of sessions that have the size of the compute buffers: those that
// were recorded to the end, imported ones of such a log, and the example of the page.
TEST_F(Record, RamInAllIsExactWhereTheBuffersAreRecorded) {
  ASSERT_EQ(record("-p Once -n 4 -o a.ttrace").code, 0);
  ASSERT_EQ(run_tt(folder, "export a.ttrace -q -o a.ndjson").code, 0);
  ASSERT_EQ(run_tt(folder, "import a.ndjson -q -o imported.ttrace").code, 0);
  fs::copy_file(source_path("webui/public/example.ttrace"), folder / "example.ttrace");
  for (const char* file : {"a.ttrace", "imported.ttrace", "example.ttrace"}) {
    const std::string shown = run_tt(folder, std::string("show ") + file).out;
    EXPECT_TRUE(
        shown.contains(" of RAM are enough, so that each weight is read from the disk only once: "))
        << shown;
    EXPECT_FALSE(shown.contains("At least ")) << shown;
  }
}

}  // namespace
}  // namespace tt
