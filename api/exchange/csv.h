// Reads the CSV that we write (RFC 4180). A field with nothing is null, "" is empty.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt::exchange {

std::vector<std::vector<std::optional<std::string>>> csv_table(std::string_view text);

}  // namespace tt::exchange
