#include "tests/analysis/weights/weight_check.h"

#include <gtest/gtest.h>

#include <format>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string>

#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

void for_each_row(const SessionReader& reader,
                  const std::function<void(const GraphTemplate&, const Step&, const Access&,
                                           const StepAccess&)>& row) {
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = *reader.graph(step.graph);
    const auto accesses = accesses_of(*graph);
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      row(*graph, step, accesses[access.access], access);
    });
    return true;
  });
  EXPECT_TRUE(walked.has_value());
}

bool of_heads(Role role) {
  return role == Role::Q || role == Role::K || role == Role::V || role == Role::Qkv ||
         role == Role::O;
}

struct ReadCount {
  std::uint64_t reads = 0, bytes = 0;
  friend bool operator==(const ReadCount&, const ReadCount&) = default;
};

// The bytes of a read that belong to one head.
std::uint64_t bytes_of_head(const HeadWeight& weight, std::uint32_t head, const FileRange& range) {
  std::uint64_t bytes = 0;
  for (std::uint64_t row = 0; row < weight.rows; ++row) {
    const std::uint64_t begin =
        weight.file.offset + row * weight.geometry.row_stride + head * weight.geometry.bytes.v;
    const std::uint64_t end = begin + weight.geometry.bytes.v;
    const std::uint64_t from = std::max(begin, range.offset);
    const std::uint64_t to = std::min(end, range.offset + range.length);
    if (from < to) bytes += to - from;
  }
  return bytes;
}

// For each byte of a cache: the last writing step plus 1; 0: not written.
using Writers = std::vector<std::uint32_t>;

// The cache byte ranges that an access touches; they may overlap.
std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_of(const GraphTemplate& graph,
                                                               const Access& access,
                                                               const Step& step) {
  const Tensor& view = graph.tensor(access.tensor);
  std::vector<bool> taken(static_cast<std::size_t>(view.ne[1]), access.extent == Extent::All);
  if (access.extent != Extent::All) {
    for (const std::int64_t row : step.slots[access.slot.v].ints)
      if (row >= 0 && row < view.ne[1]) taken[static_cast<std::size_t>(row)] = true;
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  const std::uint64_t blocks = static_cast<std::uint64_t>(view.ne[0]) / view.block_elements;
  for (std::int64_t i3 = 0; i3 < view.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < view.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < view.ne[1]; ++i1) {
        if (!taken[static_cast<std::size_t>(i1)]) continue;
        const std::uint64_t row = view.view_offset + static_cast<std::uint64_t>(i1) * view.nb[1] +
                                  static_cast<std::uint64_t>(i2) * view.nb[2] +
                                  static_cast<std::uint64_t>(i3) * view.nb[3];
        if (view.nb[0] == view.block_bytes) {
          out.emplace_back(row, row + blocks * view.block_bytes);
        } else {
          for (std::uint64_t b = 0; b < blocks; ++b)
            out.emplace_back(row + b * view.nb[0], row + b * view.nb[0] + view.block_bytes);
        }
      }
    }
  }
  return out;
}

struct KvBytes {
  std::uint64_t fresh = 0, cached = 0, other = 0, written = 0;
  friend bool operator==(const KvBytes&, const KvBytes&) = default;
};

}  // namespace

namespace {

// Compares rows of a report by key with the sums of the weights with that key.
template <class Key>
void expect_rows(const std::vector<CompressionOf<Key>>& rows,
                 const std::map<Key, Compression>& expected) {
  std::map<Key, Compression> seen;
  for (const auto& [key, sum] : rows) EXPECT_TRUE(seen.emplace(key, sum).second);
  EXPECT_EQ(seen, expected);
}

}  // namespace

