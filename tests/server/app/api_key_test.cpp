#include "server/app/api_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

fs::path write_file(const fs::path& path, const std::string& text, fs::perms perms) {
  std::ofstream(path) << text;
  fs::permissions(path, perms);
  return path;
}
constexpr fs::perms kOwner = fs::perms::owner_read | fs::perms::owner_write;

TEST(ApiKey, IsEmptyByDefault) {
  const auto none = load_api_key({});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->key, "");
  EXPECT_EQ(none->notice, "");
}

TEST(ApiKey, RejectsInvalidLengthAndCharacters) {
  EXPECT_EQ(load_api_key({.key = "0123456789abcdef", .file = {}})->key, "0123456789abcdef");
  EXPECT_TRUE(load_api_key({.key = std::string(256, 'k'), .file = {}}).has_value());
  for (const std::string& key :
       {std::string("0123456789abcde"), std::string(257, 'k'), std::string("0123456789 abcdef"),
        std::string("0123456789abcdef\n"), std::string("0123456789abcdef\xc3\xa9")}) {
    const auto bad = load_api_key({.key = key, .file = {}});
    ASSERT_FALSE(bad.has_value()) << key;
    EXPECT_FALSE(bad.error().contains(key)) << "the message contains the key: " << bad.error();
  }
  EXPECT_FALSE(load_api_key({.key = "0123456789abcdef", .file = "/nonexistent/key"}).has_value());
}

TEST(ApiKey, IsReadFromFile) {
  const test::TempFolder folder;
  const fs::path file = write_file(folder.path() / "key", "  0123456789abcdef\r\n", kOwner);
  const auto read = load_api_key({.key = {}, .file = file});
  ASSERT_TRUE(read.has_value()) << read.error();
  EXPECT_EQ(read->key, "0123456789abcdef");
  EXPECT_EQ(read->notice, "");
  fs::permissions(file, kOwner | fs::perms::others_read);
  EXPECT_TRUE(load_api_key({.key = {}, .file = file})->notice.contains("other users"));
  for (const std::string& text : {std::string(), std::string("\n"), std::string("short\n"),
                                  "0123456789abcdef" + std::string(600, ' ') + "x",
                                  std::string("0123456789abcdef\n0123456789abcdef\n")}) {
    write_file(file, text, kOwner);
    EXPECT_FALSE(load_api_key({.key = {}, .file = file}).has_value()) << text;
  }
  EXPECT_FALSE(load_api_key({.key = {}, .file = folder.path()}).has_value());
}

TEST(ApiKey, IsGeneratedWhenKeyFileIsMissing) {
  const test::TempFolder folder;
  const fs::path file = folder.path() / "key";
  const auto made = load_api_key({.key = {}, .file = file});
  ASSERT_TRUE(made.has_value()) << made.error();
  EXPECT_EQ(made->key.size(), 64u);
  EXPECT_TRUE(made->notice.contains(file.string()));
  EXPECT_FALSE(made->notice.contains(made->key));
  struct stat facts{};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(load_api_key({.key = {}, .file = file})->key, made->key);
  const auto nowhere = load_api_key({.key = {}, .file = folder.path() / "none" / "key"});
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_TRUE(nowhere.error().contains("cannot be created"));
}

}  // namespace
}  // namespace tt
