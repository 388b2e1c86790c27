// One function per op that does not simply read every source once and write the output once,
// and a table of them. docs/byte-rules.md has the same list with reasons.
#include "tracer/format/access/byte_rules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "tracer/format/access/footprint.h"

namespace tt {
namespace {

// `view` limited to the first `count` along dimension `d`.
Tensor limited(Tensor view, std::size_t d, std::int64_t count) {
  view.ne[d] = std::min(view.ne[d], count);
  return view;
}

// One part of `view` along the axis: what one entry of an index list selects.
Tensor one_part(Tensor view, PartAxis axis) {
  if (axis == PartAxis::None) return view;
  for (auto d = static_cast<std::size_t>(axis); d < 4; ++d) view.ne[d] = 1;
  return view;
}

// Unsigned: products may overflow in an untrusted file.
std::uint64_t extent(const Tensor& t, std::size_t d) { return static_cast<std::uint64_t>(t.ne[d]); }

std::uint64_t elements(const Tensor& t) {
  return extent(t, 0) * extent(t, 1) * extent(t, 2) * extent(t, 3);
}

// Collects the touches of one node. Absent sources and empty tensors are ignored.
class Touches {
 public:
  Touches(const GraphTemplate& graph, const Node& node) : graph_(graph), node_(node) {}

  bool has(std::size_t i) const { return id(i) != kNoTensor; }
  const Tensor& src(std::size_t i) const { return graph_.tensor(node_.src[i]); }
  std::size_t sources() const { return node_.src.size(); }
  const Tensor& output() const { return graph_.tensor(node_.output); }
  std::int32_t param(std::size_t i) const { return node_.params[i]; }

  void read(std::size_t i) {
    if (has(i)) read_bytes(i, footprint(src(i)));
  }
  void read_bytes(std::size_t i, std::uint64_t bytes) { add({.tensor = id(i), .unit = bytes}); }
  // The first `count` elements of every row, and the first `count` rows.
  void read_columns(std::size_t i, std::int64_t count) {
    if (has(i)) read_bytes(i, footprint(limited(src(i), 0, count)));
  }
  void read_rows(std::size_t i, std::int64_t count) {
    if (has(i)) read_bytes(i, footprint(limited(src(i), 1, count)));
  }
  // The parts of source `i` that the list in source `index` selects.
  void read_selected(std::size_t i, std::size_t index, Extent extent, PartAxis axis) {
    if (!has(index)) return read(i);
    add({.tensor = id(i),
         .extent = extent,
         .axis = axis,
         .index = id(index),
         .unit = has(i) ? footprint(one_part(src(i), axis)) : 0});
  }
  // K or V of an attention op: the cells, of all heads, that the mask does not exclude.
  void read_cells(std::size_t i, std::size_t mask) {
    if (!has(mask)) return read(i);
    add({.tensor = id(i),
         .extent = Extent::Cells,
         .axis = PartAxis::Row,
         .index = id(mask),
         .unit = has(i) ? footprint(limited(src(i), 1, 1)) : 0});
  }
  void read_all() {
    for (std::size_t i = 0; i < sources(); ++i) read(i);
  }
  void write() { write_bytes(footprint(output())); }
  void write_bytes(std::uint64_t bytes) {
    add({.tensor = node_.output, .write = true, .unit = bytes});
  }
  void write_rows(std::size_t index) {
    if (!has(index)) return write();
    add({.tensor = node_.output,
         .write = true,
         .extent = Extent::Rows,
         .axis = PartAxis::Row,
         .index = id(index),
         .unit = footprint(one_part(output(), PartAxis::Row))});
  }
  // An output of `values` elements followed by snapshots of a state. A kernel writes at most
  // one snapshot per token.
  void write_with_snapshots(std::uint64_t values, std::uint64_t state_bytes, std::int64_t tokens) {
    const std::uint64_t whole = footprint(output());
    const std::uint64_t value_bytes = values * output().block_bytes;
    if (state_bytes == 0 || whole < value_bytes) return write();
    const std::uint64_t snapshots = (whole - value_bytes) / state_bytes;
    const std::uint64_t written = std::min(snapshots, static_cast<std::uint64_t>(tokens));
    write_bytes(value_bytes + written * state_bytes);
  }
  std::vector<Touch> take() { return std::move(touches_); }

 private:
  TensorId id(std::size_t i) const { return i < sources() ? node_.src[i] : kNoTensor; }
  void add(Touch touch) {
    if (touch.tensor != kNoTensor && touch.unit > 0) touches_.push_back(touch);
  }

