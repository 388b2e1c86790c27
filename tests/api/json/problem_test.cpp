#include "api/json/problem.h"
#include "tests/support/test_paths.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tt {
namespace {

constexpr ErrorCode kLast = ErrorCode::Internal;

TEST(Problem, EachErrorHasAStatusAndAUniqueCode) {
  std::set<std::string> codes;
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const auto error_code = static_cast<ErrorCode>(i);
    EXPECT_GE(status_of(error_code), 400);
    EXPECT_LT(status_of(error_code), 600);
    EXPECT_TRUE(codes.insert(code_of(error_code)).second) << code_of(error_code);
  }
}

TEST(Problem, EachCodeIsDocumented) {
  std::ifstream file(source_path("api/openapi.yaml"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const std::string code = code_of(static_cast<ErrorCode>(i));
    EXPECT_NE(text.find("- " + code + "\n"), std::string::npos) << code;
  }
}

TEST(Problem, MatchesRfc9457) {
  const auto json = nlohmann::json::parse(text_of(Problem{ErrorCode::QueueFull, "wait"}));
  EXPECT_EQ(json["type"], "about:blank");
  EXPECT_EQ(json["status"], 503);
  EXPECT_EQ(json["code"], "queue_full");
  EXPECT_EQ(json["detail"], "wait");
  EXPECT_FALSE(json["title"].get<std::string>().empty());
}

TEST(Problem, KeepsTheResponseStatus) {
  for (const int status : {400, 403, 404, 405, 408, 413, 415, 416, 426, 431, 500, 501}) {
    const Problem problem = problem_of_status(status, "why");
    EXPECT_EQ(status_of(problem), status);
    EXPECT_EQ(nlohmann::json::parse(text_of(problem))["status"], status);
  }
}

TEST(Problem, KeepsTheMessageOfTheCause) {
  const Problem full =
      problem_of(TraceError{TraceError::Kind::DiskFull, "free 3 MB on /data and try again"});
  EXPECT_EQ(full, (Problem{ErrorCode::DiskFull, "free 3 MB on /data and try again"}));
  EXPECT_EQ(status_of(problem_of(SubmitError{SubmitError::Kind::TooLong, ""}).error_code), 413);
  EXPECT_EQ(status_of(problem_of(SubmitError{SubmitError::Kind::NotReady, ""}).error_code), 503);
}

}  // namespace
}  // namespace tt
