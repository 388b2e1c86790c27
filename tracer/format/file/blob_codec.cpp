#include "tracer/format/file/blob_codec.h"
#include "tracer/format/model/captured_kinds.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace tt {

namespace {

// Minimum size of each item in a blob, to check counts before allocating.
constexpr std::size_t kTensorBytes = 24, kNodeBytes = 5, kOpBytes = 4, kSlotBytes = 4,
                      kSlotValuesBytes = 2, kStatsBytes = 19;

// ---------------------------------------------------------------------------
// Templates, allocations and captured values are zstd frames. The output is allocated by the
// content size in the frame, after it was checked against the limit.

std::expected<Blob, DecodeError> compress(std::span<const std::byte> raw, int level = 6,
                                          std::size_t max_bytes = kMaxUnpackedBytes) {
  if (raw.size() > max_bytes)
    return std::unexpected(DecodeError{"larger than the format allows", raw.size()});
  Blob out(ZSTD_compressBound(raw.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), level);
  if (ZSTD_isError(n)) return std::unexpected(DecodeError{"zstd could not compress", 0});
  out.resize(n);
  return out;
}

std::expected<Blob, DecodeError> decompress(std::span<const std::byte> frame,
                                            std::size_t max_bytes = kMaxUnpackedBytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
    return std::unexpected(DecodeError{"not a zstd frame", 0});
  if (size > max_bytes) return std::unexpected(DecodeError{"larger than the format allows", 0});
  Blob out(static_cast<std::size_t>(size));
  const std::size_t n = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) || n != out.size())
    return std::unexpected(DecodeError{"invalid zstd frame", 0});
  return out;
}

// ---------------------------------------------------------------------------
// Template

std::size_t size_of(const GraphTemplate& graph, const Op& op) {
  std::size_t parts = op.nodes;
  for (std::uint32_t n = op.first.v; parts <= kMaxOpParts && n <= op.last().v; ++n)
    parts += graph.nodes[n].src.size();
  return parts;
}

// Checks that every index is in range; returns the error text, or null.
const char* find_error(const GraphTemplate& graph) {
  const auto no_tensor = [&](TensorId id) { return id.v >= graph.tensors.size(); };
  for (const Tensor& t : graph.tensors)
    if (t.view_of != kNoTensor && no_tensor(t.view_of)) return "a view of an unknown tensor";
  for (const Node& n : graph.nodes) {
    if (no_tensor(n.output)) return "a node without a valid output";
    for (const TensorId src : n.src)
      if (src != kNoTensor && no_tensor(src)) return "a source that is not a tensor";
  }
  std::size_t end = 0, pairs = 0;
  for (const Op& op : graph.ops) {
    if (op.nodes == 0 || op.first.v >= graph.nodes.size() ||
        op.nodes > graph.nodes.size() - op.first.v)
      return "an op without valid nodes";
    if (op.first.v < end) return "ops overlap or are not in order";
    end = std::size_t{op.last().v} + 1;
    // Deriving accesses compares each pair of an op's parts.
    const std::size_t parts = size_of(graph, op);
    pairs += parts * parts;
    if (parts > kMaxOpParts || pairs > kMaxOpPairs) return "too many nodes and sources in ops";
  }
  for (const Slot& s : graph.slots) {
    if (no_tensor(s.tensor)) return "a slot of an unknown tensor";
    if (s.read_at.v != kNone && s.read_at.v >= graph.ops.size())
      return "a slot read at an unknown op";
  }
  return nullptr;
}

void put(ByteWriter& out, const Tensor& t) {
  out.text(t.name);
  out.text(t.type);
  out.varint(t.block_elements);
  out.varint(t.block_bytes);
  for (const std::int64_t ne : t.ne) out.zigzag(ne);
  for (const std::uint64_t nb : t.nb) out.varint(nb);
  out.ref(t.view_of.v, kNone);
  out.varint(t.view_offset);
  out.text(t.buffer);
  out.u8(std::to_underlying(t.kind));
  out.u8(std::to_underlying(t.source));
  out.u8(std::to_underlying(t.component));
  out.u8(std::to_underlying(t.role));
  out.u8(std::to_underlying(t.input));
  out.zigzag(t.layer.v);
  out.varint(t.file.file);
  out.varint(t.file.offset);
  out.varint(t.file.length);
}

