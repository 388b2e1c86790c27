// The virtual tables of a session, held against the naive way to their rows: every
// step read, every access walked, every column formed by hand. And conditions that
// are handed down, against the same conditions on the whole table.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tt::test {

// A connection with the tables of the session `file`.
class SqlSession {
 public:
  explicit SqlSession(const std::filesystem::path& file);
  sqlite3* get() const { return db_.get(); }
  // Each row as one text, its values parted by "|"; an error is the only row.
  std::vector<std::string> rows(const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// Every row of every table. Returns how many there were.
std::uint64_t expect_tables(const std::filesystem::path& file);

// Every row of every view, in any order, against sums over a walk. Returns how many
// there were.
std::uint64_t expect_views(const std::filesystem::path& file);

// `questions` random conditions on each table. Returns how many rows they found.
std::uint64_t expect_pushed_down(const std::filesystem::path& file, std::uint64_t seed,
                                 int questions);

}  // namespace tt::test
