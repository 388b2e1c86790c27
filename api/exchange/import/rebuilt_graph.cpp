// Converts rows to a graph that produces the same accesses.
//
// The op name determines the byte rule of its accesses (docs/byte-rules.md); the rule of
// MUL_MAT, for example, would read whatever it finds in its sources. So the node with the op's
// name gets no sources and an empty output: it accesses nothing under any rule. The same op
// gets a second node named NONE that counts as computed. It reads each of its sources once and
// writes its output. Its sources are flat tensors of exactly the accessed size.
//
// What varies per step is left to the rules that use lists: the experts of MUL_MAT_ID, the
// rows of GET_ROWS and ADD_ID, the cells of FLASH_ATTN_EXT. The list tensors have elements of
// zero bytes, so reading a list is not an access; if it was one originally, it has its own
// row.
#include "api/exchange/import/rebuilt_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

namespace tt::exchange {
namespace {

constexpr std::int64_t kUnboundedCells = std::int64_t{1} << 31;
constexpr std::int64_t kUnboundedExperts = std::int64_t{1} << 16;

// Cells are listed individually. If a step has more cells than this, the row is treated as an
// access to all of a view of its size.
constexpr std::uint64_t kMaxListedCells = std::uint64_t{1} << 22;

// Rows of one op that are produced by one access of the template: a single row, or the rows of
// the experts or matrix rows of a weight.
struct Group {
  enum class Kind : std::uint8_t { Fixed, Experts, Rows, Cells } kind = Kind::Fixed;
  std::span<const ImportedRow> rows;
};

std::uint64_t base_of(const ImportedRow& row) {
  return row.tensor_file_offset.value_or(row.range.offset);
}

Group::Kind kind_of(const ImportedRow& row) {
  // A routing log has experts without sizes.
  if (row.expert >= 0 && !row.write) return Group::Kind::Experts;
  if (row.write || row.size_bytes == 0) return Group::Kind::Fixed;
  const std::uint64_t unit = row.unit_bytes;
  if (row.extent == Extent::Rows && !row.range.empty() && row.tensor_file_offset &&
      unit == row.size_bytes && row.tensor_bytes >= unit &&
      row.range.offset >= *row.tensor_file_offset &&
      (row.range.offset - *row.tensor_file_offset) % unit == 0)
    return Group::Kind::Rows;
  if (row.extent == Extent::Cells && row.range.empty() && unit > 0 && row.size_bytes % unit == 0)
    return Group::Kind::Cells;
  return Group::Kind::Fixed;
}

std::uint64_t cells_in(const ImportedRow& row) { return row.size_bytes / row.unit_bytes; }

bool same_access(const ImportedRow& a, const ImportedRow& b) {
  return a.tensor == b.tensor && a.tensor_name == b.tensor_name && a.size_bytes == b.size_bytes &&
         a.range.file == b.range.file && a.tensor_file_offset == b.tensor_file_offset;
}

std::vector<Group> groups_of(std::span<const ImportedRow> rows) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < rows.size();) {
    const Group::Kind kind = kind_of(rows[i]);
    std::size_t end = i + 1;
    const bool many = kind == Group::Kind::Experts || kind == Group::Kind::Rows;
    while (many && end < rows.size() && kind_of(rows[end]) == kind &&
           same_access(rows[i], rows[end]))
      ++end;
    groups.push_back({kind, rows.subspan(i, end - i)});
    i = end;
  }
  return groups;
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('+', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// The source indices of the tensor and of its list if an op of that name can have such a
// group.
struct SourceIndices {
  std::size_t tensor = 0, list = 0;
};
std::optional<SourceIndices> source_indices(std::string_view op, Group::Kind kind) {
  if (kind == Group::Kind::Experts && op == "MUL_MAT_ID")
    return SourceIndices{.tensor = 0, .list = 2};
  if (kind == Group::Kind::Rows && op == "GET_ROWS") return SourceIndices{.tensor = 0, .list = 1};
  if (kind == Group::Kind::Rows && op == "ADD_ID") return SourceIndices{.tensor = 1, .list = 2};
  if (kind == Group::Kind::Cells && op == "FLASH_ATTN_EXT")
    return SourceIndices{.tensor = 1, .list = 3};
  return std::nullopt;
}

class Rebuild {
 public:
  Rebuild(const ImportedStep& step, const SessionInfo& session) : session_(session) {
    const std::span<const ImportedRow> rows = step.rows;
    std::uint32_t ops = step.ops;
    for (const ImportedRow& row : rows) ops = std::max(ops, row.op + 1);
    std::size_t at = 0;
    for (std::uint32_t op = 0; op < ops; ++op) {
      std::size_t end = at;
      while (end < rows.size() && rows[end].op <= op) ++end;
      add_op(rows.subspan(at, end - at));
      at = end;
    }
    finish();
  }
  RebuiltGraph take() { return std::move(out_); }

 private:
  GraphTemplate& graph() { return out_.graph; }

  TensorId add(Tensor tensor, std::uint64_t address) {
    graph().tensors.push_back(std::move(tensor));
    out_.addresses.push_back(address);
    return TensorId{static_cast<std::uint32_t>(graph().tensors.size() - 1)};
  }

  static Tensor described(const ImportedRow& row) {
    Tensor t;
    t.name = row.tensor_name;
    t.type = row.tensor_type;
    t.block_elements = t.block_bytes = 1;
    t.kind = row.kind;
    t.source = row.source;
    t.layer = row.layer;
    t.component = row.component;
    t.role = row.role;
    return t;
  }
  static void shape(Tensor& t, std::uint64_t n0, std::uint64_t n1, std::uint64_t n2,
                    std::uint64_t stride1, std::uint64_t stride2) {
    const auto ne = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    t.ne = {ne(n0), ne(n1), ne(n2), 1};
    t.nb = {1, stride1, stride2, stride2 * n2};
  }

  // A tensor of exactly the accessed bytes that spans the same file range.
  TensorId fixed(const ImportedRow& row) {
    const std::uint64_t n = row.size_bytes, length = row.range.length;
    const auto key = std::tuple(row.tensor, row.tensor_name, n, row.range.file, row.range.offset,
                                length, row.write, row.address);
    if (const auto known = fixed_.find(key); known != fixed_.end()) return known->second;
    Tensor t = described(row);
    if (length > n && n % 2 == 0) {
      shape(t, n / 2, 2, 1, length - n / 2, length);
    } else {
      shape(t, n, 1, 1, n, n);
    }
    t.file = row.range;
    return fixed_[key] = add(std::move(t), row.address);
  }

  TensorId empty_output() {
    if (empty_ == kNoTensor) {
      Tensor t;
      t.name = "imported";
      t.ne = {0, 1, 1, 1};
      empty_ = add(std::move(t), 0);
    }
    return empty_;
  }
  // A list that selects what is accessed; its elements have zero bytes.
  TensorId list(SlotKind kind, std::int64_t columns, LayerId layer, SlotValues values) {
    Tensor t;
    t.name = std::string("imported ") + to_text(kind);
    t.type = "i32";
    t.block_bytes = 0;
    t.kind = TensorKind::Input;
    t.source = Source::Input;
    t.component = Component::Input;
    t.ne = {columns, 1, 1, 1};
    const TensorId id = add(std::move(t), 0);
    graph().slots.push_back({.kind = kind,
                             .tensor = id,
                             .read_at = OpId{static_cast<std::uint32_t>(graph().ops.size())},
                             .layer = layer});
    out_.slots.push_back(std::move(values));
    return id;
  }

  void node(std::string_view op, TensorId output, std::vector<TensorId> sources) {
    Node node;
    node.op = op;
    node.output = output;
    node.src = std::move(sources);
    graph().nodes.push_back(std::move(node));
  }

  // Each expert in the column of its rank, one line per token; the rank with the most experts
  // determines the number of lines. Unused entries are -1.
  TensorId experts(const Group& group, std::vector<TensorId>& sources) {
    const ImportedRow& first = group.rows.front();
    const std::uint64_t unit = first.size_bytes;
    // The value in the session metadata is untrusted.
    std::int64_t used = std::clamp<std::int64_t>(session_.n_experts_used, 1, kMaxRanks);
    std::map<std::int32_t, std::size_t> lines;
    std::size_t max_lines = 0;
    for (const ImportedRow& row : group.rows) {
      used = std::max(used, std::int64_t{row.rank} + 1);
      max_lines = std::max(max_lines, ++lines[row.rank]);
    }
    const auto columns = static_cast<std::size_t>(used);
    SlotValues ids, scores;
    ids.ints.assign(columns * max_lines, -1);
    scores.floats.assign(columns * max_lines, std::numeric_limits<float>::quiet_NaN());
    lines.clear();
    bool scored = false;
    for (const ImportedRow& row : group.rows) {
      const std::size_t column = static_cast<std::size_t>(std::max(row.rank, 0));
      const std::size_t at = lines[row.rank]++ * columns + column;
      ids.ints[at] = row.expert;
      scores.floats[at] = row.score;
      scored |= !std::isnan(row.score);
    }
    Tensor t = described(first);
    const auto experts =
        static_cast<std::uint64_t>(unit > 0 && first.tensor_bytes >= unit
                                       ? static_cast<std::int64_t>(first.tensor_bytes / unit)
                                   : session_.n_experts > 0 ? session_.n_experts
                                                            : kUnboundedExperts);
    shape(t, unit, 1, experts, unit, unit);
    const auto before = static_cast<std::uint64_t>(first.expert) * unit;
    if (!first.range.empty()) {
      const std::uint64_t base = first.tensor_file_offset.value_or(first.range.offset - before);
      t.file = {first.range.file, base, experts * unit};
    }
    sources[0] = add(std::move(t), first.address == 0 ? 0 : first.address - before);
    // Gate, up and down of a layer are selected by one router: equal choices are one list.
    if (chosen_.list != kNoTensor && chosen_.layer == first.op_layer && chosen_.ids == ids.ints)
      return chosen_.list;
    chosen_ = {.layer = first.op_layer, .ids = ids.ints, .list = kNoTensor};
    // The slot is kept even without scores so that all steps have the same graph.
    if (!scored) scores.floats.clear();
    list(SlotKind::ExpertScores, used, first.op_layer, std::move(scores));
    return chosen_.list = list(SlotKind::Experts, used, first.op_layer, std::move(ids));
  }

  TensorId rows(const Group& group, std::vector<TensorId>& sources, std::size_t place) {
    const ImportedRow& first = group.rows.front();
    const std::uint64_t unit = first.unit_bytes, base = base_of(first);
    Tensor t = described(first);
    shape(t, unit, first.tensor_bytes / unit, 1, unit, first.tensor_bytes);
    t.file = {first.range.file, base, first.tensor_bytes};
    sources[place] = add(std::move(t), first.address);
    SlotValues values;
    for (const ImportedRow& row : group.rows)
      values.ints.push_back(static_cast<std::int64_t>((row.range.offset - base) / unit));
    return list(SlotKind::Rows, 1, first.op_layer, std::move(values));
  }

  TensorId cells(const ImportedRow& row) {
    Tensor t = described(row);
    shape(t, row.unit_bytes, static_cast<std::uint64_t>(kUnboundedCells), 1, row.unit_bytes, 0);
    return add(std::move(t), row.address);
  }
  TensorId cell_list(const ImportedRow& row) {
    SlotValues values;
    const std::uint64_t count = cells_in(row);
    listed_cells_ += count;
    for (std::uint64_t i = 0; i < count; ++i) values.ints.push_back(static_cast<std::int64_t>(i));
    return list(SlotKind::AttendedCells, 1, row.op_layer, std::move(values));
  }

  void add_op(std::span<const ImportedRow> rows) {
    const auto first_node = static_cast<std::uint32_t>(graph().nodes.size());
    const std::vector<std::string_view> words =
        rows.empty() ? std::vector<std::string_view>{"NONE"} : words_of(rows[0].operation_type);
    std::size_t word = 0;
    std::vector<TensorId> reads;
    TensorId written = kNoTensor;
    const auto flush = [&] {
      if (!reads.empty()) node("NONE", empty_output(), std::exchange(reads, {}));
    };
    const std::vector<Group> groups = groups_of(rows);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Group& group = groups[g];
      std::size_t at = word;
      std::optional<SourceIndices> places;
      for (; at < words.size() && !places; ++at) places = source_indices(words[at], group.kind);
      if (group.kind == Group::Kind::Cells &&
          cells_in(group.rows.front()) > kMaxListedCells - listed_cells_)
        places.reset();
      if (!places) {
        for (const ImportedRow& row : group.rows) {
          if (row.size_bytes == 0) continue;
          if (row.write && written == kNoTensor) {
            written = fixed(row);
          } else {
            reads.push_back(fixed(row));
          }
        }
        continue;
      }
      flush();
      for (; word + 1 < at; ++word) node(words[word], empty_output(), {});
      word = at;
      std::vector<TensorId> sources(places->list + 1, kNoTensor);
      if (group.kind == Group::Kind::Experts) {
        sources[places->list] = experts(group, sources);
      } else if (group.kind == Group::Kind::Rows) {
        sources[places->list] = this->rows(group, sources, places->tensor);
      } else {
        const ImportedRow& keys = group.rows.front();
        sources[1] = cells(keys);
        // The V cells of the same attention follow the K cells and share the mask.
        const ImportedRow* values = g + 1 < groups.size() ? &groups[g + 1].rows.front() : nullptr;
        if (values != nullptr && groups[g + 1].kind == Group::Kind::Cells &&
            cells_in(*values) == cells_in(keys)) {
          sources[2] = cells(*values);
          ++g;
        }
        sources[places->list] = cell_list(keys);
      }
      node(words[at - 1], empty_output(), std::move(sources));
    }
    for (; word < words.size(); ++word) node(words[word], empty_output(), {});
    if (!reads.empty() || written != kNoTensor) {
      node("NONE", written == kNoTensor ? empty_output() : written, std::move(reads));
    }
    graph().ops.push_back({.first = NodeId{first_node},
                           .nodes = static_cast<std::uint32_t>(graph().nodes.size()) - first_node,
                           .device = rows.empty() ? std::string() : rows[0].device,
                           .layer = rows.empty() ? kNoLayer : rows[0].op_layer});
  }

  // The fingerprint of an imported graph is a hash of its whole content.
  void finish() {
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto number = [&](std::uint64_t v) {
      for (int i = 0; i < 8; ++i, v >>= 8) hash = (hash ^ (v & 0xFF)) * 0x100000001b3u;
    };
    const auto text = [&](const std::string& s) {
      number(s.size());
      number(std::hash<std::string>{}(s));
    };
    for (const Tensor& t : graph().tensors) {
      text(t.name);
      text(t.type);
      for (const std::int64_t ne : t.ne) number(static_cast<std::uint64_t>(ne));
      for (const std::uint64_t nb : t.nb) number(nb);
      number(static_cast<std::uint64_t>(t.kind) << 32 | static_cast<std::uint64_t>(t.source) << 24 |
             static_cast<std::uint64_t>(t.component) << 16 | static_cast<std::uint64_t>(t.role));
      number(static_cast<std::uint64_t>(t.layer.v));
      number(t.file.file);
      number(t.file.offset);
      number(t.file.length);
      number(t.block_bytes);
    }
    for (const Node& n : graph().nodes) {
      text(n.op);
      number(n.output.v);
      for (const TensorId source : n.src) number(source.v);
    }
    for (const Op& op : graph().ops) {
      number(op.first.v);
      number(op.nodes);
      text(op.device);
      number(static_cast<std::uint64_t>(op.layer.v));
    }
    for (const Slot& slot : graph().slots) {
      number(static_cast<std::uint64_t>(slot.kind));
      number(slot.tensor.v);
      number(slot.read_at.v);
    }
    graph().fingerprint = hash;
  }

  // The choices of the last router.
  struct Chosen {
    LayerId layer = kNoLayer;
    std::vector<std::int64_t> ids{};
    TensorId list = kNoTensor;
  };
  Chosen chosen_;
  const SessionInfo& session_;
  RebuiltGraph out_;
  TensorId empty_ = kNoTensor;
  std::uint64_t listed_cells_ = 0;
  std::map<std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint32_t, std::uint64_t,
                      std::uint64_t, bool, std::uint64_t>,
           TensorId>
      fixed_;
};

}  // namespace

RebuiltGraph rebuilt_graph(const ImportedStep& step, const SessionInfo& session) {
  return Rebuild(step, session).take();
}

}  // namespace tt::exchange