Tensor get_tensor(ByteReader& in) {
  Tensor t;
  t.name = in.text();
  t.type = in.text();
  t.block_elements = in.varint32();
  t.block_bytes = in.varint32();
  for (std::int64_t& ne : t.ne) ne = in.zigzag();
  for (std::uint64_t& nb : t.nb) nb = in.varint();
  t.view_of = TensorId{in.ref(kNone)};
  t.view_offset = in.varint();
  t.buffer = in.text();
  t.kind = in.enum_value(TensorKind::Input);
  t.source = in.enum_value(Source::Buffer);
  t.component = in.enum_value(Component::Input);
  t.role = in.enum_value(Role::Logits);
  t.input = in.enum_value(InputLabel::Other);
  t.layer = LayerId{in.zigzag32()};
  t.file.file = in.varint32();
  t.file.offset = in.varint();
  t.file.length = in.varint();
  return t;
}

void put(ByteWriter& out, const Node& n) {
  out.varint(n.output.v);
  out.text(n.op);
  out.varint(n.src.size());
  for (const TensorId src : n.src) out.ref(src.v, kNone);
  const auto last = std::find_if(n.params.rbegin(), n.params.rend(), [](auto p) { return p != 0; });
  const auto used = static_cast<std::size_t>(n.params.rend() - last);
  out.varint(used);
  for (std::size_t i = 0; i < used; ++i) out.zigzag(n.params[i]);
  out.u8(n.computed ? 1 : 0);
}

Node get_node(ByteReader& in) {
  Node n;
  n.output = TensorId{in.varint32()};
  n.op = in.text();
  n.src.resize(in.count(1));
  for (TensorId& src : n.src) src = TensorId{in.ref(kNone)};
  const std::size_t used = in.count(1);
  if (used > n.params.size()) in.fail("too many op parameters");
  for (std::size_t i = 0; in.ok() && i < used; ++i) n.params[i] = in.zigzag32();
  n.computed = in.u8() != 0;
  return n;
}

void put(ByteWriter& out, const Op& op) {
  out.varint(op.first.v);
  out.varint(op.nodes);
  out.text(op.device);
  out.zigzag(op.layer.v);
}

Op get_op(ByteReader& in) {
  Op op;
  op.first = NodeId{in.varint32()};
  op.nodes = in.varint32();
  op.device = in.text();
  op.layer = LayerId{in.zigzag32()};
  return op;
}

void put(ByteWriter& out, const Slot& s) {
  out.u8(std::to_underlying(s.kind));
  out.varint(s.tensor.v);
  out.ref(s.read_at.v, kNone);
  out.zigzag(s.layer.v);
}

Slot get_slot(ByteReader& in) {
  Slot s{};
  s.kind = in.enum_value(SlotKind::AttendedCells);
  s.tensor = TensorId{in.varint32()};
  s.read_at = OpId{in.ref(kNone)};
  s.layer = LayerId{in.zigzag32()};
  return s;
}

template <class T>
void put_all(ByteWriter& out, const std::vector<T>& items) {
  out.varint(items.size());
  for (const T& item : items) put(out, item);
}

template <class T>
std::vector<T> get_all(ByteReader& in, std::size_t bytes_each, T (*get)(ByteReader&)) {
  const std::size_t n = in.count(bytes_each);
  std::vector<T> items;
  items.reserve(n);
  for (std::size_t i = 0; in.ok() && i < n; ++i) items.push_back(get(in));
  return items;
}

// ---------------------------------------------------------------------------
// Step

