// Results of `tt bench-model`: rows with the column names of llama-bench, and more. A file of
// llama-bench (-o json) can be read, too; it has no noise floor and no ops.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/speed/speed_comparison.h"
#include "api/json/json.h"

namespace tt {

// `facts`: model, settings and machine; the first fields of the row. `machine`: verdict on the
// machine; empty: not known.
Json bench_row_json(const Json& facts, const SpeedTest& test, const std::string& test_time,
                    const std::string& machine);
Json to_json(const ComparedTest& test);

// A file of results.
struct BenchFile {
  std::vector<SpeedTest> tests;
  Json facts = Json::object();  // fields of its first row that are not lists
  std::string disturbed;        // verdict on the machine of a test that was not clean; empty: none
  bool of_llama_bench = false;  // each sample is a round
};
// The error is a predicate: "is not valid JSON".
std::expected<BenchFile, std::string> parse_bench_rows(std::string_view text);

// Why a comparison of the two would not say which program or build is faster: other models,
// machines, numbers of threads or settings, as far as both files have them, and measurements that
// something else disturbed. Sentences without a full stop; empty: nothing.
std::vector<std::string> bench_differences(const BenchFile& before, const BenchFile& after);

// Makes the rounds of both comparable if only one is of llama-bench: the median of each round,
// without what llama-bench does not know.
void use_same_rounds(BenchFile& before, BenchFile& after);

// The fields of a row that are not lists, in other formats. Each has all rows.
std::string bench_csv(const std::vector<Json>& rows);
std::string bench_sql(const std::vector<Json>& rows);  // creates the table llama_bench

// Tokens per second of evaluation alone, as in llama-bench: there is no sampling. If a test takes
// `ns`. Of the table and of the row: quantiles of speeds are the speeds in the quantiles of the
// times. 0: no time.
double evaluation_speed(double ns, std::uint32_t tokens);

// "pp512", "tg128", "pp512+tg128": as in llama-bench.
std::string test_name(std::uint32_t n_prompt, std::uint32_t n_gen);

}  // namespace tt
