// A replaced file is the old one or the new one, never a part.
#include "tracer/format/file/replace_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ReplaceFile, HasTheNewTextAndNothingElse) {
  const TempFolder folder;
  const fs::path path = folder / "list";
  const std::string large(5U << 20, 'x');
  for (const std::string& text : {std::string("one\n"), large, std::string()}) {
    ASSERT_TRUE(replace_file(path, text));
    EXPECT_EQ(text_of(path), text);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  }
}

TEST(ReplaceFile, FailureKeepsTheOldFile) {
  const TempFolder folder;
  fs::create_directories(folder / "list" / "inside");  // cannot be replaced by a file
  EXPECT_FALSE(replace_file(folder / "list", "text"));
  EXPECT_TRUE(fs::is_directory(folder / "list" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_FALSE(replace_file(folder / "none" / "list", "text"));
  EXPECT_FALSE(replace_file("/dev/full/list", "text"));
}

}  // namespace
}  // namespace tt::test