std::int64_t wrapping_sub(std::int64_t a, std::int64_t b) {  // wraps
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {  // wraps
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void put_list(ByteWriter& out, std::span<const std::int64_t> values) {
  ByteWriter singles, runs;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < values.size();) {
    const std::int64_t delta = wrapping_sub(values[i], before);
    std::size_t run = 0;
    for (; i < values.size() && wrapping_sub(values[i], before) == delta; ++i, ++run) {
      singles.zigzag(delta);
      before = values[i];
    }
    runs.zigzag(delta);
    runs.varint(run);
  }
  const bool as_runs = runs.size() < singles.size();
  out.varint(values.size() * 2 + (as_runs ? 1 : 0));
  out.append(as_runs ? runs.bytes() : singles.bytes());
}

struct ListHead {
  std::size_t values = 0;
  bool as_runs = false;
};

ListHead get_list_head(ByteReader& in, std::size_t& values_left) {
  const std::uint64_t head = in.varint();
  const bool as_runs = (head & 1) != 0;
  if (head / 2 > values_left || (!as_runs && head / 2 > in.remaining())) {
    in.fail("too many slot values");
    return {};
  }
  const auto n = static_cast<std::size_t>(head / 2);
  values_left -= n;
  return {n, as_runs};
}

// Calls `each(delta, count)` for each run: `count` numbers, each `delta` more than the previous.
template <class Each>
void for_each_run(ByteReader& in, const ListHead& head, Each each) {
  if (!head.as_runs)
    return in.zigzags(head.values, [&](std::int64_t delta) { each(delta, std::uint64_t{1}); });
  for (std::size_t done = 0; in.ok() && done < head.values;) {
    const std::int64_t delta = in.zigzag();
    const std::uint64_t count = in.varint();
    if (count == 0 || count > head.values - done) return in.fail("a run exceeds its list");
    each(delta, count);
    done += static_cast<std::size_t>(count);
  }
}

std::vector<std::int64_t> get_list(ByteReader& in, std::size_t& values_left) {
  const ListHead head = get_list_head(in, values_left);
  std::vector<std::int64_t> values;
  values.reserve(head.values);
  std::int64_t value = 0;
  for_each_run(in, head, [&](std::int64_t delta, std::uint64_t count) {
    for (; count > 0; --count) values.push_back(value = wrapping_add(value, delta));
  });
  return values;
}

// Decodes a list as runs, without expanding them.
void get_runs(ByteReader& in, StepOutline& out, std::size_t& values_left) {
  const ListHead head = get_list_head(in, values_left);
  StepOutline::Slot slot{.values = head.values, .first_run = out.runs.size()};
  std::int64_t value = 0;
  for_each_run(in, head, [&](std::int64_t delta, std::uint64_t count) {
    out.runs.push_back({.first = wrapping_add(value, delta), .delta = delta, .count = count});
    const std::uint64_t moved = static_cast<std::uint64_t>(delta) * count;
    value = wrapping_add(value, static_cast<std::int64_t>(moved));
  });
  slot.runs = out.runs.size() - slot.first_run;
  out.slots.push_back(slot);
}

// Decodes a list as a bit set of the numbers below `limit`.
void get_words(ByteReader& in, StepOutline& out, std::size_t& values_left, std::uint32_t limit) {
  const ListHead head = get_list_head(in, values_left);
  StepOutline::Slot slot{
      .values = head.values, .first_word = out.words.size(), .words = (limit + 63U) / 64};
  out.words.resize(slot.first_word + slot.words);
  std::uint64_t* const words = out.words.data() + slot.first_word;
  std::uint64_t value = 0, distinct = 0;
  for_each_run(in, head, [&](std::int64_t delta, std::uint64_t count) {
    for (; count > 0; --count) {
      value += static_cast<std::uint64_t>(delta);
      if (value >= limit) continue;
      std::uint64_t& word = words[value / 64];
      distinct += (word >> (value % 64) & 1) ^ 1;
      word |= std::uint64_t{1} << (value % 64);
    }
  });
  slot.distinct = distinct;
  out.slots.push_back(slot);
}

std::vector<float> get_floats(ByteReader& in, std::size_t& values_left) {
  const std::size_t n = in.count(4);
  if (n > values_left) {
    in.fail("too many slot values");
    return {};
  }
  values_left -= n;
  std::vector<float> values(n);
  for (float& v : values) v = in.f32();
  return values;
}

}  // namespace

std::expected<Blob, DecodeError> pack_template(const GraphTemplate& graph) {
  if (const char* fault = find_error(graph)) return std::unexpected(DecodeError{fault, 0});
  ByteWriter out;
  put_all(out, graph.tensors);
  put_all(out, graph.nodes);
  put_all(out, graph.ops);
  put_all(out, graph.slots);
  return compress(out.bytes());
}

