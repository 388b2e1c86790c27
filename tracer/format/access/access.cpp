// Template x step -> accesses. byte_rules.cpp defines what an op touches. This file turns
// that into accesses: it drops tensors internal to a fused op, counts bytes that are touched
// twice once, finds the slot that selects, and computes the range in the GGUF file.
#include "tracer/format/access/access.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "tracer/format/access/byte_rules.h"
#include "tracer/format/access/footprint.h"

namespace tt {
namespace {

// The slots of a template by the tensor whose values they hold. Routing weights are
// excluded, because they select nothing.
class SlotIndex {
 public:
  explicit SlotIndex(const GraphTemplate& graph) {
    for (std::uint32_t i = 0; i < graph.slots.size(); ++i) {
      const Slot& slot = graph.slots[i];
      if (slot.kind == SlotKind::ExpertScores) continue;
      auto& map = slot.kind == SlotKind::AttendedCells ? masks_ : indices_;
      map.try_emplace(slot.tensor, SlotId{i});
    }
  }
  SlotId of(const Touch& touch) const {
    const auto& map = touch.extent == Extent::Cells ? masks_ : indices_;
    const auto found = map.find(touch.index);
    return found == map.end() ? kNoSlot : found->second;
  }

 private:
  std::unordered_map<TensorId, SlotId> indices_, masks_;
};

// All touches of an op's nodes, except those of tensors internal to the op: a fused
// RMS_NORM + MUL neither writes nor reads the norm.
std::vector<Touch> touches_of(const GraphTemplate& graph, const Op& op) {
  std::vector<Touch> out;
  std::vector<TensorId> inside;
  for (std::uint32_t n = op.first.v; n < op.first.v + op.nodes; ++n) {
    const Node& node = graph.node(NodeId{n});
    const bool last = n == op.last().v;
    for (const Touch& touch : touches_of(graph, node)) {
      const bool internal =
          touch.write ? !last : std::ranges::find(inside, graph.root(touch.tensor)) != inside.end();
      if (!internal) out.push_back(touch);
    }
    inside.push_back(graph.root(node.output));
  }
  return out;
}

// Each byte once per op: a touch that another of the same op covers is dropped.
std::vector<Touch> without_covered(const GraphTemplate& graph, const std::vector<Touch>& touches) {
  std::vector<Touch> out;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    bool covered = false;
    for (std::size_t j = 0; j < touches.size() && !covered; ++j) {
      // If two touches cover each other, the first is kept.
      covered = i != j && covers(graph, touches[j], touches[i]) &&
                (j < i || !covers(graph, touches[i], touches[j]));
    }
    if (!covered) out.push_back(touches[i]);
  }
  return out;
}

// Range in the GGUF of `length` bytes of a weight, `offset` bytes into this view.
FileRange file_range(const GraphTemplate& graph, TensorId tensor, std::uint64_t offset,
                     std::uint64_t length) {
  const FileRange& whole = graph.tensor(graph.root(tensor)).file;
  if (whole.empty()) return {};
  const std::uint64_t from = graph.tensor(tensor).view_offset + offset;
  if (from >= whole.length) return {};
  return {whole.file, whole.offset + from, std::min(length, whole.length - from)};
}

Access access_from(const GraphTemplate& graph, const SlotIndex& slots, OpId op,
                   const Touch& touch) {
  const Tensor& view = graph.tensor(touch.tensor);
  Access access{.op = op,
                .tensor = touch.tensor,
                .write = touch.write,
                .extent = touch.extent,
                .unit = Bytes{touch.unit},
                .range = file_range(graph, touch.tensor, 0, span_of(view))};
  if (touch.extent == Extent::All) return access;
  access.slot = slots.of(touch);
  access.stride = view.nb[static_cast<std::size_t>(touch.axis)];
  if (access.slot == kNoSlot) {
    // The list was not recorded: assume all listed parts are distinct, up to the whole view.
    const Tensor& index = graph.tensor(touch.index);
    const std::uint64_t whole = footprint(view);
    std::uint64_t listed = 1;  // unsigned: the product may overflow in an untrusted file
    for (const std::size_t d : {0U, 1U, 2U}) listed *= static_cast<std::uint64_t>(index.ne[d]);
    const bool bounded = touch.extent != Extent::Cells && listed < whole / touch.unit;
    access.extent = Extent::All;
    access.stride = 0;
    access.unit = Bytes{bounded ? listed * touch.unit : whole};
  }
  return access;
}

PartAxis axis_of(const GraphTemplate& graph, const Access& access) {
  if (access.extent == Extent::Experts) return PartAxis::Slice;
  return graph.node(graph.op(access.op).last()).op == "SSM_SCAN" ? PartAxis::Sequence
                                                                 : PartAxis::Row;
}

const SlotValues* values_of(const Step& step, SlotId slot) {
  if (slot.v >= step.slots.size() || step.slots[slot.v].ints.empty()) return nullptr;
  return &step.slots[slot.v];
}

struct RoutedExpert {
  std::int32_t id;
  std::int32_t rank;
  std::size_t at;  // index into the slot's values: the first with that rank
};

// Distinct experts, ascending, each with its best rank among the tokens.
std::vector<RoutedExpert> routed_experts(const Tensor& weight, const Tensor& ids,
                                         const std::vector<std::int64_t>& values) {
  const auto n_used = static_cast<std::size_t>(std::max<std::int64_t>(1, ids.ne[0]));
  std::vector<RoutedExpert> all;
  all.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= weight.ne[2]) continue;
    all.push_back({static_cast<std::int32_t>(values[i]), static_cast<std::int32_t>(i % n_used), i});
  }
  std::ranges::sort(all, {}, [](const RoutedExpert& e) { return std::tuple(e.id, e.rank, e.at); });
  const auto repeated = std::ranges::unique(all, {}, &RoutedExpert::id);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