  const GraphTemplate& graph_;
  const Node& node_;
  std::vector<Touch> touches_;
};

void every_source_once(Touches& t) {
  t.read_all();
  t.write();
}

void get_rows(Touches& t) {
  t.read_selected(0, 1, Extent::Rows, PartAxis::Row);
  t.read(1);
  t.write();
}

void set_rows(Touches& t) {
  t.read(0);
  t.read(1);  // source 2 is the destination itself
  t.write_rows(1);
}

void mul_mat_id(Touches& t) {
  t.read_selected(0, 2, Extent::Experts, PartAxis::Slice);
  t.read(1);
  t.read(2);
  t.write();
}

void add_id(Touches& t) {
  t.read(0);
  t.read_selected(1, 2, Extent::Rows, PartAxis::Row);
  t.read(2);
  t.write();
}

void flash_attn_ext(Touches& t) {
  constexpr std::size_t kMask = 3;
  t.read(0);
  t.read_cells(1, kMask);
  t.read_cells(2, kMask);
  t.read_rows(kMask, t.has(0) ? t.src(0).ne[1] : 0);  // a mask may be padded to more queries
  t.read(4);                                          // sinks
  t.write();
}

void soft_max(Touches& t) {
  t.read(0);
  t.read_rows(1, t.output().ne[1]);  // a mask may be padded to more queries
  t.read(2);                         // sinks
  t.write();
}

void rope(Touches& t) {
  constexpr std::size_t kDims = 1;  // params: n_past, n_dims, mode, ...
  t.read(0);
  t.read(1);
  t.read_columns(2, t.param(kDims) / 2);  // frequency factors: one per pair
  t.write();
}

// Source 1 of a CPY is the destination; the output is a view of it.
void cpy(Touches& t) {
  t.read(0);
  t.write();
}

// The block of `a` that ACC and SET modify: shape of `b`, strides from the params.
std::uint64_t changed_block(const Touches& t) {
  Tensor block = t.src(1);
  block.block_elements = t.src(0).block_elements;
  block.block_bytes = t.src(0).block_bytes;
  block.nb[0] = t.src(0).nb[0];
  for (std::size_t d = 1; d < 4; ++d) block.nb[d] = static_cast<std::uint32_t>(t.param(d - 1));
  return footprint(block);
}

constexpr std::size_t kInPlace = 4;  // params of ACC and SET: nb1, nb2, nb3, offset, in place

void acc(Touches& t) {
  if (t.param(kInPlace) == 0 || !t.has(0) || !t.has(1)) return every_source_once(t);
  t.read_bytes(0, changed_block(t));
  t.read(1);
  t.write_bytes(changed_block(t));
}

void set(Touches& t) {
  if (t.param(kInPlace) == 0 || !t.has(0) || !t.has(1)) return every_source_once(t);
  t.read(1);
  t.write_bytes(changed_block(t));
}

// Only the shape of the convolution kernel (source 0) is used.
void im2col(Touches& t) {
  t.read(1);
  t.write();
}

void fill(Touches& t) { t.write(); }

// Elements on and below the diagonal of a matrix with n1 rows of n0.
std::uint64_t lower_triangle(const Tensor& t) {
  const std::uint64_t n0 = extent(t, 0), n1 = extent(t, 1), square = std::min(n0, n1);
  return square * (square + 1) / 2 + (n1 - square) * n0;
}

void read_triangle(Touches& t, std::uint64_t elements_per_matrix) {
  const Tensor& a = t.src(0);
  t.read_bytes(0, elements_per_matrix * extent(a, 2) * extent(a, 3) * a.block_bytes);
}

void tri(Touches& t) {
  enum { UpperWithDiagonal, Upper, LowerWithDiagonal, Lower };
  if (!t.has(0)) return t.write();
  const std::uint64_t all = extent(t.src(0), 0) * extent(t.src(0), 1);
  const std::uint64_t diagonal = std::min(extent(t.src(0), 0), extent(t.src(0), 1));
  const std::uint64_t lower = lower_triangle(t.src(0));
  switch (t.param(0)) {
    case UpperWithDiagonal:
      read_triangle(t, all - lower + diagonal);
      break;
    case Upper:
      read_triangle(t, all - lower);
      break;
    case LowerWithDiagonal:
      read_triangle(t, lower);
      break;
    default:
      read_triangle(t, lower - diagonal);
      break;
  }
  t.write();
}

void solve_tri(Touches& t) {
  if (t.has(0)) read_triangle(t, lower_triangle(t.src(0)));
  t.read(1);
  t.write();
}

// Source 6 selects the sequences whose states are read.
void ssm_scan(Touches& t) {
  constexpr std::size_t kState = 0, kX = 1, kIds = 6;
  t.read_selected(kState, kIds, Extent::Rows, PartAxis::Sequence);
  for (std::size_t i = 1; i < t.sources(); ++i) t.read(i);
  if (!t.has(kState) || !t.has(kX) || !t.has(kIds)) return t.write();
  const std::uint64_t state = footprint(one_part(t.src(kState), PartAxis::Sequence));
  t.write_with_snapshots(elements(t.src(kX)), state * elements(t.src(kIds)), t.src(kX).ne[2]);
}

void gated_delta_net(Touches& t) {
  constexpr std::size_t kV = 2, kState = 5;
  t.read_all();
  if (!t.has(kV) || !t.has(kState)) return t.write();
  t.write_with_snapshots(elements(t.src(kV)), footprint(t.src(kState)), t.src(kV).ne[2]);
}

// Reads only hc * hc columns of the mixes and their base, and the last of three scales.
void hc_comb(Touches& t) {
  const auto columns = static_cast<std::int64_t>(extent(t.output(), 0) * extent(t.output(), 1));
  t.read_columns(0, columns);
  t.read_columns(1, 1);
  t.read_columns(2, columns);
  t.write();
}

struct Rule {
  std::string_view op;
  void (*apply)(Touches&);
};

constexpr auto kRules = std::to_array<Rule>({
    {"ACC", acc},
    {"ADD_ID", add_id},
    {"CPY", cpy},
    {"DSV4_HC_COMB", hc_comb},
    {"FILL", fill},
    {"FLASH_ATTN_EXT", flash_attn_ext},
    {"GATED_DELTA_NET", gated_delta_net},
    {"GET_ROWS", get_rows},
    {"IM2COL", im2col},
    {"IM2COL_3D", im2col},
    {"MUL_MAT_ID", mul_mat_id},
    {"ROPE", rope},
    {"ROPE_BACK", rope},
    {"SET", set},
    {"SET_ROWS", set_rows},
    {"SOFT_MAX", soft_max},
    {"SOLVE_TRI", solve_tri},
    {"SSM_SCAN", ssm_scan},
    {"TRI", tri},
});

}  // namespace

std::vector<Touch> touches_of(const GraphTemplate& graph, const Node& node) {
  if (!node.computed) return {};
  const auto rule = std::ranges::find(kRules, node.op, &Rule::op);
  Touches touches(graph, node);
  if (rule != kRules.end()) {
    rule->apply(touches);
  } else {
    every_source_once(touches);
  }
  return touches.take();
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
  // Rows of the same grid; each inner row is a range of the outer row.
  for (std::size_t d = 1; d < 4; ++d) {
    if (a.ne[d] != b.ne[d] || (a.ne[d] > 1 && a.nb[d] != b.nb[d])) return false;
  }
  const Tensor a_row = one_part(a, PartAxis::Row);
  const Tensor b_row = one_part(b, PartAxis::Row);
  return footprint(a_row) == span_of(a_row) && footprint(b_row) == span_of(b_row) &&
         from + span_of(b_row) <= span_of(a_row);
}

std::uint64_t distinct_parts(const Tensor& view, PartAxis axis, const Tensor& index,
                             std::span<const std::int64_t> values) {
  const std::int64_t limit = view.ne[static_cast<std::size_t>(axis)];
  std::vector<std::int64_t> pool;
  const auto distinct = [&](std::span<const std::int64_t> list) -> std::size_t {
    const auto is_part = [limit](std::int64_t v) { return v >= 0 && v < limit; };
    // Fast path: nearly all lists are strictly ascending.
    if (std::ranges::adjacent_find(list, std::greater_equal{}) == list.end())
      return static_cast<std::size_t>(std::ranges::count_if(list, is_part));
    pool.clear();
    std::ranges::copy_if(list, std::back_inserter(pool), is_part);
    if (!std::ranges::is_sorted(pool)) std::ranges::sort(pool);
    const auto repeated = std::ranges::unique(pool);
    return pool.size() - repeated.size();
  };
  if (axis != PartAxis::Row || (view.ne[2] <= 1 && view.ne[3] <= 1)) return distinct(values);

  // List (i2, i3) of the index selects from batch (i2, i3) of the view; the lists repeat if
  // there are fewer of them (SET_ROWS broadcasts).
  const auto positive = [](std::int64_t n) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, n));
  };
  const std::uint64_t length = positive(index.ne[0]);
  const std::uint64_t n1 = positive(index.ne[1]);
  const std::uint64_t n2 = positive(index.ne[2]);
  const auto batches = [](std::uint64_t of, std::uint64_t list, std::uint64_t lists) {
    return of > list ? (of - list - 1) / lists + 1 : 0;
  };
  std::uint64_t parts = 0;
  for (std::uint64_t list = 0; (list + 1) * length <= values.size() && list < n1 * n2; ++list) {
    parts += distinct(values.subspan(list * length, length)) *
             batches(positive(view.ne[2]), list % n1, n1) *
             batches(positive(view.ne[3]), list / n1, n2);
  }
  return parts;
}

}  // namespace tt
