#include "server/http/static_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt {
namespace {

class StaticFilesTest : public ::testing::Test {
 protected:
  StaticFilesTest() {
    std::filesystem::create_directories(folder.path() / "dist" / "assets");
    write("dist/index.html", "<!doctype html>");
    write("dist/assets/main-1a2b.js", "let x");
    write("dist/assets/.hidden.js", "no");
    write("dist/icon.svg", "<svg/>");
    write("secret.txt", "no");
  }
  void write(const char* name, const char* text) { std::ofstream(folder.path() / name) << text; }

  test::TempFolder folder;
  StaticFiles files{folder.path() / "dist"};
};

TEST_F(StaticFilesTest, ServesFilesWithTypeAndCacheControl) {
  struct Case {
    const char* path;
    const char* body;
    const char* type;
    const char* cache;
  };
  const char* const kForEver = "public, max-age=31536000, immutable";
  const Case cases[] = {
      {"/", "<!doctype html>", "text/html; charset=utf-8", "no-cache"},
      {"/index.html", "<!doctype html>", "text/html; charset=utf-8", "no-cache"},
      {"/assets/main-1a2b.js", "let x", "text/javascript; charset=utf-8", kForEver},
      {"/icon.svg", "<svg/>", "image/svg+xml", "no-cache"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const auto file = files.find(c.path);
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(file->body, c.body);
    EXPECT_EQ(file->type, c.type);
    EXPECT_EQ(file->cache, c.cache);
    EXPECT_FALSE(file->etag.empty());
  }
}

TEST_F(StaticFilesTest, RejectsPathsOutsideTheFolder) {
  using namespace std::string_view_literals;
  for (const std::string_view path :
       {"/../secret.txt"sv, "/assets/../../secret.txt"sv, "/assets/.hidden.js"sv, "//etc/passwd"sv,
        "/assets/"sv, "/assets/none.js"sv, "/assets\\main.js"sv, "/icon.svg\0.js"sv, "/a/b"sv,
        "/anything"sv, "/health"sv}) {
    SCOPED_TRACE(path);
    EXPECT_FALSE(files.find(path).has_value());
  }
}

TEST_F(StaticFilesTest, MissingPageShowsBuildInstructions) {
  const StaticFiles none(folder.path() / "nowhere");
  const auto file = none.find("/");
  ASSERT_TRUE(file.has_value());
  EXPECT_NE(file->body.find("./tt build"), std::string::npos);
  EXPECT_FALSE(none.find("/assets/main.js").has_value());
}

}  // namespace
}  // namespace tt
