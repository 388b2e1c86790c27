// Exported files read by pandas, pyarrow, DuckDB, protoc and Graphviz.
#include <gtest/gtest.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "bench/exchange/duckdb_rows.h"
#include "tests/api/exchange/export_check.h"
#include "tests/support/command_output.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using namespace tt::exchange;
using nlohmann::json;

std::string python_command(const char* name) {
  return "python3 " + source_path("tests/api/exchange/") + name;
}

json numbers_of(const FiveTotals& t) {
  return {t.accesses, t.read, t.written, t.from_file, t.of_experts};
}

// The session is recorded once; each test exports it.
class ExternalTools : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static TracedModel model(generated_model({.shape = "moe"}));
    run_ = new TracedModel::Run(model.run(greedy_tokens(9, 12)));
  }
  static void TearDownTestSuite() { delete run_; }

  std::filesystem::path write(Format format) const {
    const auto path = folder_.path() / ("s" + std::string(format_info(format).extension));
    std::ofstream(path, std::ios::binary) << export_text(reader_, {.format = format});
    return path;
  }
  // Output of DuckDB: one line per row, fields separated by commas.
  std::string duckdb(const std::string& sql) const {
    std::ofstream(folder_ / "q.sql") << sql;
    return command_output(
        std::format("duckdb -csv -noheader -bail < {}", (folder_ / "q.sql").string()));
  }
  static std::string totals_sql(const std::string& table) {
    return "SELECT count(*), coalesce(sum(size_bytes) FILTER (NOT write), 0), "
           "coalesce(sum(size_bytes) FILTER (write), 0), "
           "coalesce(sum(size_bytes) FILTER (file_offset IS NOT NULL), 0), count(expert_id) "
           "FROM " +
           table;
  }
  static std::string line_of(const FiveTotals& t) {
    return std::format("{},{},{},{},{}\n", t.accesses, t.read, t.written, t.from_file,
                       t.of_experts);
  }

  static inline TracedModel::Run* run_ = nullptr;
  const SessionReader reader_ = run_->reader();
  const TempFolder folder_;
};

TEST_F(ExternalTools, PandasAndPyarrowTotalsMatch) {
  const json output = json::parse(
      command_output(python_command("read_parquet.py ") + write(Format::Parquet).string()));
  const json walked = numbers_of(walked_totals(reader_));
  EXPECT_EQ(output["pyarrow"], walked);
  EXPECT_EQ(output["pandas"], walked);
}

TEST_F(ExternalTools, DuckdbRowsMatchCsv) {
  const std::string parquet = std::format("'{}'", write(Format::Parquet).string());
  EXPECT_EQ(duckdb(totals_sql(parquet)), line_of(walked_totals(reader_)));
  // The Parquet and CSV files have the same rows. expect_exports_agree() checks the CSV rows.
  const std::string csv = std::format(
      "(SELECT * FROM read_csv('{}', header = true, all_varchar = true, "
      "allow_quoted_nulls = false))",
      write(Format::Csv).string());
  std::string typed = "SELECT ", texts = "SELECT ";
  for (const AccessColumn& column : access_columns()) {
    // Floats are compared as numbers, because their text form is not unique.
    const bool is_float = column.type == CellType::Float;
    typed +=
        std::format("{}{} AS {}, ", column.name, is_float ? "::FLOAT" : "::VARCHAR", column.name);
    texts += std::format("{}{} AS {}, ", column.name, is_float ? "::FLOAT" : "", column.name);
  }
  const auto differing = [&](const std::string& a, const std::string& b) {
    return duckdb(std::format("SELECT count(*) FROM ({} EXCEPT ALL {})", a, b));
  };
  typed += std::format("1 AS one FROM {}", parquet);
  texts += std::format("1 AS one FROM {}", csv);
  EXPECT_EQ(differing(typed, texts), "0\n");
  EXPECT_EQ(differing(texts, typed), "0\n");
}

TEST_F(ExternalTools, DuckdbRowsMatchSql) {
  const auto found = bench::compare_with_duckdb(run_->file, folder_.path());
  ASSERT_TRUE(found.has_value()) << found.error();
  EXPECT_EQ(found->difference, "");
  EXPECT_EQ(found->rows, walked_totals(reader_).accesses);
  EXPECT_EQ(found->columns, access_columns().size());
}

TEST_F(ExternalTools, PartFolderReadsAsOneTable) {
  const auto lake = folder_ / "lake";
  const WriteResult written =
      export_parts(reader_, {}, PartFormat::Parquet, lake, 5000, never_cancel);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  std::size_t parts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(lake))
    parts += entry.path().filename() == "part.parquet";
  EXPECT_GT(parts, 1U);
  EXPECT_TRUE(std::filesystem::exists(lake / ("session=" + run_->info.id)));
  const FiveTotals walked = walked_totals(reader_);
  EXPECT_EQ(duckdb(totals_sql(std::format(
                "read_parquet('{}/**/*.parquet', hive_partitioning = true)", lake.string()))),
            line_of(walked));
  EXPECT_EQ(duckdb(std::format("SELECT DISTINCT session FROM read_parquet('{}/**/*.parquet', "
                               "hive_partitioning = true)",
                               lake.string())),
            run_->info.id + "\n");
  const json output =
      json::parse(command_output(python_command("read_parquet.py ") + lake.string()));
  EXPECT_EQ(output["pyarrow"], numbers_of(walked));
  // A second export of the same session is rejected, because its rows would be duplicates.
  EXPECT_FALSE(
      export_parts(reader_, {}, PartFormat::Parquet, lake, 5000, never_cancel).has_value());
}

