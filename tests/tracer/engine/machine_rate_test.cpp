// What the machine does per second: measured once, stored per machine and number of threads, and a
// fact of sessions; the read bandwidth only if the model is larger than the last cache.
#include "tracer/engine/machine_rate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/models/backends.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"
#include "tracer/engine/compute_peak.h"
#include "tracer/engine/read_bandwidth.h"

namespace tt::test {
namespace {

TEST(MachineRate, LastCacheIsTheLargestOfTheProcessor) {
  const TempFolder root;
  const auto caches = root.path() / "sys/devices/system/cpu/cpu0/cache";
  for (const auto& [name, size] :
       {std::pair("index0", "48K"), std::pair("index2", "2048K"), std::pair("index3", "36M")}) {
    std::filesystem::create_directories(caches / name);
    std::ofstream(caches / name / "size") << size << '\n';
  }
  std::filesystem::create_directories(caches / "power");  // without a size
  EXPECT_EQ(last_cache_bytes(root.path()), 36U << 20);
  EXPECT_EQ(last_cache_bytes(root.path() / "nowhere"), 0U);
}

// No machine reads less than 100 MB or more than 10 TB per second, nor computes so little or more
// than 1,000 times that.
void expect_measured_and_stored(const MeasureRate& measure, std::uint64_t most) {
  const TempFolder folder;
  const auto file = folder.path() / "cache" / "rate";
  const MachineRate measured = rate_of_machine(file, 1, measure);
  if (!measured) {  // other programs disturbed all tries, or there is too little memory
    EXPECT_TRUE(measured.error() == NotMeasured::Busy ||
                measured.error() == NotMeasured::LittleMemory);
    EXPECT_FALSE(std::filesystem::exists(file));
    return;
  }
  EXPECT_GT(*measured, 100'000'000U);
  EXPECT_LT(*measured, most);
  EXPECT_EQ(stored_rate(file, 1), *measured);
}

TEST(MachineRate, ReadBandwidthIsMeasuredAndStored) {
  expect_measured_and_stored(measure_read_bandwidth, 10'000'000'000'000U);
}

TEST(MachineRate, ComputePeakIsMeasuredAndStored) {
  ensure_backends_loaded();
  expect_measured_and_stored(measure_compute_peak, 10'000'000'000'000'000U);
}

// What is stored is used, whatever the machine does now.
TEST(MachineRate, IsStoredPerNumberOfThreads) {
  const TempFolder folder;
  const auto file = folder.path() / "cache" / "rate";
  const MeasureRate never = [](unsigned) -> MachineRate {
    ADD_FAILURE() << "measured again";
    return 1;
  };
  store_rate(file, 1, 1234);
  store_rate(file, 12, 5678);
  EXPECT_EQ(rate_of_machine(file, 1, never), 1234U);
  EXPECT_EQ(rate_of_machine(file, 12, never), 5678U);
  EXPECT_EQ(stored_rate(file, 12), 5678U);
  EXPECT_EQ(stored_rate(file, 2).error(), NotMeasured::NotStored);
  EXPECT_EQ(stored_rate({}, 1).error(), NotMeasured::NotStored);
  if (std::thread::hardware_concurrency() < 2) return;
  // Beside another program: measured again, and the higher one counts.
  store_rate(file, 2, 700);
  EXPECT_EQ(stored_rate(file, 2).error(), NotMeasured::NotStored);
  store_rate(file, 2, 2345);
  EXPECT_EQ(stored_rate(file, 2), 2345U);
  store_rate(file, 2, 800);
  EXPECT_EQ(stored_rate(file, 2), 2345U);
}

// Without a place to store a measurement it is not made; the session says so.
TEST(MachineRate, ASessionSaysWhyItIsMissing) {
  TracedModel model(two_layer_model("small"));
  const SessionInfo info = model.run(greedy_tokens(5, 2)).reader().info().value();
  const bool is_small = std::filesystem::file_size(two_layer_model("small")) <= last_cache_bytes();
  EXPECT_EQ(info.fact("host.no_read_bandwidth"), is_small ? "small_model" : "no_folder");
  EXPECT_EQ(info.fact("host.no_compute_peak"), "no_folder");
}

TEST(MachineRate, ReadBandwidthIsAFactOnlyOfModelsLargerThanTheCache) {
  const TempFolder folder;
  ModelOptions options;
  options.machine_folder = folder.path();
  store_rate(compute_peak_file(folder.path()), 1, 4321);
  TracedModel model(two_layer_model("small"), TracedModel::small_context(), options);
  const SessionInfo info = model.run(greedy_tokens(5, 2)).reader().info().value();
  const std::uint64_t cache = last_cache_bytes();
  EXPECT_EQ(info.fact_number("host.last_cache_bytes").value_or(0), cache);
  const bool is_small = std::filesystem::file_size(two_layer_model("small")) <= cache;
  EXPECT_EQ(info.fact_number("host.compute_peak"), 4321);
  EXPECT_EQ(info.fact_number("host.compute_peak_threads"), 1);
  if (is_small) {
    EXPECT_TRUE(info.fact("host.read_bandwidth").empty());
    EXPECT_FALSE(std::filesystem::exists(read_bandwidth_file(folder.path())));
  }
}

}  // namespace
}  // namespace tt::test
