#include "api/text/csv_text.h"

#include "tracer/text/utf8.h"

namespace tt {

void append_csv_text(std::string_view text, std::string& out) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string csv_text(std::string_view bytes) {
  std::string out;
  append_csv_text(to_valid_utf8(bytes), out);
  return out;
}

}  // namespace tt
