// Reads the CSV that we write (RFC 4180). A field with nothing is null, "" is empty.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt::exchange {

// The first line, which is taken off `text`. More fields than kMostCsvFields are left out.
inline constexpr std::size_t kMostCsvFields = 1000;
std::vector<std::optional<std::string>> take_csv_line(std::string_view& text);

}  // namespace tt::exchange
