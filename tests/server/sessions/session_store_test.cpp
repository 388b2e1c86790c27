#include "server/sessions/session_store.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <format>
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

// Allocated memory after the list of all sessions was read.
std::size_t memory_with_list(SessionStore& store, std::uint64_t sessions) {
  EXPECT_EQ(store.list({.page = {0, 100}})->total, sessions);
  return mallinfo2().uordblks;
}

// A session has about 60 facts, and many more if it was a long conversation.
TEST(SessionStore, KeepsLittleMemoryPerSession) {
  constexpr std::uint64_t kFirst = 400, kAll = 1200, kMaxBytes = 1024;
  SessionInfo info = test::SmallSession::small_info();
  for (int i = 0; i < 200; ++i)
    info.facts.emplace_back(std::format("request.messages.{}.user", i), std::string(40, 'a'));
  const test::SmallSession session({test::small_step(0)}, info);
  const test::TempFolder folder;
  const auto add_sessions = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i)
      std::filesystem::create_hard_link(session.path, folder.path() / std::format("s{}.ttrace", i));
  };
  SessionStore store(folder.path());
  add_sessions(0, kFirst);
  const std::size_t before = memory_with_list(store, kFirst);
  add_sessions(kFirst, kAll);
  const std::size_t growth = memory_with_list(store, kAll) - before;
  EXPECT_LT(growth / (kAll - kFirst), kMaxBytes);
  // Entries are complete, whether they are kept or read again.
  for (const char* id : {"s0", "s1199"})
    EXPECT_EQ(store.entry(id)->overview->info.facts, info.facts);
}

}  // namespace
}  // namespace tt
