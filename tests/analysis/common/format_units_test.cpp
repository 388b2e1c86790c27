#include "analysis/common/format_units.h"

#include <gtest/gtest.h>

#include <utility>

namespace tt {
namespace {

TEST(FormatUnits, SizesAreBinary) {
  for (const auto& [bytes, text] : {std::pair{0.0, "0 B"},
                                    {1023.0, "1023 B"},
                                    {1024.0, "1.00 KiB"},
                                    {1536.0, "1.50 KiB"},
                                    {12.5 * 1024, "12.5 KiB"},
                                    {1023.4 * 1024, "1023 KiB"},
                                    {1024.0 * 1024 - 1, "1.00 MiB"},
                                    {667'814'368.0, "637 MiB"},
                                    {5.0 * (1ULL << 40), "5.00 TiB"},
                                    {3e18, "2665 PiB"}})
    EXPECT_EQ(format_bytes(bytes), text) << bytes;
}

TEST(FormatUnits, DurationsAreDecimal) {
  for (const auto& [ns, text] : {std::pair{90.0, "90 ns"},
                                 {999.6, "1.00 µs"},
                                 {31'200'000.0, "31.2 ms"},
                                 {1.25e9, "1.25 s"},
                                 {9e12, "9000 s"}})
    EXPECT_EQ(format_duration(ns), text) << ns;
}

}  // namespace
}  // namespace tt
