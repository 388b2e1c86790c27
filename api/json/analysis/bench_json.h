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

// The tests of a file. The error is a predicate: "is not valid JSON".
std::expected<std::vector<SpeedTest>, std::string> parse_bench_rows(std::string_view text);

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
