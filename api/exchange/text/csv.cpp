#include "api/exchange/text/csv.h"

#include <utility>

namespace tt::exchange {

std::vector<std::optional<std::string>> take_csv_line(std::string_view& text) {
  std::vector<std::optional<std::string>> line;
  std::string field;
  bool quoted = false, inside = false;
  const auto end_field = [&] {
    if (line.size() < kMaxCsvFields) {
      if (field.empty() && !quoted) {
        line.emplace_back(std::nullopt);
      } else {
        line.emplace_back(std::exchange(field, {}));
      }
    }
    quoted = false;
    field.clear();
  };
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      inside = !inside;
      quoted = true;
    } else if (inside || (c != ',' && c != '\n' && c != '\r')) {
      field += c;
    } else if (c == ',') {
      end_field();
    } else if (c == '\n') {
      ++i;
      break;
    }
  }
  end_field();
  text.remove_prefix(i);
  return line;
}

}  // namespace tt::exchange
