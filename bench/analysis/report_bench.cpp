// How long does a report of 100 million accesses take, from opening the file on? Budget: 5 s of
// wall-clock time on a machine with 2 cores and no other load, and 256 MB of memory. One iteration
// is one report.
//
// report_bench [SESSION ...]: SESSION is a file of make_big_session; default: the default sessions
// of the benchmarks (big_session.h), a dense model and a mixture of experts.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <format>
#include <print>
#include <string>
#include <thread>
#include <vector>

#include "analysis/report/report.h"
#include "bench/analysis/big_session.h"
#include "bench/analysis/stopwatch.h"
#include "bench/budget.h"

namespace {

using namespace tt;
using bench::Bound;
using bench::compare_with_budget;

// The maximum of anonymous_mb() while it exists.
class PeakMemory {
 public:
  PeakMemory()
      : thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            peak_ = std::max(peak_.load(), bench::anonymous_mb());
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}
  double mb() const { return peak_ - before_; }

 private:
  const double before_ = bench::anonymous_mb();
  std::atomic<double> peak_ = before_;
  std::jthread thread_;
};

bool measure(const std::filesystem::path& file) {
  const PeakMemory peak;
  const bench::Stopwatch watch;
  const auto reader = SessionReader::open(file);
  if (!reader) return false;
  const auto index = SessionIndex::build(*reader);
  if (!index) return false;
  const auto indexed = watch.elapsed();
  std::string stages;
  double before = indexed.wall_ms;
  const auto stage = [&](const char* name) {
    const double now = watch.elapsed().wall_ms;
    stages += std::format("{:.0f} ms; {}: ", now - before, name);
    before = now;
  };
  const auto data = gather_report_data(file, *index, *reader, never_cancel, stage);
  if (!data) return false;
  const auto all = watch.elapsed();
  std::uint64_t accesses = 0;
  for (const IndexedStep& step : index->steps()) accesses += step.totals.accesses;
  std::println("{}: {} steps, {} accesses", file.filename().string(), index->steps().size(),
               accesses);
  std::println("  index: {:.0f} ms; {}{:.0f} ms", indexed.wall_ms, stages, all.wall_ms - before);
  std::println("  report {:.2f} s CPU, {:.2f} s wall clock, {}", all.cpu_ms / 1000,
               all.wall_ms / 1000, compare_with_budget(all.wall_ms / 1000, Bound::AtMost, 5));
  std::println("  memory {:.1f} MB, {}", peak.mb(),
               compare_with_budget(peak.mb(), Bound::AtMost, 256));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> sessions(argv + 1, argv + argc);
  if (sessions.empty()) {
    for (const auto model : {bench::DefaultModel::Dense, bench::DefaultModel::Experts})
      sessions.push_back(bench::default_session(argv[0], model, 100'000'000));
  }
  for (const auto& session : sessions) {
    if (session.empty() || !measure(session)) {
      std::println(stderr, "report_bench: {} cannot be read", session.string());
      return 1;
    }
  }
  return bench::exit_code();
}
