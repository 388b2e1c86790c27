#include "analysis/attention/heads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/rebuilt.h"
#include "analysis/common/walk_steps.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// Limit for values of untrusted files; no model has more.
constexpr std::uint32_t kMaxHeads = 65'536;

using Place = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
Place place_of(const FileRange& range) { return {range.file, range.offset, range.length}; }

bool has_heads(const Tensor& tensor) {
  return tensor.kind == TensorKind::Weight && !tensor.file.empty() &&
         (tensor.role == Role::Q || tensor.role == Role::K || tensor.role == Role::V ||
          tensor.role == Role::Qkv || tensor.role == Role::O);
}

HeadWeight weight_of(const Tensor& tensor, const LayerHeads& layers, const SessionInfo& info) {
  HeadWeight weight{.name = tensor.name,
                    .role = tensor.role,
                    .layer = tensor.layer,
                    .file = tensor.file,
                    .geometry = head_geometry(tensor, layers, {info.n_heads, info.n_heads_kv}),
                    .heads = {}};
  const HeadGeometry& geometry = weight.geometry;
  if (geometry.by_columns)
    weight.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.ne[1], 0));
  // Discard geometry of a damaged file that does not fit into the tensor.
  const std::uint64_t length = tensor.file.length;
  const std::uint64_t head = weight.rows == 0 ? 0 : length / weight.rows;
  if (geometry.count > kMaxHeads || weight.rows == 0 || geometry.count == 0 ||
      geometry.bytes.v > head / geometry.count ||
      (geometry.by_columns && geometry.row_stride > length / weight.rows)) {
    weight.geometry = {};
    weight.rows = 1;
  }
  weight.heads.resize(weight.geometry.count);
  return weight;
}

std::uint64_t overlap(const FileRange& a, const FileRange& b) {
  const std::uint64_t begin = std::max(a.offset, b.offset);
  const std::uint64_t end = std::min(a.offset + a.length, b.offset + b.length);
  return begin < end ? end - begin : 0;
}

// Adds `times` reads of the bytes `range`.
void add_reads(HeadWeight& weight, const FileRange& range, std::uint64_t times) {
  const bool whole = range == weight.file;
  for (std::uint32_t h = 0; h < weight.heads.size(); ++h) {
    std::uint64_t bytes = whole ? weight.head_bytes().v : 0;
    for (std::uint64_t row = 0; !whole && row < weight.rows; ++row)
      bytes += overlap(weight.range(h, row), range);
    if (bytes == 0) continue;
    weight.heads[h].reads += times;
    weight.heads[h].read.v += times * bytes;
  }
}

// Number of steps of a template by the number of ops that they ran.
using Runs = std::map<std::size_t, std::uint64_t>;

class TableBuilder {
 public:
  explicit TableBuilder(const SessionInfo& info) : info_(info) {
    table_.heads = info.n_heads;
    table_.kv_heads = info.n_heads_kv;
  }

  void add(const DerivedGraph& derived, const Runs& runs) {
    const GraphTemplate& graph = *derived.graph;
    for (const Access& access : derived.accesses) {
      const Tensor& tensor = graph.tensor(graph.root(access.tensor));
      if (access.write || access.extent != Extent::All || !has_heads(tensor)) continue;
      std::uint64_t times = 0;
      for (const auto& [ops, steps] : runs) times += access.op.v < ops ? steps : 0;
      HeadWeight& weight = weight_at(tensor, derived.heads);
      weight.reads += times;
      weight.read.v += times * access.unit.v;
      add_reads(weight, access.range, times);
    }
  }
  HeadTable take() { return std::move(table_); }

 private:
  HeadWeight& weight_at(const Tensor& tensor, const LayerHeads& layers) {
    const auto [at, fresh] = numbers_.try_emplace(place_of(tensor.file), table_.weights.size());
    if (fresh) table_.weights.push_back(weight_of(tensor, layers, info_));
    return table_.weights[at->second];
  }

  const SessionInfo& info_;
  HeadTable table_;
  std::map<Place, std::size_t> numbers_;
};

}  // namespace