std::expected<GraphTemplate, DecodeError> unpack_template(std::span<const std::byte> blob) {
  const auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  ByteReader in(*raw);
  GraphTemplate graph;
  graph.tensors = get_all(in, kTensorBytes, get_tensor);
  graph.nodes = get_all(in, kNodeBytes, get_node);
  graph.ops = get_all(in, kOpBytes, get_op);
  graph.slots = get_all(in, kSlotBytes, get_slot);
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  if (const char* fault = find_error(graph))
    return std::unexpected(DecodeError{fault, raw->size()});
  return graph;
}

std::expected<Blob, DecodeError> pack_addresses(std::span<const std::uint64_t> addresses) {
  ByteWriter out;
  out.varint(addresses.size());
  std::uint64_t before = 0;
  for (const std::uint64_t a : addresses) {
    out.zigzag(static_cast<std::int64_t>(a - before));
    before = a;
  }
  return compress(out.bytes());
}

std::expected<std::vector<std::uint64_t>, DecodeError> unpack_addresses(
    std::span<const std::byte> blob) {
  const auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  ByteReader in(*raw);
  std::vector<std::uint64_t> addresses(in.count(1));
  std::uint64_t value = 0;
  for (std::uint64_t& a : addresses) a = value += static_cast<std::uint64_t>(in.zigzag());
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return addresses;
}

std::expected<Blob, DecodeError> pack_faults(const StepFaults& faults, Ns begin) {
  if (faults.faults.size() > kMaxStepFaults)
    return std::unexpected(DecodeError{"more page faults than the format allows", 0});
  ByteWriter out;
  out.varint(faults.faults.size());
  PageFault before{.at = begin};
  for (const PageFault& fault : faults.faults) {
    out.varint(static_cast<std::uint64_t>(wrapping_sub(fault.at.v, before.at.v)));
    out.zigzag(static_cast<std::int64_t>(fault.address - before.address));
    before = fault;
  }
  return out.take();
}

std::expected<std::vector<PageFault>, DecodeError> unpack_faults(std::span<const std::byte> blob,
                                                                 Ns begin) {
  ByteReader in(blob);
  const auto n = in.count(2);
  if (n > kMaxStepFaults) in.fail("more page faults than the format allows");
  std::vector<PageFault> faults(in.ok() ? n : 0);
  PageFault before{.at = begin};
  for (PageFault& fault : faults) {
    fault.at = Ns{wrapping_add(before.at.v, static_cast<std::int64_t>(in.varint()))};
    fault.address = before.address + static_cast<std::uint64_t>(in.zigzag());
    before = fault;
  }
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return faults;
}

std::expected<Blob, DecodeError> pack_ranges(std::span<const FileRange> ranges) {
  if (ranges.size() > kMaxResidentRanges)
    return std::unexpected(DecodeError{"more ranges than the format allows", 0});
  ByteWriter out;
  out.varint(ranges.size());
  std::uint64_t end = 0;
  for (const FileRange& range : ranges) {
    out.varint(range.file);
    out.zigzag(static_cast<std::int64_t>(range.offset - end));
    out.varint(range.length);
    end = range.offset + range.length;
  }
  return out.take();
}

std::expected<std::vector<FileRange>, DecodeError> unpack_ranges(std::span<const std::byte> blob) {
  ByteReader in(blob);
  const auto n = in.count(3);
  if (n > kMaxResidentRanges) in.fail("more ranges than the format allows");
  std::vector<FileRange> ranges(in.ok() ? n : 0);
  std::uint64_t end = 0;
  for (FileRange& range : ranges) {
    range.file = in.varint32();
    range.offset = end + static_cast<std::uint64_t>(in.zigzag());
    range.length = in.varint();
    end = range.offset + range.length;
  }
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return ranges;
}

