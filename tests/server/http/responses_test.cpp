#include "server/http/responses.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tt {
namespace {

httplib::Request request_of(const std::string& target, const std::string& if_none_match = "") {
  httplib::Request request;
  request.target = target;
  if (!if_none_match.empty()) request.set_header("If-None-Match", if_none_match);
  return request;
}

std::string etag_of(const std::string& target, const std::string& tag) {
  httplib::Response response;
  EXPECT_FALSE(not_modified(request_of(target), response, tag));
  return response.get_header_value("ETag");
}

TEST(Answers, MatchingEtagReturns304) {
  const std::string etag = etag_of("/a?x=1", "state");
  EXPECT_TRUE(etag.starts_with("W/\"")) << etag;
  struct Case {
    std::string target, tag, has;
    bool not_modified;
  };
  const Case cases[] = {
      {"/a?x=1", "state", etag, true},
      {"/a?x=1", "state", etag.substr(2), true},  // weak and strong compare equal
      {"/a?x=1", "state", "\"other\", " + etag + ", \"more\"", true},
      {"/a?x=1", "state", "\"other\"," + etag, true},
      {"/a?x=1", "state", "", false},
      {"/a?x=1", "state", "*", false},
      {"/a?x=1", "state", "\"" + etag, false},
      {"/a?x=1", "state", etag.substr(0, etag.size() - 1), false},
      {"/a?x=1", "changed", etag, false},
      {"/a?x=2", "state", etag, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.target + " " + c.tag + " " + c.has);
    httplib::Response response;
    EXPECT_EQ(not_modified(request_of(c.target, c.has), response, c.tag), c.not_modified);
    if (c.not_modified) {
      EXPECT_EQ(response.status, 304);
    }
    EXPECT_TRUE(response.has_header("ETag"));
    EXPECT_EQ(response.get_header_value("Cache-Control"), "private, no-cache");
  }
}

TEST(Answers, MutableResponsesAreNotCached) {
  httplib::Response running;
  EXPECT_FALSE(not_modified(request_of("/a", etag_of("/a", "state")), running, std::nullopt));
  respond(running, Json{{"steps", 3}});
  EXPECT_FALSE(running.has_header("ETag"));
  EXPECT_EQ(running.get_header_value_count("Cache-Control"), 1u);
  EXPECT_EQ(running.get_header_value("Cache-Control"), "no-store");

  httplib::Response rejected;
  EXPECT_FALSE(not_modified(request_of("/a"), rejected, "state"));
  respond(rejected, Problem{ErrorCode::NotFound, "There is no step 9."});
  EXPECT_FALSE(rejected.has_header("ETag"));
  EXPECT_EQ(rejected.get_header_value_count("Cache-Control"), 1u);
  EXPECT_EQ(rejected.get_header_value("Cache-Control"), "no-store");

  httplib::Response other;
  respond(other, Json{{"a", 1}});
  EXPECT_EQ(other.get_header_value("Cache-Control"), "no-store");
}

}  // namespace
}  // namespace tt
