// SQL speed on a session of 100 million accesses, on one core. Budgets: count(*) and sum(bytes)
// over all rows of `access` at half the rate of an empty virtual table (bare_table.h); totals per
// tensor, layer, op kind and expert, through the views, in a tenth of the time of DuckDB for the
// same GROUP BY on the session's Parquet file.
//
//   sql_bench [SESSION...]     default: the two default sessions of the benchmarks, the second
//                              of a mixture of experts (bench/analysis/big_session.h)
//
// One iteration is one statement, prepared and read to the end on a new connection, as in the
// server. The sides alternate; the result is the median of three runs.
// The budget for totals is checked twice: for a session in the cache of tt-server
// (server/sessions/session_cache.h) against a second query of DuckDB; and for all totals
// including opening the file, in the sqlite3 shell with our extension against the DuckDB shell.
// The cost of the first query alone, which on our side reads every step, is printed without a
// budget. Times are CPU times; DuckDB uses one thread. The rows of both sides are compared.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <limits>
#include <optional>
#include <print>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/index/session_totals.h"
#include "analysis/sql/query.h"
#include "api/exchange/export.h"
#include "bench/analysis/big_session.h"
#include "bench/budget.h"
#include "bench/sql/bare_table.h"
#include "server/sessions/session_cache.h"

namespace {

namespace fs = std::filesystem;
using tt::bench::Bound;
using tt::bench::compare_with_budget;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double cpu_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

struct QueryResult {
  double seconds = std::numeric_limits<double>::infinity();  // infinite: failed
  std::string rows;                                          // as CSV
};

std::string text_of(const tt::sql::QueryValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  return {};
}

QueryResult query_ours(const fs::path& session, const std::string& sql,
                       const tt::TotalsProvider& totals_provider = {}) {
  const double began = cpu_seconds(RUSAGE_SELF);
  QueryResult answer;
  const auto failed = [&](const std::string& why) {
    std::println(stderr, "{}: {}", sql, why);
    return QueryResult{};
  };
  auto reader = tt::SessionReader::open(session);
  if (!reader) return failed(reader.error().message);
  auto query =
      tt::sql::Query::prepare(*std::move(reader), sql, {}, tt::never_cancel, totals_provider);
  if (!query) return failed(query.error().message);
  while (true) {
    const auto row = query->next();
    if (!row) return failed(row.error().message);
    if (*row == nullptr) break;
    for (std::size_t i = 0; i < (*row)->size(); ++i)
      answer.rows += (i == 0 ? "" : ",") + text_of((**row)[i]);
    answer.rows += '\n';
  }
  answer.seconds = cpu_seconds(RUSAGE_SELF) - began;
  return answer;
}

QueryResult query_bare_table(std::int64_t rows) {
  const double began = cpu_seconds(RUSAGE_SELF);
  const auto answer = tt::bench::run_bare_table_query(rows);
  if (!answer) {
    std::println(stderr, "bare table of {} rows: {}", rows, answer.error());
    return {};
  }
  return {.seconds = cpu_seconds(RUSAGE_SELF) - began, .rows = *answer};
}

// Output and CPU time of another program, including its children.
QueryResult run_program(const std::string& command) {
  const double began = cpu_seconds(RUSAGE_CHILDREN);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  QueryResult answer;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) answer.rows += static_cast<char>(c);
  if (pclose(pipe) != 0) return {};
  answer.seconds = cpu_seconds(RUSAGE_CHILDREN) - began;
  return answer;
}

QueryResult query_duckdb(const std::vector<std::string>& statements) {
  std::string command = "duckdb -csv -noheader -nullvalue '' -c \"SET threads=1\"";
  for (const std::string& sql : statements) command += std::format(" -c \"{}\"", sql);
  return run_program(command);
}

QueryResult query_sqlite(const fs::path& extension, const fs::path& session,
                         const std::vector<std::string>& statements) {
  std::string command = std::format("sqlite3 -bail -list -separator , '{}' '.load {}'",
                                    session.string(), extension.string());
  for (const std::string& sql : statements) command += std::format(" \"{}\"", sql);
  return run_program(command);
}

constexpr std::size_t kRuns = 3;

// Runs the sides alternately. Per side: the output of the first run and the median time.
template <class... Sides>
std::array<QueryResult, sizeof...(Sides)> run_alternately(Sides... sides) {
  std::array<QueryResult, sizeof...(Sides)> answers;
  std::array<std::array<double, kRuns>, sizeof...(Sides)> seconds;
  for (std::size_t turn = 0; turn < kRuns; ++turn) {
    std::size_t side = 0;
    const auto take = [&](QueryResult answer) {
      seconds[side][turn] = answer.seconds;
      if (turn == 0) answers[side] = std::move(answer);
      ++side;
    };
    (take(sides()), ...);
  }
  for (std::size_t side = 0; side < sizeof...(Sides); ++side) {
    std::ranges::sort(seconds[side]);
    answers[side].seconds = seconds[side][kRuns / 2];
  }
  return answers;
}

