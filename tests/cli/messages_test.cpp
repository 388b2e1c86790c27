// What tt says about mistakes and about results without rows: what is wrong and what to do.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

// Recorded once: s.ttrace at level detailed, with one generated token; m.ttrace at level minimal.
class Messages : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    sessions_ = std::make_unique<test::TempFolder>();
    const std::string record = "record -p 'Once upon a time' -t 1 --ignore-eos --seed 1 -q ";
    ASSERT_EQ(run("" + record + "-n 2 -o s.ttrace").code, 0);
    ASSERT_EQ(run("" + record + "-n 3 --level minimal -o m.ttrace").code, 0);
    ASSERT_EQ(run("export s.ttrace --format folder -o run -q").code, 0);
    ASSERT_EQ(run("export s.ttrace -o s.ndjson -q").code, 0);
  }
  static void TearDownTestSuite() { sessions_.reset(); }
  static std::filesystem::path path(const std::string& name) { return sessions_->path() / name; }
  static Result run(const std::string& arguments) { return run_tt(*sessions_, arguments); }

  struct Case {
    const char* arguments;
    int code;
    const char* message;  // part of stderr
  };
  static void expect_messages(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.arguments);
      const Result result = run(c.arguments);
      EXPECT_EQ(result.code, c.code) << result.out;
      EXPECT_TRUE(result.err.contains(c.message)) << result.err << "expected: " << c.message;
    }
  }

 private:
  static inline std::unique_ptr<test::TempFolder> sessions_;
};

TEST_F(Messages, SuggestVerbsOptionsAndValues) {
  expect_messages({
      {"hott s.ttrace", 2, "unknown verb 'hott'. Did you mean hot?"},
      {"show s.ttrace -j", 2, "unknown option -j. Did you mean --json?"},
      {"attach --live -- llama-server -m x.gguf", 2,
       "--live requires a value before --: Show the sessions in the browser while they are "
       "recorded, and when the program has ended until Ctrl+C: port on this machine, 0 for any"},
      {"help prase", 2, "unknown verb 'prase'. Did you mean parse?"},
      {"parse s.ttrace --tensr x", 2, "unknown option --tensr. Did you mean --tensor?"},
      {"parse s.ttrace --component atention", 2, "not 'atention'. Did you mean attention?"},
      {"parse s.ttrace other.ttrace", 2, "unexpected argument 'other.ttrace'"},
      {"model smal -o q.gguf", 2, "Did you mean small?"},
      {"model moe --experts 4 --experts-used 9 -o q.gguf", 2, "9 is more than experts (4)"},
      {"--sessions s.ttrace", 2, "unknown option --sessions before the verb. A verb comes first"},
      {"parse s.ttrace --layers 5-2", 2, "\"5-2\" is not a valid range of layers: it ends before"},
      {"graph s.ttrace --template 0", 1, "the session has no template 0: it has "},
      {"export s.ttrace -o x.csv --level verbose", 1, "--level requires --format ndjson"},
      {"model small --quant q4_km -o q.gguf", 2, "Did you mean q4_k or q4_k_m?"},
  });
  EXPECT_EQ(run("help").code, 0);
  EXPECT_TRUE(run("help hot").out.contains("tt hot")) << run("help hot").out;
}

TEST_F(Messages, SqlListsTablesAndColumns) {
  expect_messages({
      {"sql s.ttrace 'SELECT * FROM acces'", 1, "no such table: acces. Did you mean access"},
      {"sql s.ttrace 'SELECT * FROM acces'", 1, "Tables: access, access_total, edge"},
      {"sql s.ttrace 'SELECT tensr_name FROM access'", 1,
       "no such column: tensr_name. Did you mean tensor_name"},
      {"sql s.ttrace 'SELECT t.idx FROM token AS t'", 1, "Columns of token: "},
      {"sql s.ttrace 'SELECT speed FROM token_latency'", 1, "Columns of token_latency: step, "},
      {"sql s.ttrace 'SELECT zzzzzzzz'", 1, "no such column: zzzzzzzz.\n"},
  });
}

