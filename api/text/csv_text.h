// A text as a field of CSV (RFC 4180). An empty text is quoted: a field without quotes and without
// characters is null. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tt {

// Appends a field. The text must be valid UTF-8.
void append_csv_text(std::string_view text, std::string& out);
// A field of any bytes, such as a name from a file: what is not UTF-8 is replaced.
std::string csv_text(std::string_view bytes);

}  // namespace tt
