#include "tracer/format/access/footprint.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tt {
namespace {

// A dimension of a view: `count` repetitions, `stride` bytes apart.
struct Repeat {
  std::uint64_t count;
  std::uint64_t stride;
};

// A view as a block of bytes and its repetitions, innermost (smallest stride)
// first. Repetitions with stride 0 or count 1 add no bytes and are omitted.
struct Layout {
  bool empty = false;
  std::uint64_t block = 0;
  std::array<Repeat, 4> repeats{};
  std::size_t n = 0;
};

Layout layout_of(const Tensor& view) {
  Layout out;
  out.block = view.block_bytes;
  for (std::size_t d = 0; d < 4; ++d) {
    if (view.ne[d] <= 0) {
      out.empty = true;
      return out;
    }
    auto count = static_cast<std::uint64_t>(view.ne[d]);
    if (d == 0 && view.block_elements > 1) {
      count = (count + view.block_elements - 1) / view.block_elements;
    }
    if (count <= 1 || view.nb[d] == 0) continue;
    std::size_t at = out.n++;
    for (; at > 0 && out.repeats[at - 1].stride > view.nb[d]; --at) {
      out.repeats[at] = out.repeats[at - 1];
    }
    out.repeats[at] = {count, view.nb[d]};
  }
  return out;
}

std::uint64_t span_of(const Layout& layout) {
  std::uint64_t span = layout.block;
  for (std::size_t i = 0; i < layout.n; ++i) {
    span += (layout.repeats[i].count - 1) * layout.repeats[i].stride;
  }
  return span;
}

// Windows that overlap and also have gaps: there is no closed form, so the blocks are
// listed and merged. Their number is limited, because shapes may come from a damaged file;
// above the limit the result is the span, an upper bound.
std::uint64_t footprint_by_merging(const Layout& layout) {
  constexpr std::uint64_t kMaxBlocks = 1u << 14;
  std::uint64_t blocks = 1;
  for (std::size_t i = 0; i < layout.n; ++i) {
    const std::uint64_t count = layout.repeats[i].count;
    if (count > kMaxBlocks / blocks) return span_of(layout);
    blocks *= count;
  }
  std::vector<std::uint64_t> starts{0};
  starts.reserve(blocks);
  for (std::size_t i = 0; i < layout.n; ++i) {
    const std::size_t before = starts.size();
    for (std::uint64_t k = 1; k < layout.repeats[i].count; ++k) {
      for (std::size_t j = 0; j < before; ++j) {
        starts.push_back(starts[j] + k * layout.repeats[i].stride);
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  for (const std::uint64_t start : starts) {
    const std::uint64_t from = std::max(start, end);
    end = start + layout.block;
    if (end > from) bytes += end - from;
  }
  return bytes;
}

}  // namespace

std::uint64_t footprint(const Tensor& view) {
  const Layout layout = layout_of(view);
  if (layout.empty) return 0;
  // From the innermost dimension out: while the bytes so far are contiguous, repetitions that
  // touch or overlap them extend the range; repetitions beyond the span multiply it.
  std::uint64_t bytes = layout.block;
  std::uint64_t span = layout.block;
  for (std::size_t i = 0; i < layout.n; ++i) {
    const auto [count, stride] = layout.repeats[i];
    if (bytes == span && stride <= span) {
      bytes += (count - 1) * stride;
    } else if (stride >= span) {
      bytes *= count;
    } else {
      return footprint_by_merging(layout);
    }
    span += (count - 1) * stride;
  }
  return bytes;
}

std::uint64_t span_of(const Tensor& view) {
  const Layout layout = layout_of(view);
  return layout.empty ? 0 : span_of(layout);
}

}  // namespace tt
