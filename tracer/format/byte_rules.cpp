#include "tracer/format/byte_rules.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tt {
namespace {

// A dimension of a view in bytes: `count` repetitions, `stride` apart.
struct Repeat {
  std::uint64_t count;
  std::uint64_t stride;
};

// A view as a block of bytes and its repetitions, innermost (smallest stride)
// first. Repetitions at stride 0 and of one element add no byte and are left out.
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

// Windows that overlap and have gaps at once: no closed form, so list the
// blocks and merge. Bounded, because shapes may come from a damaged file; beyond
// the bound the answer is the smaller of the two upper bounds.
std::uint64_t footprint_by_merging(const Layout& layout) {
  constexpr std::uint64_t kMostBlocks = 1u << 22;
  std::uint64_t blocks = 1;
  for (std::size_t i = 0; i < layout.n; ++i) {
    const std::uint64_t count = layout.repeats[i].count;
    if (count > kMostBlocks / blocks) return span_of(layout);
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

TensorId source(const Node& node, std::size_t i) {
  return i < node.src.size() ? node.src[i] : kNoTensor;
}

// `view` cut down to its first `count` along dimension `d`.
Tensor cut(Tensor view, std::size_t d, std::int64_t count) {
  view.ne[d] = std::min(view.ne[d], count);
  return view;
}

// One part of `view` along the axis: what one number of an index list selects.
Tensor one_part(Tensor view, Axis axis) {
  switch (axis) {
    case Axis::None:
      break;
    case Axis::Row:
      view.ne[1] = view.ne[2] = view.ne[3] = 1;
      break;
    case Axis::Slice:
      view.ne[2] = view.ne[3] = 1;
      break;
    case Axis::Sequence:
      view.ne[3] = 1;
      break;
  }
  return view;
}

// Elements of an upper or lower triangle of an n0 x n1 matrix, by ggml's
// ggml_tri_type: 0 upper with diagonal, 1 upper, 2 lower with diagonal, 3 lower.
std::uint64_t triangle_elements(std::int64_t n0, std::int64_t n1, std::int32_t type) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < n1; ++row) {
    switch (type) {
      case 0:
        count += std::max<std::int64_t>(0, n0 - row);
        break;
      case 1:
        count += std::max<std::int64_t>(0, n0 - row - 1);
        break;
      case 2:
        count += std::min(n0, row + 1);
        break;
      default:
        count += std::min(n0, row);
        break;
    }
  }
  return static_cast<std::uint64_t>(count);
}

// Collects the touches of one node.
class Touches {
 public:
  Touches(const GraphTemplate& graph, const Node& node) : graph_(graph), node_(node) {}

  const Tensor* src(std::size_t i) const {
    const TensorId id = source(node_, i);
    return id == kNoTensor ? nullptr : &graph_.tensor(id);
  }
  const Tensor& output() const { return graph_.tensor(node_.output); }

  void read(std::size_t i) {
    if (const Tensor* t = src(i)) read_bytes(i, footprint(*t));
  }
  void read_bytes(std::size_t i, std::uint64_t bytes) {
    add({.tensor = source(node_, i), .unit = bytes});
  }
  // The parts of source `i` that the list in source `index` names.
  void read_selected(std::size_t i, std::size_t index, Extent extent, Axis axis) {
    if (const Tensor* t = src(i)) {
      add({.tensor = source(node_, i),
           .extent = extent,
           .axis = axis,
           .index = source(node_, index),
           .unit = footprint(one_part(*t, axis))});
    }
  }
  // K or V of an attention: the cells that the mask lets through.
  void read_cells(std::size_t i, std::size_t mask) {
    const Tensor* t = src(i);
    const Tensor* m = src(mask);
    if (t == nullptr) return;
    if (m == nullptr) return read(i);
    // One cell holds all heads; with several streams a cell belongs to one.
    Tensor cell = cut(*t, 1, 1);
    if (m->ne[3] > 1) cell = cut(std::move(cell), 3, 1);
    add({.tensor = source(node_, i),
         .extent = Extent::Cells,
         .axis = Axis::Row,
         .index = source(node_, mask),
         .unit = footprint(cell)});
  }
  void read_all() {
    for (std::size_t i = 0; i < node_.src.size(); ++i) read(i);
  }
  void write() { write_bytes(footprint(output())); }
  void write_bytes(std::uint64_t bytes) {
    add({.tensor = node_.output, .write = true, .unit = bytes});
  }
  void write_rows(std::size_t index) {
    add({.tensor = node_.output,
         .write = true,
         .extent = Extent::Rows,
         .axis = Axis::Row,
         .index = source(node_, index),
         .unit = footprint(one_part(output(), Axis::Row))});
  }
  std::vector<Touch> take() { return std::move(touches_); }

