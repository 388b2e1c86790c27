// Unit tests without a server: case folding, byte ranges, sorting, work folders.
#include "server/sessions/session_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "server/http/byte_range.h"
#include "server/sessions/fold_case.h"
#include "server/sessions/work_folder.h"
#include "tests/server/support/recorded_sessions.h"

namespace tt::test {
namespace {

TEST(FoldCase, FoldsLettersAndKeepsOtherBytes) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"The SEA 42!", "the sea 42!"},
      {"ÄÖÜẞ", "äöüß"},
      {"ΑΒΓ", "αβγ"},
      {"ДЕРЕВО", "дерево"},
      {"日本語", "日本語"},
      {"\U0001F600", "\U0001F600"},
      {"a\xff\xc3", "a\xff\xc3"},  // not UTF-8
      {"\xc0\x80 \xed\xa0", "\xc0\x80 \xed\xa0"},
  };
  for (const auto& [text, folded] : cases) EXPECT_EQ(fold_case(text), folded) << text;
}

// Compares with a naive implementation for all small ranges of a 10-byte file.
TEST(ByteRange, MatchesReferenceImplementation) {
  const std::string bytes = "0123456789";
  const auto part = [&](const std::string& field) -> std::string {
    const auto range = byte_range(field, bytes.size());
    return range ? bytes.substr(range->first, range->bytes) : "none";
  };
  for (std::size_t first = 0; first < 14; ++first) {
    EXPECT_EQ(part("bytes=" + std::to_string(first) + "-"),
              first < 10 ? bytes.substr(first) : "none");
    EXPECT_EQ(part("bytes=-" + std::to_string(first)),
              first == 0 ? "none" : bytes.substr(10 - std::min<std::size_t>(first, 10)));
    for (std::size_t last = 0; last < 14; ++last) {
      const std::string field = "bytes=" + std::to_string(first) + "-" + std::to_string(last);
      std::string expected;
      for (std::size_t i = first; i <= last && i < bytes.size(); ++i) expected += bytes[i];
      if (last < first) expected = bytes;  // invalid: ignored
      EXPECT_EQ(part(field), expected.empty() ? "none" : expected) << field;
    }
  }
  for (const char* ignored : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,4-5",
                              "lines=1-2", "bytes=1-2x", "bytes=99999999999999999999-"}) {
    EXPECT_EQ(part(ignored), bytes) << ignored;
  }
}

TEST(SessionQuery, PagesAreRangesOfTheSortedList) {
  std::mt19937 random(7);
  std::vector<SessionRowPtr> all;
  for (int i = 0; i < 200; ++i) {
    SessionRow row;
    row.id = "id" + std::to_string(i);
    row.title = std::string(1, static_cast<char>('a' + random() % 5));
    row.start_utc_ns = static_cast<std::int64_t>(random() % 20);
    row.steps = static_cast<std::uint32_t>(random() % 10);
    row.state = random() % 3 == 0 ? "failed" : "done";
    all.push_back(std::make_shared<const SessionRow>(std::move(row)));
  }
  for (const auto key : {SessionKey::Start, SessionKey::Title, SessionKey::Steps}) {
    for (const bool descending : {false, true}) {
      for (const std::string state : {"", "failed"}) {
        // Reference: filter, then sort stably by id and then by the key.
        std::vector<SessionRowPtr> reference;
        for (const auto& one : all)
          if (state.empty() || one->state == state) reference.push_back(one);
        std::ranges::sort(reference, {}, [](const auto& one) { return one->id; });
        std::ranges::stable_sort(reference, [&](const auto& a, const auto& b) {
          return key == SessionKey::Start   ? a->start_utc_ns < b->start_utc_ns
                 : key == SessionKey::Title ? a->title < b->title
                                            : a->steps < b->steps;
        });
        if (descending) std::ranges::reverse(reference);
        std::vector<SessionRowPtr> joined;
        for (std::uint64_t from = 0; from < 210; from += 37) {
          const auto page = select_sessions(all, {.state = state,
                                                  .key = key,
                                                  .descending = descending,
                                                  .page = {.from = from, .limit = 37}});
          EXPECT_EQ(page.total, reference.size());
          joined.insert(joined.end(), page.rows.begin(), page.rows.end());
        }
        EXPECT_EQ(joined, reference);
      }
    }
  }
}

TEST(WorkFolder, RemovesAbandonedFoldersAndKeepsUsedOnes) {
  const TempFolder data;
  fs::create_directories(data / ".work/abandoned");
  write_bytes(data / ".work/abandoned/upload.ttrace", "x");
  auto used = WorkFolder::make(data.path());
  ASSERT_TRUE(used.has_value());
  write_bytes(used->path() / "mine", "y");
  WorkFolder::remove_abandoned(data.path());
  EXPECT_FALSE(fs::exists(data / ".work/abandoned"));
  EXPECT_TRUE(fs::exists(used->path() / "mine"));
  const fs::path path = used->path();
  {
    const WorkFolder removed = *std::move(used);
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace tt::test
