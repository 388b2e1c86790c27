// What the loadable extension requires of the program that loads it (docs/sql.md).
#include <gtest/gtest.h>

#include <charconv>
#include <format>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

// Ubuntu 22.04 has glibc 2.35, Debian 12 2.36; Python wheels have their own libraries.
constexpr int kGlibcMinor = 35;

TEST(Extension, NeedsNoNewerLibraryThanItsHosts) {
  const std::string listed =
      test::command_output(std::format("objdump -p '{}.so'", kTestPaths.extension));
  ASSERT_TRUE(listed.contains("NEEDED")) << listed;
  std::istringstream words(listed);
  int versions = 0;
  for (std::string word; words >> word;) {
    if (word == "NEEDED") {
      words >> word;
      EXPECT_TRUE(word.starts_with("libc.so.") || word.starts_with("libm.so.") ||
                  word.starts_with("libzstd.so.") || word.starts_with("ld-linux"))
          << word;
    }
    EXPECT_FALSE(word.starts_with("GLIBCXX_") || word.starts_with("CXXABI_") ||
                 word.starts_with("GCC_"))
        << word;
    constexpr std::string_view kGlibc = "GLIBC_2.";
    if (!word.starts_with(kGlibc)) continue;
    int minor = 0;
    std::from_chars(word.data() + kGlibc.size(), word.data() + word.size(), minor);
    EXPECT_LE(minor, kGlibcMinor) << word;
    ++versions;
  }
  EXPECT_GT(versions, 0);
}

}  // namespace
}  // namespace tt
