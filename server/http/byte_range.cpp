#include "server/http/byte_range.h"

#include <algorithm>
#include <optional>

#include "tracer/text/parse_number.h"

namespace tt {

std::expected<ByteRange, UnsatisfiableRange> byte_range(std::string_view field,
                                                        std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const ByteRange all{.first = 0, .bytes = size};
  if (!field.starts_with(kUnit)) return all;
  field.remove_prefix(kUnit.size());
  const std::size_t dash = field.find('-');
  if (dash == std::string_view::npos) return all;
  const std::string_view from = field.substr(0, dash), to = field.substr(dash + 1);
  if (from.empty()) {
    const auto last_bytes = parse_number<std::uint64_t>(to);
    if (!last_bytes) return all;
    if (*last_bytes == 0 || size == 0) return std::unexpected(UnsatisfiableRange{});
    const std::uint64_t bytes = std::min(*last_bytes, size);
    return ByteRange{.first = size - bytes, .bytes = bytes};
  }
  const auto first = parse_number<std::uint64_t>(from);
  const auto last = to.empty() ? first : parse_number<std::uint64_t>(to);
  if (!first || !last || *last < *first) return all;
  if (*first >= size) return std::unexpected(UnsatisfiableRange{});
  const std::uint64_t end = to.empty() ? size : std::min(*last, size - 1) + 1;
  return ByteRange{.first = *first, .bytes = end - *first};
}

}  // namespace tt
