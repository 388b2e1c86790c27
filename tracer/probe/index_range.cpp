#include "tracer/probe/index_range.h"

#include "tracer/text/parse_number.h"

namespace tt {

std::optional<IndexRange> IndexRange::parse(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number<std::uint32_t>(text.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) return IndexRange{.first = *first, .last = *first};
  if (dash + 1 == text.size()) return IndexRange{.first = *first};
  const auto last = parse_number<std::uint32_t>(text.substr(dash + 1));
  if (!last || *last < *first) return std::nullopt;
  return IndexRange{.first = *first, .last = *last};
}

}  // namespace tt
