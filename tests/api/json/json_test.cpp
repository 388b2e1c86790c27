#include "api/json/json.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(Json, RequestReasonAndErrorAreOptional) {
  JobStatus status;
  status.id = "a";
  status.model = "pocket";
  status.text = "half a letter: \xc3";
  Json json = to_json(status);
  EXPECT_EQ(json["model"], "pocket");
  EXPECT_EQ(json["state"], "queued");
  EXPECT_TRUE(json["stop_reason"].is_null());
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_TRUE(text_of(json).contains("half a letter: \uFFFD"));

  status.state = JobState::Failed;
  status.stop_reason = StopReason::Error;
  status.error = "why";
  json = to_json(status);
  EXPECT_EQ(json["state"], "failed");
  EXPECT_EQ(json["stop_reason"], "error");
  EXPECT_EQ(json["error"], "why");
}

}  // namespace
}  // namespace tt