std::expected<Blob, DecodeError> pack_splits(const StepSplits& splits, Ns begin) {
  std::size_t copies = 0;
  for (const BackendSplit& split : splits.splits) copies += split.copies.size();
  if (splits.splits.size() > kMaxStepSplits || copies > kMaxStepCopies ||
      splits.backends.size() > kMaxBackends)
    return std::unexpected(DecodeError{"more splits than the format allows", 0});
  ByteWriter out;
  std::int64_t before = begin.v;
  const auto put_time = [&](Ns at) {
    out.zigzag(wrapping_sub(at.v, before));
    before = at.v;
  };
  out.varint(splits.backends.size());
  for (const std::string& name : splits.backends) out.text(name);
  out.varint(splits.splits.size());
  for (const BackendSplit& split : splits.splits) {
    out.varint(split.backend);
    out.varint(split.first.v);
    out.varint(split.ops);
    out.varint(split.copies.size());
    for (const BackendCopy& copy : split.copies) {
      out.ref(copy.tensor.v, kNone);
      out.ref(copy.from, kNone);
      out.varint(copy.bytes);
      put_time(copy.begin);
      put_time(copy.end);
      out.varint(static_cast<std::uint64_t>(copy.wait.v));
      out.u8(copy.complete ? 1 : 0);
    }
    put_time(split.begin);
    put_time(split.end);
    out.u8(split.done ? 1 : 0);
    if (split.done) out.zigzag(wrapping_sub(split.done->v, split.end.v));
  }
  return out.take();
}

std::expected<StepSplits, DecodeError> unpack_splits(std::span<const std::byte> blob, Ns begin) {
  ByteReader in(blob);
  StepSplits out;
  std::int64_t before = begin.v;
  const auto time = [&] {
    before = wrapping_add(before, in.zigzag());
    return Ns{before};
  };
  const auto flag = [&] {
    const std::uint8_t value = in.u8();
    if (value > 1) in.fail("a flag is neither 0 nor 1");
    return value == 1;
  };
  const auto n_backends = in.count(1);
  if (n_backends > kMaxBackends) in.fail("more backends than the format allows");
  out.backends.resize(in.ok() ? n_backends : 0);
  for (std::string& name : out.backends) name = in.text();
  const auto n_splits = in.count(7);
  if (n_splits > kMaxStepSplits) in.fail("more splits than the format allows");
  out.splits.resize(in.ok() ? n_splits : 0);
  std::size_t copies = 0;
  for (BackendSplit& split : out.splits) {
    split.backend = in.varint32();
    if (split.backend >= out.backends.size()) in.fail("a backend does not exist");
    split.first = OpId{in.varint32()};
    split.ops = in.varint32();
    const auto n_copies = in.count(7);
    copies += n_copies;
    if (copies > kMaxStepCopies) in.fail("more copies than the format allows");
    split.copies.resize(in.ok() ? n_copies : 0);
    for (BackendCopy& copy : split.copies) {
      copy.tensor = TensorId{in.ref(kNone)};
      copy.from = in.ref(kNone);
      if (copy.from != kNone && copy.from >= out.backends.size())
        in.fail("a backend does not exist");
      copy.bytes = in.varint();
      copy.begin = time();
      copy.end = time();
      copy.wait = Ns{static_cast<std::int64_t>(in.varint())};
      copy.complete = flag();
    }
    split.begin = time();
    split.end = time();
    if (flag()) split.done = Ns{wrapping_add(split.end.v, in.zigzag())};
  }
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return out;
}

std::expected<Blob, DecodeError> pack_step(const Step& step) {
  std::size_t values = 0;
  for (const SlotValues& slot : step.slots) values += slot.ints.size() + slot.floats.size();
  if (values > kMaxStepValues)
    return std::unexpected(DecodeError{"more slot values than the format allows", 0});

  ByteWriter out;
  out.varint(step.op_ends.size());
  std::int64_t before = step.first_op.v;
  for (const Ns end : step.op_ends) {
    out.varint(static_cast<std::uint64_t>(wrapping_sub(end.v, before)));
    before = end.v;
  }
  out.varint(step.slots.size());
  for (const SlotValues& slot : step.slots) {
    put_list(out, slot.ints);
    out.varint(slot.floats.size());
    for (const float v : slot.floats) out.f32(v);
  }
  out.varint(step.stats.size());
  for (const ValueStats& s : step.stats) {
    out.varint(s.op.v);
    for (const float v : {s.min, s.max, s.mean, s.std}) out.f32(v);
    out.varint(s.nan);
    out.varint(s.inf);
  }
  return out.take();
}