FileRange HeadWeight::range(std::uint32_t head, std::uint64_t row) const {
  return {.file = file.file,
          .offset = file.offset + row * geometry.row_stride + head * geometry.bytes.v,
          .length = geometry.bytes.v};
}

std::expected<HeadTable, TraceError> head_table(const SessionReader& reader,
                                                const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (auto known = needs_recorded_graphs(*info, "which bytes of a weight belong to a head"); !known)
    return std::unexpected(known.error());
  DerivedGraphCache graphs(reader);
  std::map<TemplateId, Runs> runs;
  const auto walked = walk_steps(reader, kAllRows, keep_going, [&](const Step& step) {
    const std::size_t ops = step.ops_run(std::numeric_limits<std::size_t>::max());
    if (step.graph.v != 0) ++runs[step.graph][ops];
  });
  if (!walked) return std::unexpected(walked.error());
  TableBuilder builder(*info);
  for (const auto& [id, of_template] : runs) {
    const auto derived = graphs.of(id);
    if (!derived) return std::unexpected(derived.error());
    builder.add(**derived, of_template);
  }
  return builder.take();
}

namespace {

struct HeadRow {
  std::uint32_t head;
  std::uint64_t offset;
  HeadUse use;
};

Fields<HeadRow> fields_of(const HeadRow*) {
  return Fields<HeadRow>()
      .add("head", "", &HeadRow::head)
      .add("file_offset", "start of the first range of the head in the file", &HeadRow::offset,
           {.unit = "bytes"})
      .add("reads", "", [](const HeadRow& row) { return row.use.reads; })
      .add("bytes_read", "", [](const HeadRow& row) { return row.use.read; });
}

// A getter of a number that only a weight with heads has.
template <class Get>
auto if_divided(Get get) {
  return [get](const HeadWeight& weight) -> std::optional<std::uint64_t> {
    if (weight.heads.empty()) return std::nullopt;
    return get(weight);
  };
}

}  // namespace

static Fields<HeadWeight> fields_of(const HeadWeight*) {
  constexpr const char* kShared = "heads share quantization blocks or the whole weight";
  return Fields<HeadWeight>("HeadWeight")
      .add("name", "", &HeadWeight::name)
      .add("role", "", &HeadWeight::role, {.words = &columns::kQkvTypes})
      .add("layer", "", &HeadWeight::layer)
      .include(&HeadWeight::file)
      .add("head_bytes", "bytes of one head",
           if_divided([](const HeadWeight& weight) { return weight.head_bytes().v; }),
           {.unit = "bytes", .null = kShared})
      .add("range_bytes", "length of each contiguous range of a head",
           if_divided([](const HeadWeight& weight) { return weight.geometry.bytes.v; }),
           {.unit = "bytes", .null = kShared})
      .add("ranges", "number of contiguous ranges per head: one per row for O, otherwise 1",
           if_divided([](const HeadWeight& weight) { return weight.rows; }), {.null = kShared})
      .add("range_stride", "distance between the starts of consecutive ranges",
           [](const HeadWeight& weight) -> std::optional<std::uint64_t> {
             if (!weight.geometry.by_columns) return std::nullopt;
             return weight.geometry.row_stride;
           },
           {.unit = "bytes", .null = "a head has one range"})
      .add("reads", "", &HeadWeight::reads)
      .add("bytes_read", "", &HeadWeight::read)
      .add("heads", "", [](const HeadWeight& weight) {
        std::vector<HeadRow> rows;
        for (std::uint32_t h = 0; h < weight.heads.size(); ++h)
          rows.push_back({.head = h, .offset = weight.range(h, 0).offset, .use = weight.heads[h]});
        return rows;
      });
}

Fields<HeadTable> fields_of(const HeadTable*) {
  return Fields<HeadTable>("HeadTable")
      .add("heads", "number of heads of the model", &HeadTable::heads)
      .add("kv_heads", "number of key/value heads of the model", &HeadTable::kv_heads)
      .add("weights", "one row per weight", &HeadTable::weights);
}

}  // namespace tt
