// One session of a mixture-of-experts model: REST, SQL, sqlite3, DuckDB and Python return the
// same five totals, equal to those of a loop over all accesses.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <format>
#include <set>
#include <string>

#include "tests/server/models/model_files.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

// Accesses, bytes read, bytes written, bytes of routed experts, accessed weights.
json totals_from_file(const fs::path& file) {
  const SessionReader reader = SessionReader::open(file).value();
  std::uint64_t accesses = 0, read = 0, written = 0, of_experts = 0;
  std::set<std::string> weights;
  const auto done = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    const auto graph = reader.graph(step.graph).value();
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      const Tensor& tensor = graph->tensor(access.tensor);
      ++accesses;
      (access.write ? written : read) += access.touched.v;
      if (access.expert >= 0) of_experts += access.touched.v;
      if (tensor.kind == TensorKind::Weight) weights.insert(tensor.name);
    });
    return true;
  });
  EXPECT_TRUE(done.has_value());
  return {accesses, read, written, of_experts, weights.size()};
}

std::string totals_of(const std::string& table) {
  return "SELECT count(*), sum(size_bytes) FILTER (WHERE NOT write), "
         "sum(size_bytes) FILTER (WHERE write), "
         "sum(size_bytes) FILTER (WHERE expert_id IS NOT NULL), "
         "count(DISTINCT tensor_name) FILTER (WHERE tensor_kind = 'weight') FROM " +
         table;
}

// A line of numbers as a JSON array.
json numbers_of(const std::string& line, char between) {
  std::string text = "[" + line + "]";
  std::ranges::replace(text, between, ',');
  return json::parse(text, nullptr, false);
}

TEST(FiveTotals, AgreeAcrossAllInterfaces) {
  ensure_backends_loaded();
  TestServer server({.model = model_files("moe").front()});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate({{"tokens", {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                                          {"max_tokens", 12},
                                          {"temperature", 0},
                                          {"ignore_eos", true}});
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  const fs::path file = server.data / (id + ".ttrace");
  const std::string session = "/api/v1/sessions/" + id;
  const json expected = totals_from_file(file);
  for (const json& total : expected) EXPECT_GT(total, 0);

  const TestResponse query =
      server.post(session + "/query", json{{"sql", totals_of("access")}}.dump());
  ASSERT_EQ(query.status, 200) << query.body;
  EXPECT_EQ(query.body["rows"][0], expected) << "REST, SQL";

  const auto number = [](const json& v) { return static_cast<std::uint64_t>(v.get<double>()); };
  const json sums = server.get(session + "/breakdown?by=layer").body["sums"]["all"];
  const json experts = server.get(session + "/breakdown?by=expert").body["rows"];
  const json weights = server.get(session + "/breakdown?by=tensor&kind=weight").body;
  std::uint64_t of_experts = 0;
  for (const json& expert : experts)
    of_experts += number(expert["all"]["bytes_read"]) + number(expert["all"]["bytes_written"]);
  EXPECT_EQ(json({number(sums["reads"]) + number(sums["writes"]), number(sums["bytes_read"]),
                  number(sums["bytes_written"]), of_experts, weights["total"]}),
            expected)
      << "REST, breakdowns";

  const std::string shell = std::format("sqlite3 -readonly -batch '{}' '.load {}' \"{}\"",
                                        file.string(), kTestPaths.extension, totals_of("access"));
  EXPECT_EQ(numbers_of(command_output(shell), '|'), expected) << "sqlite3";

  const auto sent = server.client().Get(session + "/export?format=parquet");
  ASSERT_TRUE(sent && sent->status == 200);
  const fs::path parquet = server.folder / "s.parquet";
  write_bytes(parquet, sent->body);
  write_bytes(server.folder / "q.sql", totals_of("'" + parquet.string() + "'"));
  EXPECT_EQ(numbers_of(command_output(std::format("duckdb -csv -noheader -bail < '{}'",
                                                  (server.folder / "q.sql").string())),
                       ','),
            expected)
      << "DuckDB";

  const json python = json::parse(
      command_output(std::format("python3 '{}' '{}' '{}' \"{}\" '{}'",
                                 source_path("tests/api/exchange/five_totals.py"), file.string(),
                                 kTestPaths.extension, totals_of("access"), parquet.string())),
      nullptr, false);
  EXPECT_EQ(python["sqlite3"], expected) << "Python's sqlite3";
  EXPECT_EQ(python["pyarrow"], expected) << "pyarrow";
}

}  // namespace
}  // namespace tt::test