std::expected<void, DecodeError> unpack_step(std::span<const std::byte> blob, Step& step) {
  ByteReader in(blob);
  step.op_ends.assign(in.count(1), Ns{});
  std::int64_t value = step.first_op.v;
  for (Ns& end : step.op_ends)
    end = Ns{value = wrapping_add(value, static_cast<std::int64_t>(in.varint()))};

  std::size_t values_left = kMaxStepValues;
  step.slots.assign(in.count(kSlotValuesBytes), SlotValues{});
  for (SlotValues& slot : step.slots) {
    if (!in.ok()) break;
    slot.ints = get_list(in, values_left);
    slot.floats = get_floats(in, values_left);
  }
  step.stats.assign(in.count(kStatsBytes), ValueStats{});
  for (ValueStats& s : step.stats) {
    if (!in.ok()) break;
    s.op = OpId{in.varint32()};
    for (float* v : {&s.min, &s.max, &s.mean, &s.std}) *v = in.f32();
    s.nan = in.varint();
    s.inf = in.varint();
  }
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return {};
}

namespace {

// Level 1: values hardly compress better with more time.
constexpr int kValuesLevel = 1;
constexpr std::size_t kOutputBytes = 5;  // at least, without values; at most 10 bytes per number
constexpr std::size_t kMaxValuesBytes =
    10 + kMaxCapturedOutputs * 5 * 10 + kMaxCapturedValues * sizeof(float);
static_assert(std::endian::native == std::endian::little,
              "values are stored as they are in memory");

// The number of elements; nullopt: more than a step may have.
std::optional<std::size_t> elements(const OutputValues& output) {
  std::uint64_t n = 1;
  for (const std::uint64_t ne : output.ne) {
    if (ne > kMaxCapturedValues) return std::nullopt;
    n *= ne;
    if (n > kMaxCapturedValues) return std::nullopt;
  }
  return n;
}

// The first number of an output in the blob.
constexpr unsigned kValuesOfShift = 32;
constexpr std::uint64_t kHalfBit = std::uint64_t{1} << 40;  // the values are stored as f16
std::uint64_t key_of(const OutputValues& output) {
  return std::uint64_t{std::to_underlying(output.of)} << kValuesOfShift | output.op.v;
}

// The f16 that has exactly this value; nullopt: none.
std::optional<std::uint16_t> exact_half(float value) {
  constexpr std::uint32_t kLost = 0x1FFF, kInfinity = 0x7F80'0000, kLeast = 113, kLargest = 142;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U, magnitude = bits & 0x7FFF'FFFFU;
  const std::uint32_t exponent = magnitude >> 23U;
  const bool is_normal = exponent >= kLeast && exponent <= kLargest;
  if (is_normal || magnitude >= kInfinity) {
    if ((magnitude & kLost) != 0) return std::nullopt;
    const std::uint32_t half = is_normal ? (magnitude - ((kLeast - 1) << 23U)) >> 13U
                                         : 0x7C00U | (magnitude >> 13U & 1023U);
    return static_cast<std::uint16_t>(sign | half);
  }
  // A multiple of 2^-24, or 0.
  const float steps = std::bit_cast<float>(magnitude) * 0x1p24F;
  if (exponent >= kLeast || steps != std::floor(steps)) return std::nullopt;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
}

float value_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U, exponent = half >> 10U & 31U;
  const std::uint32_t fraction = half & 1023U;
  std::uint32_t magnitude = (exponent + 112U) << 23U | fraction << 13U;
  if (exponent == 31) magnitude = 0x7F80'0000U | fraction << 13U;
  if (exponent == 0)
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F);
  return std::bit_cast<float>(sign | magnitude);
}

// Empty: not all values are those of an f16.
std::vector<std::uint16_t> exact_halves(std::span<const float> values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) {
    const auto half = exact_half(value);
    if (!half) return {};
    if (halves.empty()) halves.reserve(values.size());
    halves.push_back(*half);
  }
  return halves;
}
bool in_order(const OutputValues& before, const OutputValues& output) {
  return std::pair(before.op, before.of) < std::pair(output.op, output.of);
}

}  // namespace

