// How fast does SQL go through a session? Budget: 15 million rows of `access` a second
// for count(*) and sum(bytes) over all of it; totals per tensor, layer, op kind and
// expert in a tenth of what DuckDB needs for the same GROUP BY over the Parquet.
//
//   sql_bench big.ttrace            (bench/analysis makes one)
//
// One iteration is one statement, prepared and read to its end on a connection of its
// own, as the server's are. Rows/s are rows of `access` that the statement is about,
// whether or not it had to make them. The best of three.
#include <chrono>
#include <cstdio>
#include <limits>
#include <print>
#include <string>

#include "analysis/sql/query.h"

namespace {

using Clock = std::chrono::steady_clock;

int fail(const std::string& message) {
  std::println(stderr, "sql_bench: {}", message);
  return 1;
}

// Seconds; negative: it failed.
double seconds_of(const std::string& file, const std::string& sql, std::int64_t& first) {
  auto reader = tt::SessionReader::open(file);
  if (!reader) return fail(reader.error().message), -1;
  const auto began = Clock::now();
  auto query = tt::sql::Query::prepare(*std::move(reader), sql);
  if (!query) return fail(query.error().message), -1;
  for (bool any = false;; any = true) {
    const auto row = query->next();
    if (!row) return fail(row.error().message), -1;
    if (*row == nullptr) break;
    if (any || (*row)->empty()) continue;
    if (const auto* number = std::get_if<std::int64_t>(&(**row)[0])) first = *number;
  }
  return std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::println("It asks a session that you name: sql_bench big.ttrace");
    return 0;  // among all benches there is none
  }
  const std::string file = argv[1];
  std::int64_t rows = 0;
  for (const char* sql : {
           "SELECT count(*), sum(bytes) FROM access",
           "SELECT count(*) FROM access",
           "SELECT count(*), sum(bytes), max(timestamp_ns) FROM access",
           "SELECT count(*), max(tensor_name) FROM access",
           "SELECT sum(bytes) FROM access WHERE layer_id = 3",
           "SELECT layer_id, sum(bytes) FROM access GROUP BY layer_id",
           "SELECT * FROM access_by_tensor",
           "SELECT * FROM access_by_layer",
           "SELECT * FROM access_by_op",
           "SELECT * FROM access_by_expert",
           "SELECT * FROM op_time",
           "SELECT * FROM token_latency",
       }) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      std::int64_t first = 0;
      const double seconds = seconds_of(file, sql, first);
      if (seconds < 0) return 1;
      best = std::min(best, seconds);
      if (rows == 0) rows = first;
    }
    std::println("{:>8.3f} s  {:>7.1f} M rows/s  {}", best, static_cast<double>(rows) / best / 1e6,
                 sql);
  }
  std::println("{} rows", rows);
  return 0;
}
