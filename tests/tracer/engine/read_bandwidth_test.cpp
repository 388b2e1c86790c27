// The read bandwidth of the machine: measured once, stored per machine and number of threads, and a
// fact of sessions whose model is larger than the last cache.
#include "tracer/engine/read_bandwidth.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

TEST(ReadBandwidth, LastCacheIsTheLargestOfTheProcessor) {
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

TEST(ReadBandwidth, IsMeasuredAndStored) {
  const TempFolder folder;
  const auto file = folder.path() / "cache" / "read_bandwidth";
  const auto measured = read_bandwidth(file, 1);
  if (!measured) {  // other programs disturbed all tries, or there is too little memory
    EXPECT_TRUE(measured.error() == NoBandwidth::Busy ||
                measured.error() == NoBandwidth::LittleMemory);
    EXPECT_FALSE(std::filesystem::exists(file));
    return;
  }
  // No machine reads less than 100 MB or more than 10 TB per second.
  EXPECT_GT(*measured, 100'000'000U);
  EXPECT_LT(*measured, 10'000'000'000'000U);
  EXPECT_EQ(stored_read_bandwidth(file, 1), *measured);
}

// What is stored is used, whatever the machine does now.
TEST(ReadBandwidth, IsStoredPerNumberOfThreads) {
  const TempFolder folder;
  const auto file = folder.path() / "cache" / "read_bandwidth";
  store_read_bandwidth(file, 1, 1234);
  store_read_bandwidth(file, 12, 5678);
  EXPECT_EQ(read_bandwidth(file, 1), 1234U);
  EXPECT_EQ(read_bandwidth(file, 12), 5678U);
  EXPECT_EQ(stored_read_bandwidth(file, 12), 5678U);
  EXPECT_EQ(stored_read_bandwidth(file, 2).error(), NoBandwidth::NotStored);
  EXPECT_EQ(stored_read_bandwidth({}, 1).error(), NoBandwidth::NotStored);
}

// Without a place to store a measurement it is not made; the session says so.
TEST(ReadBandwidth, ASessionSaysWhyItIsMissing) {
  TracedModel model(two_layer_model("small"));
  const SessionInfo info = model.run(greedy_tokens(5, 2)).reader().info().value();
  const bool is_small = std::filesystem::file_size(two_layer_model("small")) <= last_cache_bytes();
  EXPECT_EQ(info.fact("host.no_read_bandwidth"), is_small ? "small_model" : "no_folder");
}

TEST(ReadBandwidth, IsAFactOnlyOfModelsLargerThanTheCache) {
  const TempFolder folder;
  ModelOptions options;
  options.bandwidth_file = folder.path() / "read_bandwidth";
  TracedModel model(two_layer_model("small"), TracedModel::small_context(), options);
  const SessionInfo info = model.run(greedy_tokens(5, 2)).reader().info().value();
  const std::uint64_t cache = last_cache_bytes();
  EXPECT_EQ(info.fact_number("host.last_cache_bytes").value_or(0), cache);
  const bool is_small = std::filesystem::file_size(two_layer_model("small")) <= cache;
  if (is_small) {
    EXPECT_TRUE(info.fact("host.read_bandwidth").empty());
    EXPECT_FALSE(std::filesystem::exists(options.bandwidth_file));
  }
}

}  // namespace
}  // namespace tt::test
