// A session file whose change was interrupted, with its rollback journal.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tt::test {

// Copies the session in the middle of a change that overwrites all rows, as a power loss leaves it:
// the journal is on the disk, and so is a part of the changed pages.
inline void copy_half_changed(const std::filesystem::path& session,
                              const std::filesystem::path& copy) {
  const auto bytes = [](const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(session.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(db,
                   "PRAGMA synchronous=FULL; PRAGMA cache_size=1; PRAGMA cache_spill=1; BEGIN; "
                   "UPDATE tt_step SET packed=zeroblob(length(packed)); "
                   "UPDATE tt_token SET text='wrong'; "
                   "UPDATE tt_template SET packed=zeroblob(length(packed));",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  std::filesystem::copy_file(session, copy);
  std::filesystem::copy_file(session.string() + "-journal", copy.string() + "-journal");
  ASSERT_NE(bytes(session), bytes(copy.string() + "-journal"));
  ASSERT_EQ(sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  ASSERT_NE(bytes(session), bytes(copy)) << "nothing was changed";
}

}  // namespace tt::test
