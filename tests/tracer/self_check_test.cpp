#include "tracer/self_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/places.h"
#include "tests/tracer/traced_model.h"
#include "tracer/backends.h"

namespace tt::testing {
namespace {

TEST(SelfCheck, TheInstalledLibraryCallsBackAsExpected) {
  need_backends();
  const auto checked = self_check(kPlaces.bundled_model);
  ASSERT_TRUE(checked.has_value()) << checked.error();
  EXPECT_GT(checked->ops, 50U);
  EXPECT_EQ(checked->warning.empty(), library_versions().tested) << checked->warning;
}

TEST(SelfCheck, AMissingModelIsAnError) {
  const auto checked = self_check("/nonexistent.gguf");
  ASSERT_FALSE(checked.has_value());
  EXPECT_NE(checked.error().find("/nonexistent.gguf"), std::string::npos);
}

}  // namespace
}  // namespace tt::testing