 private:
  void add(Touch touch) {
    if (touch.tensor != kNoTensor && touch.unit > 0) touches_.push_back(touch);
  }
  const GraphTemplate& graph_;
  const Node& node_;
  std::vector<Touch> touches_;
};

// The block of `a` that ACC and SET change: b's shape, strides from the params.
Tensor sub_block(const Tensor& a, const Tensor& b, const Node& node) {
  Tensor block = b;
  block.block_elements = a.block_elements;
  block.block_bytes = a.block_bytes;
  block.nb[0] = a.nb[0];
  for (std::size_t d = 1; d < 4; ++d) {
    block.nb[d] = static_cast<std::uint32_t>(node.params[d - 1]);
  }
  return block;
}

constexpr std::size_t kAccInPlace = 4;  // params: nb1, nb2, nb3, offset, in place
constexpr std::size_t kRopeDims = 1;    // params: n_past, n_dims, mode, ...
constexpr std::size_t kTriType = 0;

}  // namespace

std::uint64_t footprint(const Tensor& view) {
  const Layout layout = layout_of(view);
  if (layout.empty) return 0;
  // Inside out: while everything so far is one solid run, repetitions that touch
  // it extend the run; repetitions beyond the span copy it.
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

std::vector<Touch> touches_of(const GraphTemplate& graph, const Node& node) {
  if (!node.computed) return {};
  Touches t(graph, node);
  const std::string_view op = node.op;

  if (op == "GET_ROWS") {
    t.read_selected(0, 1, Extent::Rows, Axis::Row);
    t.read(1);
    t.write();
  } else if (op == "SET_ROWS") {
    t.read(0);
    t.read(1);  // source 2 is the destination itself
    t.write_rows(1);
  } else if (op == "MUL_MAT_ID") {
    t.read_selected(0, 2, Extent::Experts, Axis::Slice);
    t.read(1);
    t.read(2);
    t.write();
  } else if (op == "ADD_ID") {
    t.read(0);
    t.read_selected(1, 2, Extent::Rows, Axis::Row);
    t.read(2);
    t.write();
  } else if (op == "SSM_SCAN") {
    t.read_selected(0, 6, Extent::Rows, Axis::Sequence);
    for (std::size_t i = 1; i < node.src.size(); ++i) t.read(i);
    t.write();
  } else if (op == "FLASH_ATTN_EXT") {
    t.read(0);
    t.read_cells(1, 3);
    t.read_cells(2, 3);
    if (const Tensor* mask = t.src(3)) {
      // Older libraries pad the mask to more queries than there are.
      const Tensor* q = t.src(0);
      t.read_bytes(3, footprint(q != nullptr ? cut(*mask, 1, q->ne[1]) : *mask));
    }
    t.read(4);  // sinks
    t.write();
  } else if (op == "SOFT_MAX") {
    t.read(0);
    if (const Tensor* mask = t.src(1)) {
      t.read_bytes(1, footprint(cut(*mask, 1, t.output().ne[1])));
    }
    t.read(2);  // sinks
    t.write();
  } else if (op == "ROPE" || op == "ROPE_BACK") {
    t.read(0);
    t.read(1);
    if (const Tensor* factors = t.src(2)) {
      t.read_bytes(2, footprint(cut(*factors, 0, node.params[kRopeDims] / 2)));
    }
    t.write();
  } else if (op == "CPY") {
    t.read(0);  // source 1 is the destination, whose view the output is
    t.write();
  } else if ((op == "ACC" || op == "SET") && node.params[kAccInPlace] != 0 && t.src(0) &&
             t.src(1)) {
    const std::uint64_t block = footprint(sub_block(*t.src(0), *t.src(1), node));
    if (op == "ACC") t.read_bytes(0, block);
    t.read(1);
    t.write_bytes(block);
  } else if (op == "IM2COL" || op == "IM2COL_3D") {
    t.read(1);  // source 0 is the kernel, for its shape only
    t.write();
  } else if (op == "FILL") {
    t.write();  // source 0 is there for its shape
  } else if ((op == "TRI" || op == "SOLVE_TRI") && t.src(0)) {
    const Tensor& a = *t.src(0);
    constexpr std::int32_t kLowerWithDiagonal = 2;
    const std::int32_t type = op == "TRI" ? node.params[kTriType] : kLowerWithDiagonal;
    const auto matrices = static_cast<std::uint64_t>(a.ne[2] * a.ne[3]);
    t.read_bytes(0, triangle_elements(a.ne[0], a.ne[1], type) * a.block_bytes * matrices);
    t.read(1);
    t.write();
  } else {
    t.read_all();
    t.write();
  }
  return t.take();
}

bool covers(const GraphTemplate& graph, const Touch& outer, const Touch& inner) {
  if (outer.write != inner.write || outer.extent != inner.extent || outer.index != inner.index) {
    return false;
  }
  if (outer.tensor == inner.tensor) return outer.unit >= inner.unit;
  if (graph.root(outer.tensor) != graph.root(inner.tensor)) return false;
  const Tensor& a = graph.tensor(outer.tensor);
  const Tensor& b = graph.tensor(inner.tensor);
  if (b.view_offset < a.view_offset) return false;
  const std::uint64_t from = b.view_offset - a.view_offset;
  if (outer.extent == Extent::All && outer.unit == span_of(a)) {
    return from + span_of(b) <= outer.unit;
  }
  // Rows of the same grid, the inner ones a stretch of the outer ones.
  const auto row_bytes = [](const Tensor& t) { return footprint(one_part(t, Axis::Row)); };
  const auto dense_rows = [&](const Tensor& t) {
    return row_bytes(t) == span_of(one_part(t, Axis::Row));
  };
  for (std::size_t d = 1; d < 4; ++d) {
    if (a.ne[d] != b.ne[d] || (a.ne[d] > 1 && a.nb[d] != b.nb[d])) return false;
  }
  return dense_rows(a) && dense_rows(b) && from + row_bytes(b) <= row_bytes(a);
}

std::uint64_t distinct_parts(const Tensor& view, Axis axis, const Tensor& index,
                             const std::vector<std::int64_t>& values) {
  const std::int64_t limit = view.ne[static_cast<std::size_t>(axis)];
  std::vector<std::int64_t> pool;
  const auto count_pool = [&] {
    if (!std::is_sorted(pool.begin(), pool.end())) std::sort(pool.begin(), pool.end());
    return static_cast<std::uint64_t>(std::unique(pool.begin(), pool.end()) - pool.begin());
  };
  const auto take = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < std::min(from + count, values.size()); ++i) {
      if (values[i] >= 0 && values[i] < limit) pool.push_back(values[i]);
    }
  };
  const bool batched = axis == Axis::Row && view.ne[2] * view.ne[3] > 1;
  if (!batched) {
    take(0, values.size());
    return count_pool();
  }
  // Batch (i2, i3) of the view is selected by list (i2, i3) of the index, which
  // repeats when it has fewer (SET_ROWS broadcasts).
  std::uint64_t parts = 0;
  const auto list = static_cast<std::size_t>(std::max<std::int64_t>(0, index.ne[0]));
  const auto n1 = std::max<std::int64_t>(1, index.ne[1]);
  const auto n2 = std::max<std::int64_t>(1, index.ne[2]);
  for (std::int64_t i3 = 0; i3 < view.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < view.ne[2]; ++i2) {
      pool.clear();
      take(static_cast<std::size_t>((i3 % n2) * n1 + i2 % n1) * list, list);
      parts += count_pool();
    }
  }
  return parts;
}

}  // namespace tt
