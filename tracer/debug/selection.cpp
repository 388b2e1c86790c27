#include "tracer/debug/selection.h"

#include <algorithm>
#include <format>
#include <optional>

namespace tt {

std::expected<Selection, std::string> Selection::parse(std::string_view text) {
  Selection selection;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string_view part = text.substr(at, comma - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto range = part == "*" ? std::optional(IndexRange{}) : IndexRange::parse(part);
    if (!range) {
      return std::unexpected(std::format(
          "\"[{}]\" is not a list of indices. Use N, N-M, N- or *, separated by commas.", text));
    }
    selection.ranges.push_back(*range);
    at = comma + 1;
  }
  return selection;
}

std::expected<std::array<IndexRange, 4>, std::string> Selection::in(
    const std::array<std::uint64_t, 4>& ne) const {
  std::size_t dimensions = ne.size();
  while (dimensions > 1 && ne[dimensions - 1] == 1) --dimensions;
  // A step of one token has a dimension less than one of several: the indices may be those of both.
  dimensions = std::max(dimensions, std::min(ranges.size(), ne.size()));
  if (ranges.size() > dimensions) {
    return std::unexpected(std::format("There are {} indices, but the tensor has {} dimensions.",
                                       ranges.size(), dimensions));
  }
  std::array<IndexRange, 4> indices;
  for (std::size_t d = 0; d < ne.size(); ++d) {
    const bool is_given = d < dimensions && dimensions - 1 - d < ranges.size();
    if (is_given) indices[d] = ranges[dimensions - 1 - d];
    if (indices[d].first >= ne[d]) {
      return std::unexpected(std::format("Index {} is not in a dimension of {}, which begins at 0.",
                                         indices[d].first, ne[d]));
    }
    indices[d].last = std::min(indices[d].last, ne[d] - 1);
  }
  return indices;
}

}  // namespace tt
