#include "api/json/model_json.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(ModelJson, HealthReportsModelState) {
  EXPECT_EQ(health_json(std::nullopt)["status"], "ok");
  EXPECT_EQ(health_json(std::nullopt)["model_state"], "none");
  EXPECT_TRUE(health_json(std::nullopt)["model"].is_null());

  ModelEntry model{.id = "tiny", .name = "Tiny", .path = "/m/tiny.gguf", .bytes = 9};
  model.state = ModelState::Loading;
  model.load_progress = 0.25F;
  EXPECT_EQ(health_json(model)["status"], "loading");
  EXPECT_EQ(health_json(model)["load_progress"], 0.25);
  EXPECT_TRUE(health_json(model)["model"].is_null());

  model.state = ModelState::Failed;
  model.error = "no GGUF";
  EXPECT_EQ(health_json(model)["status"], "ok");
  EXPECT_EQ(health_json(model)["model_state"], "failed");
  EXPECT_EQ(health_json(model)["error"], "no GGUF");

  model = {.id = "tiny", .name = "Tiny", .state = ModelState::Loaded};
  model.facts.emplace();
  EXPECT_EQ(health_json(model)["model"], "Tiny");
  EXPECT_EQ(health_json(model)["model_state"], "loaded");
}

TEST(ModelJson, ModelDetailsRequireALoadedModel) {
  ModelEntry model{.id = "tiny", .name = "Tiny", .path = "/m/tiny.gguf", .bytes = 9};
  const Json json = to_json(model);
  EXPECT_EQ(json["id"], "tiny");
  EXPECT_EQ(json["state"], "available");
  EXPECT_EQ(json["size_bytes"], 9);
  EXPECT_FALSE(json.contains("n_layers"));
  model.facts.emplace().n_layers = 3;
  EXPECT_EQ(to_json(model)["n_layers"], 3);
}

}  // namespace
}  // namespace tt