// The durations that a reader of a timeline may add up, by category: each op and each step once.
json times_of(const SessionReader& reader) {
  std::int64_t steps = 0, ops = 0;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    steps += (step.end - step.begin).v;
    for (OpId op{0}; op.v < step.op_ends.size(); ++op.v) ops += step.op_duration(op)->v;
    return true;
  });
  EXPECT_TRUE(read.has_value());
  EXPECT_GT(ops, 0);
  return {{"step", steps}, {"op", ops}};
}

TEST_F(ExternalTools, ChromeTraceIsValid) {
  const json output = json::parse(
      command_output(python_command("check_chrome.py ") + write(Format::Chrome).string()));
  EXPECT_GT(output["C"], 0);
  EXPECT_GT(output["s"], 0);
  EXPECT_EQ(output["durations"], times_of(reader_));
  const auto bytes = std::filesystem::file_size(write(Format::Chrome));
  EXPECT_LE(bytes, 40 * output["op"].get<std::uint64_t>());
}

TEST_F(ExternalTools, PerfettoTraceDecodesWithPublishedSchema) {
  const auto path = write(Format::Perfetto);
  const json output = json::parse(command_output(
      std::format("protoc --proto_path={} --decode=perfetto.protos.Trace "
                  "perfetto_published.proto < {} | {}",
                  source_path("tests/data"), path.string(), python_command("check_perfetto.py"))));
  EXPECT_EQ(output["TYPE_SLICE_BEGIN"], output["TYPE_SLICE_END"]);
  EXPECT_GT(output["TYPE_COUNTER"], 0);
  EXPECT_GT(output["flows"], 1);
  EXPECT_GT(output["tracks"], 10);
  EXPECT_GT(output["TYPE_INSTANT"], 0);
  json times = times_of(reader_);
  times["token"] = times["step"];
  EXPECT_EQ(output["durations"], times);
}

TEST_F(ExternalTools, GraphvizRendersDot) {
  // The graph of the prompt and the graph of the last step.
  for (const ExportRange range : {ExportRange{.last = StepId{0}}, ExportRange{}}) {
    std::ofstream(folder_ / "s.dot")
        << export_text(reader_, {.format = Format::Dot, .range = range});
    const StepId step{range.last ? 0 : reader_.step_count().value() - 1};
    const auto graph = reader_.graph(reader_.step(step)->graph).value();
    const std::string output =
        command_output(std::format("{} -Tplain {}", kTestPaths.dot, (folder_ / "s.dot").string()));
    std::size_t drawn = 0;
    for (auto at = output.find("\nnode "); at != std::string::npos;
         at = output.find("\nnode ", at + 1))
      ++drawn;
    EXPECT_EQ(output.rfind("graph "), 0U) << output.substr(0, 200);
    EXPECT_EQ(drawn, graph->tensors.size());
  }
}

// Also for a range of steps.
TEST_F(ExternalTools, RunFolderStatisticsAndImagesMatchRecords) {
  const std::string parquet = write(Format::Parquet).string();
  const auto checked = [&](const char* name, ExportRange range) {
    const auto run = folder_ / name;
    const WriteResult written = export_run_folder(reader_, range, run);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    return json::parse(
        command_output(python_command("check_run_folder.py ") + run.string() + " " + parquet));
  };
  const FiveTotals walked = walked_totals(reader_);
  const json all = checked("all", {});
  EXPECT_EQ(all["accesses"], walked.accesses);
  EXPECT_EQ(all["bytes_read"], walked.read);
  EXPECT_EQ(all["bytes_written"], walked.written);
  EXPECT_GT(all["time_cells"], 1000);
  const json some = checked("some", {.first = StepId{2}, .last = StepId{5}});
  EXPECT_EQ(some["heat_cells"], 4 * all["heat_cells"].get<int>() / (9 + 12 - 1));
  EXPECT_LT(some["accesses"], walked.accesses);
}

TEST_F(ExternalTools, PandasReadsArrowCsvAndLog) {
  const json walked = numbers_of(walked_totals(reader_));
  const auto totals = [&](const std::string& read) {
    return json::parse(command_output(std::format(
        "python3 -c \"import pandas, pyarrow.ipc as ipc, json; f = {}; w = "
        "f['write'].astype(bool); "
        "print([len(f), int(f.size_bytes[~w].sum()), int(f.size_bytes[w].sum()), "
        "int(f.size_bytes[f.file_offset.notna()].sum()), int(f.expert_id.notna().sum())])\"",
        read)));
  };
  EXPECT_EQ(totals(std::format("ipc.open_stream(open('{}', 'rb')).read_pandas()",
                               write(Format::Arrow).string())),
            walked);
  EXPECT_EQ(totals(std::format("ipc.open_file(open('{}', 'rb')).read_pandas()",
                               write(Format::ArrowFile).string())),
            walked);
  const auto lake = folder_ / "arrow lake";
  ASSERT_TRUE(export_parts(reader_, {}, PartFormat::Arrow, lake, 5000, never_cancel).has_value());
  std::size_t parts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(lake))
    parts += entry.path().filename() == "part.arrow";
  EXPECT_GT(parts, 1U);
  EXPECT_EQ(totals(std::format("__import__('pyarrow.dataset').dataset.dataset('{}', format='ipc', "
                               "partitioning='hive').to_table().to_pandas()",
                               lake.string())),
            walked);
  EXPECT_EQ(
      totals(std::format("pandas.read_csv('{}', low_memory=False)", write(Format::Csv).string())),
      walked);
  EXPECT_EQ(totals(std::format("pandas.DataFrame([e for e in map(json.loads, open('{}')) if "
                               "e['event'] == 'tensor_log'])",
                               write(Format::Ndjson).string())),
            walked);
}

}  // namespace
}  // namespace tt::test