std::expected<Blob, DecodeError> pack_values(std::span<const OutputValues> outputs) {
  const auto invalid = [](const char* what) { return std::unexpected(DecodeError{what, 0}); };
  if (outputs.size() > kMaxCapturedOutputs)
    return invalid("more captured outputs than the format allows");
  ByteWriter out;
  out.varint(outputs.size());
  std::size_t all = 0;
  const OutputValues* before = nullptr;
  for (const OutputValues& output : outputs) {
    if (elements(output) != output.values.size())
      return invalid("values that do not fit the shape");
    if (before != nullptr && !in_order(*before, output))
      return invalid("ops that are not in order");
    before = &output;
    all += output.values.size();
    if (all > kMaxCapturedValues) return invalid("more captured values than the format allows");
    const std::vector<std::uint16_t> halves = exact_halves(output.values);
    out.varint(key_of(output) | (halves.empty() ? 0 : kHalfBit));
    for (const std::uint64_t ne : output.ne) out.varint(ne);
    out.append(halves.empty() ? std::as_bytes(std::span(output.values))
                              : std::as_bytes(std::span(halves)));
  }
  return compress(out.bytes(), kValuesLevel, kMaxValuesBytes);
}

std::expected<std::vector<OutputValues>, DecodeError> unpack_values(
    std::span<const std::byte> blob) {
  const auto raw = decompress(blob, kMaxValuesBytes);
  if (!raw) return std::unexpected(raw.error());
  ByteReader in(*raw);
  const std::size_t n = in.count(kOutputBytes);
  if (n > kMaxCapturedOutputs) in.fail("more captured outputs than the format allows");
  std::vector<OutputValues> outputs(in.ok() ? n : 0);
  std::size_t left = kMaxCapturedValues;
  const OutputValues* before = nullptr;
  for (OutputValues& output : outputs) {
    const std::uint64_t key = in.varint(), of = (key & ~kHalfBit) >> kValuesOfShift;
    const bool half = (key & kHalfBit) != 0;
    if (!is_captured_kind(of)) in.fail("an unknown kind of values");
    output.op.v = static_cast<std::uint32_t>(key);
    output.of = static_cast<ValuesOf>(of);
    if (before != nullptr && !in_order(*before, output)) in.fail("ops that are not in order");
    before = &output;
    for (std::uint64_t& ne : output.ne) ne = in.varint();
    const auto count = elements(output);
    if (!count || *count > left) in.fail("more captured values than the format allows");
    if (!in.ok()) break;
    const std::byte* const from = raw->data() + in.position();
    in.skip(*count * (half ? sizeof(std::uint16_t) : sizeof(float)));
    if (!in.ok()) break;
    left -= *count;
    output.values.resize(*count);
    if (half) {
      std::vector<std::uint16_t> halves(*count);
      if (*count != 0) std::memcpy(halves.data(), from, *count * sizeof(std::uint16_t));
      std::ranges::transform(halves, output.values.begin(), value_of_half);
    } else if (*count != 0) {
      std::memcpy(output.values.data(), from, *count * sizeof(float));
    }
  }
  in.expect_end();
  if (!in.ok()) return std::unexpected(in.error());
  return outputs;
}

std::expected<void, DecodeError> unpack_outline(std::span<const std::byte> blob, StepOutline& out,
                                                OutlineTimes times,
                                                std::span<const std::uint32_t> limits) {
  ByteReader in(blob);
  out.ops = in.count(1);
  out.op_ns.resize(times == OutlineTimes::Unpack ? out.ops : 0);
  if (times == OutlineTimes::Unpack) {
    in.varints(out.op_ns);
  } else {
    in.skip_varints(out.ops);
  }
  out.times_bytes = in.position();

  out.slots.clear();
  out.runs.clear();
  out.words.clear();
  std::size_t values_left = kMaxStepValues;
  const std::size_t slots = in.count(kSlotValuesBytes);
  for (std::size_t i = 0; in.ok() && i < slots; ++i) {
    if (i < limits.size() && limits[i] != 0) {
      get_words(in, out, values_left, limits[i]);
    } else {
      get_runs(in, out, values_left);
    }
    const std::size_t floats = in.count(4);
    if (floats > values_left) in.fail("too many slot values");
    values_left -= std::min(values_left, floats);
    in.skip(floats * 4);
  }
  if (!in.ok()) return std::unexpected(in.error());
  return {};
}

std::expected<void, DecodeError> unpack_times(std::span<const std::byte> times,
                                              std::vector<std::uint64_t>& op_ns) {
  ByteReader in(times);
  op_ns.resize(in.count(1));
  in.varints(op_ns);
  if (!in.ok()) return std::unexpected(in.error());
  return {};
}

}  // namespace tt
