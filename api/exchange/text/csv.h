// Reads CSV as written by the exports (RFC 4180). An empty field is null; "" is an empty
// string.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt::exchange {

// Parses the first line and removes it from `text`. Fields after the first kMaxCsvFields are
// dropped.
inline constexpr std::size_t kMaxCsvFields = 1000;
std::vector<std::optional<std::string>> take_csv_line(std::string_view& text);

}  // namespace tt::exchange
