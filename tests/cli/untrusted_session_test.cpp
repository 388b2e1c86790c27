// Untrusted session files: terminal escape sequences in their text are escaped, and their ids
// are not used as paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

void write_untrusted_session(const fs::path& path) {
  SessionInfo info = SmallSession::small_info();
  info.id = "x/../../owned";
  info.title =
      "a\x1b]0;owned\x07\xc2\x9b"
      "2Jb";
  info.facts = {{"request.prompt\x1b[2J", "two\nlines\x7f"}};
  const SmallSession session({small_step(0), small_step(1)}, info);
  fs::copy_file(session.path, path);
}

bool is_plain(const std::string& text) {
  return std::ranges::none_of(
             text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }) &&
         !text.contains("\xc2\x9b");
}

TEST(UntrustedSession, ControlCharactersAreEscaped) {
  const TempFolder folder;
  write_untrusted_session(folder / "s.ttrace");
  const Result shown = run_tt(folder, "show s.ttrace --facts");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(is_plain(shown.out)) << shown.out;
  EXPECT_TRUE(shown.out.contains("a\\x1b]0;owned\\x07\\xc2\\x9b2Jb")) << shown.out;
  EXPECT_TRUE(shown.out.contains("two\nlines\\x7f")) << shown.out;
  const Result rows = run_tt(folder, "sql s.ttrace 'SELECT name, value FROM metadata'");
  EXPECT_EQ(rows.code, 0) << rows.err;
  EXPECT_TRUE(is_plain(rows.out)) << rows.out;
}

TEST(UntrustedSession, ExportStaysInOutputFolder) {
  const TempFolder folder;
  write_untrusted_session(folder / "s.ttrace");
  const Result made = run_tt(folder, "export s.ttrace -o lake --format parquet --part-rows 10");
  EXPECT_EQ(made.code, 0) << made.err;
  std::set<std::string> top;
  for (const auto& entry : fs::directory_iterator(folder / "lake"))
    top.insert(entry.path().filename());
  EXPECT_EQ(top, (std::set<std::string>{"session=unnamed"}));
  EXPECT_FALSE(fs::exists(folder / "owned"));
}

}  // namespace
}  // namespace tt::test
