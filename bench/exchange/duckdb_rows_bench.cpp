// Compares the rows of a session of 10 million accesses, all columns: the Parquet export read by
// DuckDB with our SQL on the session.
//
//   duckdb_rows_bench [SESSION...]     default: the two default sessions of the benchmarks, with
//                                      10 million accesses each (big_session.h)
#include <chrono>
#include <filesystem>
#include <print>
#include <vector>

#include "bench/analysis/big_session.h"
#include "bench/exchange/duckdb_rows.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> sessions(argv + 1, argv + argc);
  if (sessions.empty()) {
    using tt::bench::DefaultModel;
    for (const DefaultModel model : {DefaultModel::Dense, DefaultModel::Experts})
      sessions.push_back(tt::bench::default_session(argv[0], model, 10'000'000));
  }
  bool agree = true;
  for (const fs::path& session : sessions) {
    if (session.empty()) return 1;
    const auto began = std::chrono::steady_clock::now();
    const auto found = tt::bench::compare_with_duckdb(session, session.parent_path());
    if (!found) {
      std::println(stderr, "duckdb_rows_bench: {}", found.error());
      return 1;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::println("{}: {} rows of {} columns, {:.0f} MB of text, {:.0f} s: {}",
                 session.filename().string(), found->rows, found->columns,
                 static_cast<double>(found->bytes) / 1e6, seconds.count(),
                 found->difference.empty() ? "the same" : "DIFFERENT, " + found->difference);
    agree = agree && found->difference.empty();
  }
  return agree ? 0 : 1;
}