void expect_compression(const SessionReader& reader, std::span<const WeightSize> of_files) {
  const auto weights = session_weights(reader);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  std::map<std::string, WeightSize> by_name;
  for (const WeightSize& weight : of_files) by_name[weight.name] = weight;
  std::map<std::string, std::pair<LayerId, Component>> read;
  for_each_row(reader, [&](const GraphTemplate& graph, const Step&, const Access&,
                           const StepAccess& access) {
    const Tensor& tensor = graph.tensor(graph.root(access.tensor));
    if (tensor.kind != TensorKind::Weight) return;
    read[tensor.name] = {tensor.layer, tensor.component};
    EXPECT_EQ(elements_of(tensor.ne) / tensor.block_elements * tensor.block_bytes,
              tensor.file.length)
        << tensor.name;
  });
  Compression total;
  std::map<std::string, Compression> by_type;
  std::map<LayerId, Compression> by_layer;
  std::map<Component, Compression> by_component;
  std::set<std::string> found;
  for (const WeightSize& weight : *weights) {
    SCOPED_TRACE(weight.name);
    EXPECT_TRUE(found.insert(weight.name).second);
    ASSERT_TRUE(by_name.contains(weight.name));
    const WeightSize& of_file = by_name[weight.name];
    EXPECT_EQ(weight, of_file);
    if (read.contains(weight.name)) {
      EXPECT_EQ(read[weight.name], std::pair(of_file.layer, of_file.component));
    }
    for (Compression* sum : {&total, &by_type[of_file.type], &by_layer[of_file.layer],
                             &by_component[of_file.component]}) {
      ++sum->tensors;
      sum->elements += of_file.elements;
      sum->bytes += of_file.bytes;
    }
  }
  for (const auto& [name, place] : read) EXPECT_TRUE(found.contains(name)) << name;
  const CompressionReport report = compression(*weights);
  EXPECT_EQ(report.total, total);
  EXPECT_NEAR(report.total.bits_per_weight() * report.total.ratio(16), 16, 1e-9);
  EXPECT_NEAR(report.total.bits_per_weight(),
              8.0 * static_cast<double>(total.bytes.v) / static_cast<double>(total.elements), 1e-9);
  expect_rows(report.types, by_type);
  expect_rows(report.layers, by_layer);
  expect_rows(report.components, by_component);
}

int expect_heads(const SessionReader& reader) {
  const auto table = head_table(reader);
  EXPECT_TRUE(table.has_value());
  if (!table) return 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, const HeadWeight*> by_place;
  int divided = 0;
  for (const HeadWeight& weight : table->weights) {
    EXPECT_TRUE(by_place.emplace(std::pair(weight.file.file, weight.file.offset), &weight).second);
    EXPECT_EQ(weight.heads.size(), weight.geometry.count);
    divided += weight.geometry.count > 0;
    // Heads are within the weight and do not overlap.
    if (weight.rows > 4096) continue;
    std::map<std::uint64_t, std::uint64_t> taken;
    for (std::uint32_t h = 0; h < weight.geometry.count; ++h) {
      for (std::uint64_t row = 0; row < weight.rows; ++row) {
        const FileRange range = weight.range(h, row);
        EXPECT_TRUE(taken.emplace(range.offset, range.offset + range.length).second);
      }
    }
    std::uint64_t end = weight.file.offset, sum = 0;
    for (const auto& [from, to] : taken) {
      EXPECT_GE(from, end) << weight.name;
      end = to;
      sum += to - from;
    }
    EXPECT_LE(end, weight.file.offset + weight.file.length) << weight.name;
    EXPECT_EQ(sum, weight.head_bytes().v * weight.geometry.count) << weight.name;
  }
  std::map<std::pair<std::uint32_t, std::uint64_t>, ReadCount> whole;
  std::map<std::pair<const HeadWeight*, std::uint32_t>, ReadCount> of_head;
  for_each_row(reader, [&](const GraphTemplate& graph, const Step&, const Access& access,
                           const StepAccess& row) {
    const Tensor& tensor = graph.tensor(graph.root(row.tensor));
    if (row.write || tensor.kind != TensorKind::Weight || !of_heads(tensor.role) ||
        tensor.file.empty() || access.extent != Extent::All)
      return;
    const std::pair place{tensor.file.file, tensor.file.offset};
    ++whole[place].reads;
    whole[place].bytes += row.touched.v;
    const HeadWeight* weight = by_place[place];
    ASSERT_NE(weight, nullptr) << tensor.name;
    for (std::uint32_t h = 0; h < weight->geometry.count; ++h) {
      const std::uint64_t bytes = bytes_of_head(*weight, h, row.range);
      ReadCount& counted = of_head[{weight, h}];
      counted.reads += bytes > 0;
      counted.bytes += bytes;
    }
  });
  for (const HeadWeight& weight : table->weights) {
    EXPECT_EQ((ReadCount{weight.reads, weight.read.v}),
              (whole[{weight.file.file, weight.file.offset}]))
        << weight.name;
    for (std::uint32_t h = 0; h < weight.geometry.count; ++h) {
      EXPECT_EQ((ReadCount{weight.heads[h].reads, weight.heads[h].read.v}), (of_head[{&weight, h}]))
          << weight.name << ", head " << h;
    }
  }
  return divided;
}

