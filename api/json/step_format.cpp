#include "api/json/step_format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "analysis/columns/step_columns.h"
#include "api/json/json.h"
#include "api/json/step_row.h"

namespace tt {

namespace {

// Receives the value of one column as a number; a word becomes its place in the list of words.
class NumberOutput {
 public:
  explicit NumberOutput(const columns::ColumnInfo& column) : column_(column) {}
  void null() { value_ = std::numeric_limits<double>::quiet_NaN(); }
  void flag(bool v) { value_ = v ? 1 : 0; }
  void integer(std::int64_t v) { value_ = static_cast<double>(v); }
  void count(std::uint64_t v) { value_ = static_cast<double>(v); }
  void real(float v) { value_ = double{v}; }
  void text(std::string_view v) {
    const columns::Enumeration& words = *column_.words;
    for (int i = 0; i < words.count; ++i)
      if (v == words.word(i)) value_ = i;
  }
  void text_copy(const std::string& v) { text(v); }
  double value() const { return value_; }

 private:
  const columns::ColumnInfo& column_;
  double value_ = 0;
};

constexpr auto kSentColumns = columns::bind<StepColumnsRow, NumberOutput>(columns::step_columns());
static_assert(std::ranges::all_of(kSentColumns, [](const columns::ColumnInfo& column) {
  return !column.per_session && (column.type != columns::Type::Text || column.words->count > 0);
}));

Json description_of(const Page<StepSummary>& steps) {
  Json names = Json::array();
  for (const columns::ColumnInfo& column : kSentColumns) {
    Json one = {{"name", column.name}};
    if (column.type == columns::Type::Flag) one["flag"] = true;
    if (column.words != nullptr) {
      Json& words = one["words"] = Json::array();
      for (int i = 0; i < column.words->count; ++i) words.push_back(column.words->word(i));
    }
    names.push_back(std::move(one));
  }
  return {{"total", steps.total}, {"columns", std::move(names)}};
}

}  // namespace

std::string columns_of(const Page<StepSummary>& steps) {
  struct Header {
    std::uint32_t magic = 0x31465454;  // "TTF1"
    std::uint16_t kind = 4, flags = 0;
    std::uint32_t steps = 0, columns = kSentColumns.size(), layers = 0;
    std::uint32_t reserved[3]{};
  };
  static_assert(sizeof(Header) == 32);
  const std::size_t count = steps.rows.size();
  // All steps of a session have the same number of entries.
  const std::size_t layers = count == 0 ? 0 : steps.rows.front().layer_ns.size();
  const Header header{.steps = static_cast<std::uint32_t>(count),
                      .layers = static_cast<std::uint32_t>(layers)};
  std::string out(sizeof header + sizeof(double) * count * (kSentColumns.size() + 2 * layers),
                  '\0');
  std::memcpy(out.data(), &header, sizeof header);
  char* at = out.data() + sizeof header;
  const auto add = [&at](double value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  for (const auto& column : kSentColumns) {
    for (const StepSummary& step : steps.rows) {
      NumberOutput number(column);
      column.value(StepColumnsRow{step}, number);
      add(number.value());
    }
  }
  for (const StepSummary& step : steps.rows)
    for (const Ns ns : step.layer_ns) add(static_cast<double>(ns.v));
  for (const StepSummary& step : steps.rows)
    for (const Bytes bytes : step.layer_bytes) add(static_cast<double>(bytes.v));
  return out += text_of(description_of(steps));
}

}  // namespace tt
