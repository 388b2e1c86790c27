// Which elements of a tensor: "[2, 0-63]", as numpy indexes the array that `tt values --npy`
// writes: the outermost dimension first, dimensions of 1 at the outside not counted. Each is N,
// N-M, N- or *; those that are left out are taken whole.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/probe/index_range.h"

namespace tt {

struct Selection {
  std::vector<IndexRange> ranges;  // outermost first; empty: everything

  // `text`: without the brackets. The error text is a sentence.
  static std::expected<Selection, std::string> parse(std::string_view text);
  // The indices in each dimension of a tensor of shape `ne`, both innermost first as in ggml. The
  // error text is a sentence.
  std::expected<std::array<IndexRange, 4>, std::string> in(
      const std::array<std::uint64_t, 4>& ne) const;
  friend bool operator==(const Selection&, const Selection&) = default;
};

}  // namespace tt