std::uint64_t expect_kv_use(const SessionReader& reader) {
  std::map<std::uint32_t, std::map<LayerId, KvBytes>> expected;  // by step
  std::map<std::string, Writers> caches;
  std::uint64_t from_earlier = 0;
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = *reader.graph(step.graph);
    const auto accesses = accesses_of(*graph);
    for (const bool write : {true, false}) {
      for_each_access(*graph, accesses, step, [&](const StepAccess& row) {
        const Tensor& root = graph->tensor(graph->root(row.tensor));
        if (root.kind != TensorKind::Kv || row.write != write || root.role == Role::State) return;
        Writers& bytes = caches[root.name];
        const Access& access = accesses[row.access];
        KvBytes& sum = expected[step.id.v][graph->op(row.op).layer];
        if (write) sum.written += row.touched.v;
        std::set<std::uint64_t> seen;
        for (const auto& [from, to] : ranges_of(*graph, access, step)) {
          if (bytes.size() < to) bytes.resize(to);
          if (write) {
            std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                      bytes.begin() + static_cast<std::ptrdiff_t>(to), step.id.v + 1);
            continue;
          }
          if (!seen.insert(from).second) continue;
          for (std::uint64_t at = from; at < to; ++at) {
            (bytes[at] == step.id.v + 1 ? sum.fresh : bytes[at] > 0 ? sum.cached : sum.other) += 1;
          }
        }
      });
    }
    return true;
  });
  EXPECT_TRUE(walked.has_value());

  const auto found = kv_use(reader, {.from = 0, .limit = UINT32_MAX});
  EXPECT_TRUE(found.has_value());
  if (!found) return 0;
  EXPECT_EQ(found->rows.size(), found->total);
  // A page from the middle depends on the steps before it, which are not in the result.
  const std::uint64_t half = found->total / 2;
  const auto page = kv_use(reader, {.from = half, .limit = 2});
  EXPECT_TRUE(page.has_value());
  if (page) {
    EXPECT_TRUE(
        std::ranges::equal(page->rows, found->rows | std::views::drop(half) | std::views::take(2)));
  }
  for (const KvStep& step : found->rows) {
    const auto& layers = expected[step.step.v];
    EXPECT_EQ(step.layers.size(), layers.size()) << "step " << step.step.v;
    for (const KvLayer& layer : step.layers) {
      const KvBytes own{layer.fresh.v, layer.cached.v, layer.other.v, layer.written.v};
      const auto at = layers.find(layer.layer);
      const KvBytes byte_by_byte = at == layers.end() ? KvBytes{} : at->second;
      const auto figures = [](const KvBytes& kv) {
        return std::format("fresh {}, cached {}, other {}, written {}", kv.fresh, kv.cached,
                           kv.other, kv.written);
      };
      SCOPED_TRACE(std::format("step {}, layer {}: {}; byte by byte {}", step.step.v, layer.layer.v,
                               figures(own), figures(byte_by_byte)));
      EXPECT_EQ(own.written, byte_by_byte.written);
      EXPECT_EQ(own.fresh + own.cached + own.other,
                byte_by_byte.fresh + byte_by_byte.cached + byte_by_byte.other);
      EXPECT_EQ(own.fresh, byte_by_byte.fresh);
      EXPECT_EQ(own.cached, byte_by_byte.cached);
      from_earlier += layer.cached.v;
    }
  }
  return from_earlier;
}

}  // namespace tt::test