bool bench_full_scan(const fs::path& session) {
  const auto count = query_ours(session, "SELECT sum(accesses) FROM access_by_layer");
  const std::int64_t rows = std::strtoll(count.rows.c_str(), nullptr, 10);
  std::println("{} rows of access", rows);
  const auto rate = [&](const QueryResult& answer) {
    return static_cast<double>(rows) / answer.seconds / 1e6;
  };
  const char* const kAll = "SELECT count(*), sum(bytes) FROM access";
  const auto [all, bare, latest, layer] = run_alternately(
      [&] { return query_ours(session, kAll); }, [&] { return query_bare_table(rows); },
      [&] { return query_ours(session, "SELECT count(*), max(timestamp_ns) FROM access"); },
      [&] { return query_ours(session, "SELECT sum(bytes) FROM access WHERE layer_id = 3"); });
  std::println("{:>8.1f} M rows/s  {}: {}", rate(all), kAll,
               compare_with_budget(rate(all) / rate(bare), Bound::AtLeast, 0.5));
  std::println("{:>8.1f} M rows/s  the same on the bare table", rate(bare));
  std::println("{:>8.1f} M rows/s  count(*), max(timestamp_ns)", rate(latest));
  std::println("{:>8.1f} M rows/s  sum(bytes) of layer 3", rate(layer));
  return !all.rows.empty() && !bare.rows.empty() && !latest.rows.empty() && !layer.rows.empty();
}

// Writes the Parquet file if it does not exist.
bool write_parquet(const fs::path& session, const fs::path& parquet) {
  if (fs::exists(parquet)) return true;
  std::println(stderr, "writing {}", parquet.string());
  const auto reader = tt::SessionReader::open(session);
  if (!reader) return false;
  auto file = tt::exchange::OutputFile::create(parquet);
  if (!file) return false;
  return tt::exchange::export_session(*reader, {}, file->sink())
      .and_then([&] { return file->commit(); })
      .has_value();
}

struct Total {
  const char* of;
  const char* columns;
  const char* ours;
  const char* where;

  std::string duckdbs(const fs::path& parquet) const {
    return std::format(
        "SELECT {0}, count(*), sum(size_bytes) FROM '{1}' {2} GROUP BY {0} ORDER BY ALL NULLS "
        "FIRST",
        columns, parquet.string(), where);
  }
};

constexpr std::array kTotals = {
    Total{"tensor", "tensor_name",
          "SELECT tensor_name, sum(accesses), sum(size_bytes) FROM access_by_tensor "
          "GROUP BY 1 ORDER BY 1",
          ""},
    Total{"layer", "layer_id",
          "SELECT layer_id, accesses, size_bytes FROM access_by_layer ORDER BY layer_id", ""},
    Total{"op kind", "operation_type",
          "SELECT operation_type, accesses, size_bytes FROM access_by_op ORDER BY 1", ""},
    Total{"expert", "layer_id, expert_id",
          "SELECT layer_id, expert_id, accesses, size_bytes FROM access_by_expert "
          "ORDER BY 1, 2",
          "WHERE expert_id IS NOT NULL"}};

// Prints both times; without a budget only for information. False: the rows differ.
bool compare(const std::string& what, const QueryResult& us, const QueryResult& duckdb,
             std::optional<double> budget) {
  const double share = us.seconds / duckdb.seconds;
  std::println("{:<28} {:>8.4f} s, DuckDB {:>7.3f} s: share {:.3f}{}", what, us.seconds,
               duckdb.seconds, share,
               budget ? ", " + compare_with_budget(share, Bound::AtMost, *budget) : "");
  if (us.rows == duckdb.rows) return true;
  std::println("  the rows differ");
  return false;
}

bool compare_totals(const fs::path& session, const fs::path& extension) {
  constexpr double kBudget = 0.1;
  const fs::path parquet = session.string() + ".parquet";
  if (!write_parquet(session, parquet)) return false;
  bool same = true;
  std::vector<std::string> ours, duckdbs;
  tt::CacheRoom room;
  tt::TotalsCache kept(room);
  const tt::TotalsProvider get_or_build = [&](auto times, const auto& reader,
                                              const auto& keep_going) {
    return kept.get_or_build(times, session.string(), "ended", reader, keep_going);
  };
  for (const Total& total : kTotals) {
    // Fills the cache. An empty result means that the session has no experts.
    const QueryResult before = query_ours(session, total.ours, get_or_build);
    if (before.rows.empty() && std::string_view(total.of) == "expert") continue;
    ours.emplace_back(total.ours);
    duckdbs.push_back(total.duckdbs(parquet));
    const std::string& theirs = duckdbs.back();
    const auto [first, again, once, twice] = run_alternately(
        [&] { return query_ours(session, total.ours); },
        [&] { return query_ours(session, total.ours, get_or_build); },
        [&] { return query_duckdb({theirs}); }, [&] { return query_duckdb({theirs, theirs}); });
    if (twice.rows != once.rows + once.rows || twice.seconds <= once.seconds) {
      std::println(stderr, "DuckDB's second result differs from the first, or took no time");
      return false;
    }
    const QueryResult second{.seconds = twice.seconds - once.seconds, .rows = once.rows};
    same &= compare(std::format("per {}, cached", total.of), again, second, kBudget);
    same &= compare(std::format("per {}, with opening", total.of), first, once, {});
  }
  const auto [us, duckdb] = run_alternately([&] { return query_sqlite(extension, session, ours); },
                                            [&] { return query_duckdb(duckdbs); });
  same &= compare("all, with opening", us, duckdb, kBudget);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> sessions(argv + 1, argv + argc);
  if (sessions.empty()) {
    using tt::bench::DefaultModel;
    for (const DefaultModel model : {DefaultModel::Dense, DefaultModel::Experts})
      sessions.push_back(tt::bench::default_session(argv[0], model, 100'000'000));
  }
  const fs::path extension = fs::path(argv[0]).parent_path() / "../lib/tensor_trace";
  for (const fs::path& session : sessions) {
    std::println("{}", session.string());
    if (session.empty() || !bench_full_scan(session) || !compare_totals(session, extension))
      return 1;
  }
  return tt::bench::exit_code();
}
