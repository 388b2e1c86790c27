// Compares the virtual tables of a session with a reference implementation (naive_tables.h),
// and pushed-down conditions with the same conditions on the whole table.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tt::test {

// A database connection with the tables of the session `file`.
class SqlSession {
 public:
  explicit SqlSession(const std::filesystem::path& file);
  sqlite3* get() const { return db_.get(); }
  // Each row as text, values separated by "|". An error is returned as the only row.
  std::vector<std::string> rows(const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// Compares all rows of all tables. Returns the number of rows.
std::uint64_t expect_tables(const std::filesystem::path& file);

// Compares all rows of all views, in any order. Returns the number of rows.
std::uint64_t expect_views(const std::filesystem::path& file);

// Checks `questions` random conditions on each table. Returns the number of matching rows.
std::uint64_t expect_pushed_down(const std::filesystem::path& file, std::uint64_t seed,
                                 int condition_count);

}  // namespace tt::test
