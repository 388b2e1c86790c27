// How fast does SQL go through a session of 100 million accesses, on one core? Budgets:
// 15 million rows of `access` a second for count(*) and sum(bytes) over all of it; totals
// per tensor, layer, op kind and expert, through the views, in a tenth of the time that
// DuckDB takes for the same GROUP BY over the session's Parquet.
//
//   sql_bench [SESSION...]     without any: the two usual ones of the benches, the second
//                              of a mixture of experts (bench/analysis/big_session.h)
//
// One iteration is one statement, prepared and read to its end on a connection of its
// own, as the server's are; the best of three. Each total is asked for by itself with opening
// the file, which on our side is reading every step; of a session that was asked before, as
// tt-server keeps it (server/session_shelf.h), against what a second asking costs DuckDB; and
// all of them together, with opening, on one connection of the sqlite3 shell with our
// extension, against DuckDB's shell. Times are those that the processor spent; DuckDB has one
// thread. Rows are compared.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <limits>
#include <print>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/session_totals.h"
#include "analysis/sql/query.h"
#include "api/exchange/export.h"
#include "bench/analysis/big_session.h"
#include "bench/budget.h"
#include "server/session_shelf.h"

namespace {

namespace fs = std::filesystem;
using tt::bench::Bound;
using tt::bench::verdict;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double cpu_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

struct Answer {
  double seconds = std::numeric_limits<double>::infinity();  // infinite: it failed
  std::string rows;                                          // as CSV
};

std::string text_of(const tt::sql::QueryValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  return {};
}

Answer ask_us(const fs::path& session, const std::string& sql,
              const tt::LendTotals& lend_totals = {}) {
  const double began = cpu_seconds(RUSAGE_SELF);
  Answer answer;
  const auto failed = [&](const std::string& why) {
    std::println(stderr, "{}: {}", sql, why);
    return Answer{};
  };
  auto reader = tt::SessionReader::open(session);
  if (!reader) return failed(reader.error().message);
  auto query = tt::sql::Query::prepare(*std::move(reader), sql, {}, tt::always, lend_totals);
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

// What a program of its own, and its children, answer and spend.
Answer ask_program(const std::string& command) {
  const double began = cpu_seconds(RUSAGE_CHILDREN);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  Answer answer;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) answer.rows += static_cast<char>(c);
  if (pclose(pipe) != 0) return {};
  answer.seconds = cpu_seconds(RUSAGE_CHILDREN) - began;
  return answer;
}

Answer ask_duckdb(const std::vector<std::string>& statements) {
  std::string command = "duckdb -csv -noheader -nullvalue '' -c \"SET threads=1\"";
  for (const std::string& sql : statements) command += std::format(" -c \"{}\"", sql);
  return ask_program(command);
}

Answer ask_sqlite(const fs::path& extension, const fs::path& session,
                  const std::vector<std::string>& statements) {
  std::string command = std::format("sqlite3 -bail -list -separator , '{}' '.load {}'",
                                    session.string(), extension.string());
  for (const std::string& sql : statements) command += std::format(" \"{}\"", sql);
  return ask_program(command);
}

template <class Ask>
Answer best_of_three(Ask ask) {
  Answer best = ask();
  for (int i = 0; i < 2; ++i) best.seconds = std::min(best.seconds, ask().seconds);
  return best;
}

bool go_through(const fs::path& session) {
  const auto count = ask_us(session, "SELECT sum(accesses) FROM access_by_layer");
  const double rows = std::strtod(count.rows.c_str(), nullptr);
  std::println("{:.0f} rows of access", rows);
  for (const auto& [sql, budget] : {std::pair{"SELECT count(*), sum(bytes) FROM access", 15.0},
                                    {"SELECT count(*), max(timestamp_ns) FROM access", 0.0},
                                    {"SELECT sum(bytes) FROM access WHERE layer_id = 3", 0.0}}) {
    const Answer answer = best_of_three([&] { return ask_us(session, sql); });
    if (answer.rows.empty()) return false;
    const double rate = rows / answer.seconds / 1e6;
    std::println("{:>8.3f} s {:>8.1f} M rows/s  {}{}", answer.seconds, rate, sql,
                 budget == 0 ? "" : "; " + verdict(rate, Bound::AtLeast, budget));
  }
  return true;
}

// Beside the session, written when it is not there.
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

bool compare(const std::string& what, const Answer& us, const Answer& duckdb) {
  const double share = us.seconds / duckdb.seconds;
  std::println("{:<28} {:>8.4f} s, DuckDB {:>7.3f} s: share {:.3f}, {}", what, us.seconds,
               duckdb.seconds, share, verdict(share, Bound::AtMost, 0.1));
  if (us.rows == duckdb.rows) return true;
  std::println("  and the rows differ");
  return false;
}

bool compare_totals(const fs::path& session, const fs::path& extension) {
  const fs::path parquet = session.string() + ".parquet";
  if (!write_parquet(session, parquet)) return false;
  bool same = true;
  std::vector<std::string> ours, duckdbs;
  tt::TotalsShelf kept;
  const tt::LendTotals lend = [&](auto times, const auto& reader, const auto& keep_going) {
    return kept.lend(times, session.string(), "ended", reader, keep_going);
  };
  for (const Total& total : kTotals) {
    const Answer us = best_of_three([&] { return ask_us(session, total.ours); });
    if (us.rows.empty() && std::string_view(total.of) == "expert") continue;  // there are none
    ours.emplace_back(total.ours);
    duckdbs.push_back(total.duckdbs(parquet));
    const Answer duckdb = best_of_three([&] { return ask_duckdb({duckdbs.back()}); });
    same &= compare(std::format("per {}, with opening", total.of), us, duckdb);
    ask_us(session, total.ours, lend);
    const Answer again = best_of_three([&] { return ask_us(session, total.ours, lend); });
    Answer twice = best_of_three([&] { return ask_duckdb({duckdbs.back(), duckdbs.back()}); });
    if (twice.rows != duckdb.rows + duckdb.rows || twice.seconds <= duckdb.seconds) {
      std::println(stderr, "DuckDB's second answer is not the first, or took no time");
      return false;
    }
    twice = {.seconds = twice.seconds - duckdb.seconds, .rows = duckdb.rows};
    same &= compare(std::format("per {}, asked before", total.of), again, twice);
  }
  const Answer us = best_of_three([&] { return ask_sqlite(extension, session, ours); });
  const Answer duckdb = best_of_three([&] { return ask_duckdb(duckdbs); });
  same &= compare("all, with opening", us, duckdb);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> sessions(argv + 1, argv + argc);
  if (sessions.empty()) {
    using tt::bench::UsualModel;
    for (const UsualModel model : {UsualModel::Dense, UsualModel::Experts})
      sessions.push_back(tt::bench::usual_session(argv[0], model, 100'000'000));
  }
  const fs::path extension = fs::path(argv[0]).parent_path() / "../lib/tensor_trace";
  for (const fs::path& session : sessions) {
    std::println("{}", session.string());
    if (session.empty() || !go_through(session) || !compare_totals(session, extension)) return 1;
  }
  return tt::bench::exit_code();
}
