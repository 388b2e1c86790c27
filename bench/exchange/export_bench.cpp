// Export speed. Budget: 5 million accesses/s to Parquet, on one core.
//
// export_bench [SESSION [FORMAT...]]: exports the session in each format to a file in its folder,
// removes the file, and prints rows/s, bytes per row and the peak memory of the process. Default:
// the default session of the benchmarks, with 100 million accesses. The row count comes from the
// totals of the session.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <print>
#include <string>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "api/exchange/export.h"
#include "bench/analysis/big_session.h"
#include "bench/budget.h"
#include "tracer/format/file/session_reader.h"

namespace {

using namespace tt;
using namespace tt::exchange;

std::uint64_t accesses_of_session(const SessionReader& reader) {
  DerivedGraphCache graphs(reader);
  std::uint64_t total = 0;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    const auto derived = graphs.of(step.graph);
    if (derived && *derived)
      total += totals_of(*(*derived)->graph, (*derived)->accesses, step).accesses;
    return true;
  });
  return read ? total : 0;
}

int bench_format(const std::filesystem::path& session, Format format, std::uint64_t rows) {
  const auto reader = SessionReader::open(session);
  if (!reader) return 1;
  const auto path = session.string() + std::string(format_info(format).extension);
  const auto begin = std::chrono::steady_clock::now();
  auto file = OutputFile::create(path);
  if (!file) return 1;
  const WriteResult written =
      export_session(*reader, {.format = format}, file->sink()).and_then([&] {
        return file->commit();
      });
  if (!written) {
    std::println(stderr, "{}", written.error().message);
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto n = static_cast<double>(rows);
  const double rate = n / seconds.count() / 1e6;
  std::println("{:<10} {:>6.2f} s {:>7.2f} M accesses/s {:>7.2f} bytes/access, up to {} MB{}",
               format_info(format).name, seconds.count(), rate,
               static_cast<double>(std::filesystem::file_size(path)) / n, usage.ru_maxrss / 1024,
               format != Format::Parquet
                   ? ""
                   : "; " + bench::compare_with_budget(rate, bench::Bound::AtLeast, 5));
  std::filesystem::remove(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path session =
      argc > 1 ? argv[1]
               : tt::bench::default_session(argv[0], tt::bench::DefaultModel::Dense, 100'000'000);
  if (session.empty()) return 1;
  const auto reader = tt::SessionReader::open(session);
  if (!reader) {
    std::println(stderr, "{}", reader.error().message);
    return 1;
  }
  const std::uint64_t rows = accesses_of_session(*reader);
  std::println("{} accesses", rows);
  std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  if (names.empty()) names = {"parquet"};
  for (const std::string& name : names) {
    const auto format = find_format(name);
    if (!format || bench_format(session, *format, rows) != 0) return 1;
  }
  return tt::bench::exit_code();
}
