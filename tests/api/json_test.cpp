#include "api/json.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(Json, HealthTellsLoadingFromFailed) {
  ModelEntry model{.path = "/m/tiny.gguf", .size = 9, .load = {}, .facts = std::nullopt};
  EXPECT_EQ(health_json(model)["status"], "loading");
  EXPECT_TRUE(health_json(model)["model"].is_null());
  EXPECT_EQ(to_json(model)["name"], "tiny");

  model.load = {.phase = LoadState::Phase::Failed, .progress = 0, .error = "no GGUF"};
  EXPECT_EQ(health_json(model)["status"], "ok");
  EXPECT_EQ(health_json(model)["model_state"], "failed");
  EXPECT_EQ(health_json(model)["error"], "no GGUF");
  EXPECT_EQ(to_json(model)["state"], "failed");
}

}  // namespace
}  // namespace tt
