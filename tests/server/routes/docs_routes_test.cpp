// The OpenAPI contract and its documentation page.
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>

#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

TestServerOptions with_page(const std::filesystem::path& page = "/nonexistent") {
  TestServerOptions options;
  options.model = "/nonexistent/model.gguf";
  options.page = page;
  return options;
}

TEST(DocsRoutes, ServesContractWithEtag) {
  TestServer server(with_page());
  auto client = server.client();
  const auto first = client.Get("/api/openapi.json");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->get_header_value("Content-Type"), "application/json");
  const json document = json::parse(first->body);
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_TRUE(document["paths"].contains("/api/v1/health"));

  const std::string etag = first->get_header_value("ETag");
  const auto again = client.Get("/api/openapi.json", httplib::Headers{{"If-None-Match", etag}});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 304);
  EXPECT_TRUE(again->body.empty());
  const auto other = client.Get("/api/openapi.json", httplib::Headers{{"If-None-Match", "\"x\""}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 200);
}

TEST(DocsRoutes, MissingPageShowsBuildInstructions) {
  TestServer server(with_page());
  const auto page = server.client().Get("/api/docs");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(page->body.contains("./tt build")) << page->body;
}

TEST(DocsRoutes, ServesPageWithItsOwnPolicy) {
  TempFolder dist;
  std::filesystem::create_directory(dist.path() / "docs");
  std::ofstream(dist.path() / "docs" / "index.html") << "<!doctype html><title>docs</title>";
  TestServer server(with_page(dist.path()));
  const auto page = server.client().Get("/api/docs");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->body, "<!doctype html><title>docs</title>");
  EXPECT_EQ(page->get_header_value_count("Content-Security-Policy"), 1u);
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'self';")) << policy;
  EXPECT_FALSE(policy.contains("unsafe")) << policy;
}

}  // namespace
}  // namespace tt::test