TEST_F(Messages, FiltersNameWhatExists) {
  expect_messages({
      {"parse s.ttrace --tensor atn_q", 1,
       "The session has no tensor \"atn_q\". Did you mean blk.0.attn_q.weight"},
      {"parse s.ttrace --tensor zzzzzzzz", 1, "The session has no tensor \"zzzzzzzz\"\n"},
      {"parse s.ttrace --op MULMAT", 1, "The session has no op \"MULMAT\". Did you mean MUL_MAT"},
      {"parse s.ttrace --layers 77", 1, "The model has no layer 77: it has 6 layers"},
      {"parse s.ttrace --expert 3", 1, "The model has no experts."},
      {"parse s.ttrace --from-step 9", 1, "The session has no step 9: it has 2 steps"},
      {"hot s.ttrace --from-step 9", 1, "The session has no step 9: it has 2 steps"},
      {"hot s.ttrace --from-token 900", 1, "The session has no token 900: it has "},
      // Each exists, but not together.
      {"parse s.ttrace --tensor attn_q --source kv", 1,
       "no access passes all filters: tensor attn_q, source kv."},
  });
  EXPECT_EQ(run("parse s.ttrace --tensor attn_q --source kv").out, "");
}

TEST_F(Messages, ExpertsOfTheModelAreCounted) {
  ASSERT_EQ(run("model moe --layers 2 -o moe.gguf -q").code, 0);
  ASSERT_EQ(run("record -m moe.gguf --tokens 1,2 -n 2 -t 1 --ignore-eos -o e.ttrace -q").code, 0);
  expect_messages(
      {{"parse e.ttrace --expert 99", 1, "The model has no expert 99: it has 8 experts"},
       {"parse e.ttrace --expert 1 --limit 1", 0, ""}});
}

TEST_F(Messages, RowsNameTimeTokenPhaseAndOp) {
  const Result rows = run("parse s.ttrace --tensor blk.0.attn_q.weight");
  ASSERT_EQ(rows.code, 0) << rows.err;
  const std::string header = rows.out.substr(0, rows.out.find('\n'));
  for (const char* column : {"step", "time", "token", "phase", "op", "operation", "tensor"})
    EXPECT_TRUE(header.contains(column)) << header;
  EXPECT_TRUE(rows.out.contains("prompt") && rows.out.contains("generate")) << rows.out;
  EXPECT_TRUE(rows.out.contains("MUL_MAT") && rows.out.contains("ms")) << rows.out;
}

TEST_F(Messages, OtherFilesNameTheirVerb) {
  expect_messages({
      {"show run", 1, "run is a run folder. Create a session from it: tt import run -o"},
      {"parse .", 1, "is a folder, not a session file. tt import creates"},
      {"hot s.ndjson", 1, "s.ndjson is a log, not a session. Create a session from it: tt import"},
  });
  const Result model = run("show " + std::string(kTestPaths.bundled_model));
  EXPECT_TRUE(model.err.contains("is a model, not a session. tt gguf")) << model.err;
}