// Whether each row is one access: rows of a weight matrix, each with its range in the GGUF.
bool is_row_by_row(const GraphTemplate& graph, const Access& access) {
  const Tensor& view = graph.tensor(access.tensor);
  return access.extent == Extent::Rows && !access.range.empty() && view.ne[2] == 1 &&
         view.ne[3] == 1;
}

// Distinct valid row numbers of the list, ascending.
std::vector<std::int64_t> distinct_rows(const Tensor& view, std::vector<std::int64_t> rows) {
  std::erase_if(rows, [&](std::int64_t row) { return row < 0 || row >= view.ne[1]; });
  std::ranges::sort(rows);
  const auto repeated = std::ranges::unique(rows);
  rows.erase(repeated.begin(), repeated.end());
  return rows;
}

// Bytes of accesses that depend on a slot. Caches the count of attended cells, which is the
// same for all layers with the same number of cells.
class TouchedParts {
 public:
  Bytes of(const GraphTemplate& graph, const Access& access, const SlotValues& values) {
    if (access.extent != Extent::Cells)
      return Bytes{access.unit.v * parts_of(graph, access, values.ints)};
    const std::int64_t limit = graph.tensor(access.tensor).ne[1];
    if (slot_ != access.slot || limit_ != limit) {
      slot_ = access.slot;
      limit_ = limit;
      cells_ = parts_of(graph, access, values.ints);
    }
    return Bytes{access.unit.v * cells_};
  }

 private:
  SlotId slot_ = kNoSlot;
  std::int64_t limit_ = 0;
  std::uint64_t cells_ = 0;
};

}  // namespace

std::vector<Access> accesses_of(const GraphTemplate& graph) {
  const SlotIndex slots(graph);
  std::vector<Access> out;
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    const std::size_t begin = out.size();
    for (const Touch& touch : without_covered(graph, touches_of(graph, graph.ops[i]))) {
      out.push_back(access_from(graph, slots, OpId{i}, touch));
    }
    std::stable_partition(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                          [](const Access& access) { return !access.write; });
  }
  return out;
}

PartRule part_rule(const GraphTemplate& graph, const Access& access) {
  const Tensor& view = graph.tensor(access.tensor);
  const PartAxis axis = axis_of(graph, access);
  PartRule rule{.slot = access.slot,
                .limit = view.ne[static_cast<std::size_t>(axis)],
                .separate = access.extent == Extent::Experts || is_row_by_row(graph, access)};
  if (access.extent == Extent::Rows && axis == PartAxis::Row) {
    if (view.ne[2] > 1 || view.ne[3] > 1) rule.batches = {view.ne[2], view.ne[3]};
  }
  return rule;
}

