#include "server/sessions/session_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

TEST(SessionStore, RejectsPathsAsIds) {
  for (const char* id : {"20261121-032926-cc4975", "a", "A_b-c.d"}) EXPECT_TRUE(is_session_id(id));
  for (const std::string& id :
       std::vector<std::string>{"", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a b", "a\n",
                                std::string("a\0b", 3), "ü", std::string(201, 'a')}) {
    EXPECT_FALSE(is_session_id(id)) << id;
  }
}

TEST(SessionStore, MissingFolderIsAnError) {
  SessionStore store("/nonexistent/sessions");
  const auto page = store.list({.page = {0, 10}});
  ASSERT_FALSE(page.has_value());
  EXPECT_NE(page.error().message.find("/nonexistent/sessions"), std::string::npos);
}

TEST(SessionStore, RereadsFileOnlyWhenChanged) {
  const test::SmallSession session({test::small_step(0)});
  SessionStore store(session.path.parent_path());
  ASSERT_EQ(store.entry("small")->overview->steps, 1u);
  // Same size and time: the cached entry is returned, although the content is invalid now.
  const auto time = std::filesystem::last_write_time(session.path);
  const auto size = std::filesystem::file_size(session.path);
  std::ofstream(session.path, std::ios::binary) << std::string(size, 'x');
  std::filesystem::last_write_time(session.path, time);
  EXPECT_TRUE(store.entry("small")->overview.has_value());
  std::filesystem::last_write_time(session.path, time + std::chrono::seconds(1));
  const auto entry = store.entry("small");
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(entry->overview.has_value());
  EXPECT_FALSE(entry->error.empty());
  std::filesystem::remove(session.path);
  EXPECT_FALSE(store.entry("small").has_value());
  EXPECT_EQ(store.list({.page = {0, 10}})->total, 0u);
}

}  // namespace
}  // namespace tt
