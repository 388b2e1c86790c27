#include "attach/collector/records.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <ranges>

namespace tt::attach {

namespace {

// Reads values from the front of bytes. After the first value that is missing, all are.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T value() {
    T out{};
    take(&out, sizeof out);
    return out;
  }
  template <class T>
  std::vector<T> values(std::size_t count) {
    if (count > bytes_.size() / sizeof(T)) {
      fail();
      return {};
    }
    std::vector<T> out(count);
    take(out.data(), count * sizeof(T));
    return out;
  }
  std::string text() {
    const auto length = value<std::uint32_t>();
    if (length > bytes_.size()) {
      fail();
      return {};
    }
    std::string out(reinterpret_cast<const char*>(bytes_.data()), length);
    skip(std::min<std::size_t>(padded(length, 4), bytes_.size()));
    return out;
  }
  void skip(std::size_t count) {
    if (count > bytes_.size()) return fail();
    bytes_ = bytes_.subspan(count);
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  void take(void* out, std::size_t count) {
    if (count > bytes_.size()) return fail();
    if (count > 0) std::memcpy(out, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
  }
  void fail() {
    ok_ = false;
    bytes_ = {};
  }
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

bool is_index(std::uint32_t index, std::size_t count) { return index == kNone || index < count; }

RawTensor parse_tensor(Cursor& in) {
  const auto record = in.value<TensorRecord>();
  RawTensor tensor;
  std::ranges::copy(record.ne, tensor.ne.begin());
  std::ranges::copy(record.nb, tensor.nb.begin());
  std::ranges::copy(record.params, tensor.params.begin());
  tensor.view_offset = record.view_offset;
  tensor.address = record.address;
  tensor.bytes = record.bytes;
  tensor.view_of = record.view_of;
  tensor.buffer = record.buffer;
  tensor.block_elements = record.block_elements;
  tensor.block_bytes = record.block_bytes;
  tensor.input = record.input != 0;
  tensor.computed = record.computed != 0;
  tensor.src = in.values<std::uint32_t>(record.sources);
  tensor.name = in.text();
  const std::string op = in.text(), description = in.text();
  tensor.op = op == "UNARY" || op == "GLU" ? std::format("{}({})", op, description) : op;
  tensor.type = in.text();
  return tensor;
}

bool is_consistent(const ListedGraph& listed) {
  const RawGraph& graph = listed.graph;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const RawTensor& tensor = graph.tensors[i];
    // An owner comes before its views.
    if (!is_index(tensor.view_of, i) || !is_index(tensor.buffer, graph.buffers.size()) ||
        !std::ranges::all_of(tensor.src,
                             [&](std::uint32_t s) { return is_index(s, graph.tensors.size()); }))
      return false;
  }
  if (!std::ranges::all_of(graph.nodes,
                           [&](std::uint32_t node) { return node < graph.tensors.size(); }))
    return false;
  std::uint64_t next = 0;
  for (const OpSpan& op : listed.ops) {
    if (op.nodes == 0 || op.first < next || std::uint64_t{op.first} + op.nodes > graph.nodes.size())
      return false;
    next = std::uint64_t{op.first} + op.nodes;
  }
  return true;
}

}  // namespace

std::optional<ListedGraph> parse_graph(std::span<const std::byte> body) {
  Cursor in(body);
  ListedGraph listed;
  listed.head = in.value<GraphRecord>();
  for (std::uint32_t i = 0; i < listed.head.buffers && in.ok(); ++i) {
    const auto record = in.value<BufferRecord>();
    RawBuffer buffer;
    buffer.size = record.size;
    buffer.usage = record.usage == 1   ? RawBuffer::Usage::Weights
                   : record.usage == 2 ? RawBuffer::Usage::Compute
                                       : RawBuffer::Usage::Any;
    buffer.host = record.host != 0;
    buffer.on_device = record.on_device != 0;
    buffer.name = in.text();
    buffer.device = in.text();
    listed.graph.buffers.push_back(std::move(buffer));
  }
  for (std::uint32_t i = 0; i < listed.head.tensors && in.ok(); ++i)
    listed.graph.tensors.push_back(parse_tensor(in));
  listed.graph.nodes = in.values<std::uint32_t>(listed.head.nodes);
  for (std::uint32_t i = 0; i < listed.head.ops && in.ok(); ++i) {
    const auto op = in.value<OpRecord>();
    listed.ops.push_back({.first = op.first, .nodes = op.nodes});
  }
  for (std::uint32_t i = 0; i < listed.head.backends && in.ok(); ++i)
    listed.backends.push_back(in.text());
  if (!in.ok() || !is_consistent(listed)) return std::nullopt;
  return listed;
}

std::optional<RunStep> parse_step(std::span<const std::byte> body) {
  Cursor in(body);
  RunStep step;
  step.head = in.value<StepRecord>();
  step.times = in.values<std::int64_t>(step.head.times);
  step.splits = in.values<SplitRecord>(step.head.splits);
  step.copies = in.values<CopyRecord>(step.head.copies);
  std::uint64_t copies = 0;
  for (const SplitRecord& split : step.splits) copies += split.copies;
  if (copies != step.copies.size()) return std::nullopt;
  for (std::uint32_t i = 0; i < step.head.slots && in.ok(); ++i) {
    const auto record = in.value<SlotRecord>();
    const std::size_t width = record.kind == SlotValuesKind::Int64 ? 8 : 4;
    if (record.bytes > in.left() || std::uint64_t{record.count} * width > record.bytes)
      return std::nullopt;
    CopiedList list{.tensor = record.tensor,
                    .first_cells = record.kind == SlotValuesKind::FirstCells,
                    .values = {}};
    switch (record.kind) {
      case SlotValuesKind::Float:
        list.values.floats = in.values<float>(record.count);
        break;
      case SlotValuesKind::Int64:
        list.values.ints = in.values<std::int64_t>(record.count);
        break;
      default:
        list.values.ints = in.values<std::int32_t>(record.count) |
                           std::views::transform([](std::int32_t v) { return std::int64_t{v}; }) |
                           std::ranges::to<std::vector>();
        break;
    }
    in.skip(record.bytes - record.count * width);
    step.lists.push_back(std::move(list));
  }
  if (!in.ok()) return std::nullopt;
  return step;
}

std::optional<FoundLibrary> parse_library(std::span<const std::byte> body) {
  Cursor in(body);
  FoundLibrary library;
  library.head = in.value<LibraryRecord>();
  library.version = in.text();
  library.path = in.text();
  return in.ok() ? std::optional(library) : std::nullopt;
}

std::optional<std::string> parse_text(std::span<const std::byte> body) {
  Cursor in(body);
  std::string text = in.text();
  return in.ok() ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<SchedulerRecord> parse_scheduler(std::span<const std::byte> body) {
  Cursor in(body);
  const auto record = in.value<SchedulerRecord>();
  return in.ok() ? std::optional(record) : std::nullopt;
}

}  // namespace tt::attach