TEST_F(Messages, MissingAndWrongFilesNameTheNextStep) {
  const auto write = [](const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
  };
  write("empty.ttrace", "");
  write("notes.txt", "hello\n");
  write("t.csv", "step,op\n");
  std::filesystem::create_directory(path("folder"));
  std::filesystem::copy_file(path("s.ttrace"), path("cut.ttrace"));
  std::filesystem::resize_file(path("cut.ttrace"), 20'000);
  ASSERT_EQ(run("model small -o small.gguf -q").code, 0);
  ASSERT_EQ(
      std::system(std::format("head -n 2 {0} > {1}; head -n 3 {0} | tail -n 1 | head -c 9 >> {1}",
                              path("s.ndjson").string(), path("cut.ndjson").string())
                      .c_str()),
      0);
  expect_messages({
      {"show ss.ttrace", 1, "ss.ttrace does not exist. Did you mean s.ttrace"},
      {"show empty.ttrace", 1, "empty.ttrace is empty. Copy it again, or record another"},
      {"show cut.ttrace", 1, "cut.ttrace is cut off: it has 20000 of "},
      {"show notes.txt", 1, "is not a session file. tt record writes session files"},
      {"import s.ttrace -o x.ttrace", 1, "s.ttrace is a session already. tt show"},
      {"import small.gguf -o x.ttrace", 1, "small.gguf is a model. tt gguf"},
      {"import folder -o x.ttrace", 1,
       "folder is not a run folder: it has no trace_metadata.json. tt export --format folder "
       "writes one."},
      {"import s.ndjsn -o x.ttrace", 1, "s.ndjsn does not exist. Did you mean s.ndjson"},
      {"import t.csv -o x.ttrace", 1, "Logs (NDJSON) and run folders can be imported"},
      {"sql 'SELECT 1' s.ttrace", 1, "the session file comes first: tt sql s.ttrace 'SELECT ...'"},
      {"sql s.ttrace notes.txt", 1, "Run its text: tt sql s.ttrace - < notes.txt"},
      {"import cut.ndjson -o x.ttrace", 1, "cut.ndjson:3: The line is not a JSON object, unlike"},
      {"gguf s.ttrace", 1, "s.ttrace: a session file, not a model (GGUF). tt show"},
      {"record -p x -m s.ttrace -o x.ttrace", 1, "a session file, not a model (GGUF). tt show"},
      {"memory", 2, "a session file or --model is required"},
      {"memory small.gguf", 1, "small.gguf is a model: tt memory --model small.gguf"},
      {"memory --model smal.gguf", 1, "smal.gguf does not exist. Did you mean small.gguf"},
  });
}

TEST_F(Messages, OptionsOfOtherProgramsAndVerbsAreExplained) {
  expect_messages({
      {"serve", 2, "unknown verb 'serve'. The server is a program of its own: tt-server"},
      {"bench model.gguf", 2, "tt: unknown verb 'bench'. Did you mean bench-model?"},
      {"record -hf a/b -o x.ttrace", 2, "No model is downloaded. Give the path of a GGUF file"},
      {"record -p x --parallel 2 -o x.ttrace", 2, "A model runs one request at a time"},
      {"record -p x --grammar-file g -o x.ttrace", 2, "--grammar \"$(cat FILE)\""},
      {"record -p x --lora a.gguf -o x.ttrace", 2,
       "unknown option --lora. Adapters are not supported. Merge it into the model"},
      {"record -p x -ctxcp 3 -o x.ttrace", 2, "unknown option --ctx-checkpoints. No checkpoints"},
      {"record -p x -kvu -o x.ttrace", 2, "A model runs one request at a time"},
      {"record -p x --spec-type none -o x.ttrace", 2, "Speculative decoding is not supported"},
      {"record -p x -fa -c 512 -o x.ttrace", 2,
       "--flash-attn: must be one of on, off, auto, not '-c'"},
      {"record -p x -m --mlock -o x.ttrace", 2, "-m: requires a value, but the option --mlock"},
      {"record -p -n 3 -o x.ttrace", 2, "A value that looks like an option: --prompt=-n"},
      {"record -p x --ot a=CPU -o x.ttrace", 2, "unknown option --ot. Did you mean -ot?"},
      {"record hello -o x.ttrace", 2, "unexpected argument 'hello'. A prompt is given with -p"},
      {"hot s.ttrace --kv", 2, "unknown option --kv. It is an option of tt heads"},
      {"hot s.ttrace --prot 80", 2, "unknown option --prot."},
      {"hot s.ttrace --phase decode", 2, "not 'decode'. Did you mean generate?"},
      {"reuse s.ttrace other.ttrace", 2, "'other.ttrace': tt reuse takes only file"},
      {"compare s.ttrace", 2, "right is required: Session file to compare with"},
      {"record -p x --memory-budget 8 -o x.ttrace", 2, "is 8 bytes. Write it with a unit"},
      {"record -p x -ot 'a[=CPU' -o x.ttrace", 2, "An example of REGEX=BUFFER: ffn_.*_exps=CPU"},
  });
}

TEST_F(Messages, ImportReplacesAFileOnlyWhenForced) {
  ASSERT_EQ(run("import s.ndjson -o i.ttrace").code, 0);
  expect_messages({{"import s.ndjson -o i.ttrace", 1,
                    "already exists. Choose another name or use "
                    "--force."},
                   {"import run -o i.ttrace --force", 0, ""},
                   {"import s.ttrace -o i.ttrace --force", 1, ""}});
  EXPECT_EQ(run("parse i.ttrace --validate").code, 0) << "a failed import keeps the file";
}

TEST_F(Messages, ContradictionsAreRejected) {
  expect_messages({
      {"record -p x --level off -o off.ttrace", 2, "--level off records nothing"},
      {"record -p x", 2, "--output is required"},
      {"record -p x -n 1 --level off -q", 0, ""},
      {"report s.ttrace -o r.pdf", 1, "For a PDF write report.html, open it in a browser"},
      {"report s.ttrace -o r.txt", 1, "a report is html, md or json"},
      {"hot s.ttrace --hot 60 --cold 60", 1, "--hot 60 and --cold 60 overlap"},
      {"hot s.ttrace --hot 60 --cold 40", 0, ""},
  });
  EXPECT_EQ(run("report s.ttrace -o r.txt --format md").code, 0);
}

TEST_F(Messages, MinimalSessionNamesWhatIsMissingInEveryVerb) {
  const char* const kMinimal = "level minimal, which stores steps and tokens but no accesses";
  for (const std::string verb :
       {"parse m.ttrace", "parse m.ttrace --stats", "hot m.ttrace", "heads m.ttrace",
        "reuse m.ttrace", "show m.ttrace", "compare m.ttrace s.ttrace",
        "sql m.ttrace 'SELECT count(*) FROM access'", "export m.ttrace --format csv -o -",
        "export m.ttrace --format json -o -", "export m.ttrace --format ndjson -o -",
        "export m.ttrace --format parquet -o m.parquet", "export m.ttrace --format arrow -o -",
        "export m.ttrace --format chrome -o -", "export m.ttrace --format perfetto -o -",
        "export m.ttrace --format folder -o mrun"}) {
    SCOPED_TRACE(verb);
    const Result result = run(verb);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(result.err.contains(kMinimal)) << result.err;
  }
  expect_messages({{"heads m.ttrace --kv", 1, kMinimal},
                   {"moe m.ttrace", 1, kMinimal},
                   {"graph m.ttrace", 1, "Record it with --level detailed"},
                   {"pattern m.ttrace", 1, "more than one token, at the level detailed"},
                   {"sql m.ttrace 'SELECT count(*) FROM step'", 0, ""}});
  EXPECT_EQ(run("sql m.ttrace 'SELECT count(*) FROM step'").err, "");
  // No tables without rows.
  EXPECT_EQ(run("parse m.ttrace").out, "");
  EXPECT_FALSE(run("parse m.ttrace --stats").out.contains("of all bytes"));
  EXPECT_FALSE(run("show m.ttrace").out.contains("template"));
  EXPECT_FALSE(run("heads m.ttrace").out.contains("bytes/head"));
  EXPECT_EQ(run("heads m.ttrace --kv").out, "");
}

// Each section of a report has a text or a table with rows.
TEST_F(Messages, ReportsHaveNoEmptySections) {
  for (const char* session : {"s", "m"}) {
    SCOPED_TRACE(session);
    const Result report = run(std::string("report ") + session + ".ttrace --format md");
    ASSERT_EQ(report.code, 0) << report.err;
    std::string heading;
    std::size_t lines = 0, tables = 0, rows = 0;
    std::istringstream text(report.out + "\n## end\n");
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("## ")) {
        EXPECT_TRUE(heading.empty() || lines > 0) << heading;
        EXPECT_TRUE(tables == 0 || rows > 2 * tables) << heading << ": a table without rows";
        heading = line;
        lines = tables = rows = 0;
      } else {
        lines += !line.empty();
        rows += line.starts_with("|");
        tables += line.starts_with("| ---");
      }
    }
  }
}

