#include "api/exchange/csv.h"

#include <utility>

namespace tt::exchange {

std::vector<std::vector<std::optional<std::string>>> csv_table(std::string_view text) {
  std::vector<std::vector<std::optional<std::string>>> table;
  std::vector<std::optional<std::string>> line;
  std::string field;
  bool quoted = false, inside = false;
  const auto end_field = [&] {
    if (field.empty() && !quoted) {
      line.emplace_back(std::nullopt);
    } else {
      line.emplace_back(std::exchange(field, {}));
    }
    quoted = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      inside = !inside;
      quoted = true;
    } else if (inside || (c != ',' && c != '\n' && c != '\r')) {
      field += c;
    } else if (c != '\r') {
      end_field();
      if (c == '\n') table.push_back(std::exchange(line, {}));
    }
  }
  if (!line.empty() || !field.empty()) {
    end_field();
    table.push_back(std::move(line));
  }
  return table;
}

}  // namespace tt::exchange
