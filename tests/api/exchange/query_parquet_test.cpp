// The rows of a statement as Parquet, read again by Arrow: every value, and the types of the
// columns.
#include "api/exchange/columnar/query_parquet.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>

#include <format>
#include <string>

namespace tt::exchange {
namespace {

using Rows = std::vector<std::vector<sql::QueryValue>>;

std::shared_ptr<arrow::Table> table_of(const std::vector<std::string>& names, const Rows& rows) {
  QueryParquet writer(names);
  std::string file;
  writer.begin(file);
  for (const auto& row : rows) EXPECT_TRUE(writer.row(row, file).has_value());
  EXPECT_TRUE(writer.end(false, nullptr, file));
  auto reader = parquet::arrow::OpenFile(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(file)),
      arrow::default_memory_pool());
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  return (*reader)->ReadTable().ValueOrDie();
}

std::string cell(const arrow::Table& table, int column, std::int64_t row) {
  return (*table.column(column)->GetScalar(row))->ToString();
}

constexpr std::monostate kNull;
constexpr std::byte kBytes[] = {std::byte{0}, std::byte{255}};
const std::span<const std::byte> kBlob(kBytes);

TEST(QueryParquet, TheTypeOfAColumnIsThatOfItsValues) {
  using std::string_view_literals::operator""sv;
  constexpr std::int64_t kBig = 9'007'199'254'740'993;  // not a double
  const struct Case {
    const char* name;
    sql::QueryValue first, second;
    std::shared_ptr<arrow::DataType> type;
    std::string one, two;
  } cases[] = {
      {"whole", kBig, std::int64_t{-1}, arrow::int64(), std::to_string(kBig), "-1"},
      {"numbers", std::int64_t{2}, 0.5, arrow::float64(), "2", "0.5"},
      {"number, null", 0.25, kNull, arrow::float64(), "0.25", "null"},
      {"null, text", kNull, "a\"b"sv, arrow::utf8(), "null", "a\"b"},
      {"empty text", ""sv, kNull, arrow::utf8(), "", "null"},
      {"text, number", "a"sv, 1.5, arrow::utf8(), "a", "1.5"},
      {"whole, text", std::int64_t{7}, "ä"sv, arrow::utf8(), "7", "ä"},
      {"blob, text", kBlob, "t"sv, arrow::utf8(), "00ff", "t"},
      {"nulls", kNull, kNull, arrow::utf8(), "null", "null"},
      {"not UTF-8", "\xff"sv, "b"sv, arrow::utf8(), "\xEF\xBF\xBD", "b"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    // A column of texts beside it keeps its own values.
    const auto table = table_of({"a", "b"}, {{one.first, "x"sv}, {one.second, "yz"sv}});
    ASSERT_EQ(table->num_rows(), 2);
    EXPECT_EQ(table->field(0)->name(), "a");
    EXPECT_TRUE(table->field(0)->type()->Equals(one.type)) << table->field(0)->type()->ToString();
    EXPECT_EQ(cell(*table, 0, 0), one.one);
    EXPECT_EQ(cell(*table, 0, 1), one.two);
    EXPECT_EQ(cell(*table, 1, 1), "yz");
  }
  const auto blobs = table_of({"b"}, {{kBlob}});
  EXPECT_TRUE(blobs->field(0)->type()->Equals(arrow::binary()));
  EXPECT_EQ(blobs->num_rows(), 1);
}

TEST(QueryParquet, AStatementWithoutRowsHasItsColumns) {
  const auto table = table_of({"a", "b"}, {});
  EXPECT_EQ(table->num_columns(), 2);
  EXPECT_EQ(table->num_rows(), 0);
}

TEST(QueryParquet, KeepsNoMoreThanItsLimit) {
  QueryParquet writer({"a"}, 1u << 20);
  std::string file;
  const std::string text(1000, 'x');
  std::uint64_t kept = 0;
  for (;;) {
    const auto written = writer.row(std::vector<sql::QueryValue>{std::string_view(text)}, file);
    if (!written) {
      EXPECT_EQ(written.error().kind, sql::QueryError::Kind::TooLarge);
      EXPECT_TRUE(written.error().message.contains("1 MiB")) << written.error().message;
      EXPECT_FALSE(writer.end(false, &written.error(), file));
      break;
    }
    ASSERT_LT(++kept, 1100u);
  }
  EXPECT_GT(kept, 900u);
  EXPECT_EQ(file, "");
}

}  // namespace
}  // namespace tt::exchange