TEST_F(Messages, HeadingsSayWhatTheyAreOf) {
  const Result compared = run("compare m.ttrace s.ttrace");
  for (const char* heading :
       {"left:  m.ttrace", "right: s.ttrace", "generate step", "accesses left", "accesses right",
        "bytes left", "bytes right", "bytes right/left", "time left", "time right",
        "time right-left", "time right/left"})
    EXPECT_TRUE(compared.out.contains(heading)) << heading << "\n" << compared.out;
  const Result heads = run("heads s.ttrace");
  for (const char* heading : {"Bytes of each attention head in each weight", "ranges/head",
                              "weight's file offset", "weight's reads", "weight's bytes read"})
    EXPECT_TRUE(heads.out.contains(heading)) << heading << "\n" << heads.out;
  const Result kv = run("heads s.ttrace --kv");
  for (const char* heading : {"Bytes of the KV cache that each step and layer read and wrote",
                              "read: fresh", "read: cached", "read: other", "written"})
    EXPECT_TRUE(kv.out.contains(heading)) << heading << "\n" << kv.out;
}

TEST_F(Messages, OneIsSingular) {
  ASSERT_EQ(run("record -p Once -n 1 -t 1 --ignore-eos -o one.ttrace").code, 0);
  const std::regex plural(
      "(^|[^0-9.])1 (ops|steps|tokens|accesses|weights|layers|heads|reads|parts|"
      "experts|graphs|prompt tokens|op end times|token ids|rows|bytes)");
  for (const std::string verb :
       {"show one.ttrace", "parse one.ttrace --stats", "parse one.ttrace --validate",
        "reuse one.ttrace", "heads one.ttrace", "graph one.ttrace --collapse",
        "report one.ttrace --format md", "compare one.ttrace one.ttrace",
        "record -p Once -n 1 -t 1 -o two.ttrace --force", "import s.ndjson -o j.ttrace --force"}) {
    const Result result = run(verb);
    for (const std::string& text : {result.out, result.err}) {
      std::smatch found;
      EXPECT_FALSE(std::regex_search(text, found, plural)) << verb << ": " << found.str();
    }
  }
}

}  // namespace
}  // namespace tt
