#include "api/json/session_json.h"

#include <gtest/gtest.h>

#include <string>

namespace tt {
namespace {

TEST(SessionJson, UnreadableSessionHasAnError) {
  const SessionEntry broken{
      .id = "x", .file_bytes = 7, .overview = std::nullopt, .error = "x.ttrace is damaged"};
  const Json json = to_json(broken);
  EXPECT_EQ(json["state"], "unreadable");
  EXPECT_EQ(json["error"], "x.ttrace is damaged");
  EXPECT_EQ(json["file_bytes"], 7);
}

TEST(SessionJson, ReportsTheReusedSession) {
  SessionEntry session{.id = "x", .file_bytes = 7, .overview = SessionOverview{}, .error = {}};
  EXPECT_FALSE(to_json(session).contains("reused_tokens"));
  auto& facts = session.overview->info.facts;
  facts.emplace_back("result.reused_tokens", "12");
  EXPECT_EQ(to_json(session)["reused_tokens"], 12);
  EXPECT_TRUE(to_json(session)["reused_from"].is_null());
  facts.emplace_back("result.reused_from", "20261121-032926-cc4975");
  EXPECT_EQ(to_json(session)["reused_from"], "20261121-032926-cc4975");
  EXPECT_EQ(to_json(session)["facts"]["result.reused_tokens"], "12");
}

TEST(SessionJson, TitleHas1To200Characters) {
  const auto text = [](const std::string& title) { return Json{{"title", title}}.dump(); };
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "\u00fc";
  EXPECT_EQ(parse_title_body(text("a")), "a");
  EXPECT_EQ(parse_title_body(text(umlauts)), umlauts);
  for (const std::string& body :
       {std::string("{}"), text(""), text(umlauts + "x"), std::string(R"({"title": 7})"),
        std::string(R"({"title": null})"), std::string(R"({"title": "a", "colour": 1})")}) {
    const auto rejected = parse_title_body(body);
    ASSERT_FALSE(rejected.has_value()) << body;
    EXPECT_EQ(rejected.error().error_code, ErrorCode::BadRequest);
  }
  for (const std::string& body : {std::string(""), std::string("{"), std::string("[]"),
                                  std::string("\"title\""), std::string("{\"title\": \"\xff\"}")}) {
    const auto rejected = parse_title_body(body);
    ASSERT_FALSE(rejected.has_value()) << body;
    EXPECT_EQ(rejected.error().error_code, ErrorCode::BadJson) << body;
  }
}

}  // namespace
}  // namespace tt