std::uint64_t parts_of(const GraphTemplate& graph, const Access& access,
                       std::span<const std::int64_t> values) {
  const Tensor& view = graph.tensor(access.tensor);
  const Tensor& index = graph.tensor(graph.slot(access.slot).tensor);
  if (access.extent != Extent::Cells)
    return distinct_parts(view, axis_of(graph, access), index, values);
  // A cell is one row of every head; one list applies to all heads.
  Tensor cells = view;
  cells.ne = {1, view.ne[1], 1, 1};
  return distinct_parts(cells, PartAxis::Row, index, values);
}

const SlotValues* scores_of(const GraphTemplate& graph, const Step& step, SlotId experts) {
  const Slot& ids = graph.slot(experts);
  const SlotValues* best = nullptr;
  std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t i = 0; i < graph.slots.size() && i < step.slots.size(); ++i) {
    const Slot& slot = graph.slots[i];
    if (slot.kind != SlotKind::ExpertScores || slot.layer != ids.layer) continue;
    const std::int64_t distance = std::abs(std::int64_t{slot.read_at.v} - ids.read_at.v);
    if (distance < nearest) {
      nearest = distance;
      best = &step.slots[i];
    }
  }
  return best;
}

void for_each_access(const GraphTemplate& graph, std::span<const Access> accesses, const Step& step,
                     const std::function<void(const StepAccess&)>& row) {
  const std::size_t n_ops = step.ops_run(graph.ops.size());
  TouchedParts parts;
  for (std::uint32_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.op.v >= n_ops) break;
    StepAccess out{.access = i,
                   .op = access.op,
                   .tensor = access.tensor,
                   .write = access.write,
                   .touched = access.unit,
                   .range = access.range,
                   .score = std::numeric_limits<float>::quiet_NaN()};
    if (access.slot == kNoSlot) {
      row(out);
      continue;
    }
    const SlotValues* values = values_of(step, access.slot);
    if (values == nullptr) continue;
    if (is_row_by_row(graph, access)) {
      for (const std::int64_t id : distinct_rows(graph.tensor(access.tensor), values->ints)) {
        out.range = file_range(graph, access.tensor, static_cast<std::uint64_t>(id) * access.stride,
                               access.unit.v);
        row(out);
      }
      continue;
    }
    if (access.extent != Extent::Experts) {
      out.touched = parts.of(graph, access, *values);
      if (out.touched.v > 0) row(out);
      continue;
    }
    const SlotValues* scores = scores_of(graph, step, access.slot);
    const Tensor& ids = graph.tensor(graph.slot(access.slot).tensor);
    for (const RoutedExpert& e : routed_experts(graph.tensor(access.tensor), ids, values->ints)) {
      out.expert = e.id;
      out.rank = e.rank;
      out.score = scores != nullptr && e.at < scores->floats.size()
                      ? scores->floats[e.at]
                      : std::numeric_limits<float>::quiet_NaN();
      out.range = file_range(graph, access.tensor, static_cast<std::uint64_t>(e.id) * access.stride,
                             access.unit.v);
      row(out);
    }
  }
}

std::uint64_t address_of(std::span<const std::uint64_t> addresses, const Access& access,
                         std::int32_t expert) {
  if (access.tensor.v >= addresses.size()) return 0;
  const std::uint64_t address = addresses[access.tensor.v];
  if (address == 0 || expert < 0) return address;
  return address + static_cast<std::uint64_t>(expert) * access.stride;
}

Bytes size_of(const Tensor& tensor) { return Bytes{span_of(tensor)}; }

AccessTotals totals_of(const GraphTemplate& graph, std::span<const Access> accesses,
                       const Step& step) {
  AccessTotals totals;
  const std::size_t n_ops = step.ops_run(graph.ops.size());
  TouchedParts parts;
  for (const Access& access : accesses) {
    if (access.op.v >= n_ops) break;
    std::uint64_t rows = 1;
    Bytes bytes = access.unit;
    if (access.slot != kNoSlot) {
      const SlotValues* values = values_of(step, access.slot);
      if (values == nullptr) continue;
      bytes = parts.of(graph, access, *values);
      if (bytes.v == 0) continue;
      if (access.extent == Extent::Experts || is_row_by_row(graph, access)) {
        rows = bytes.v / access.unit.v;
      }
    }
    totals.accesses += rows;
    (access.write ? totals.written : totals.read) += bytes;
  }
  return totals;
}

}  // namespace tt
