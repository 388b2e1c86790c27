#include "analysis/weights/compression.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/fields/fields.h"

namespace tt {

namespace {

void add(Compression& sum, const WeightSize& weight) {
  ++sum.tensors;
  sum.elements += weight.elements;
  sum.bytes += weight.bytes;
}

template <class Key>
std::vector<CompressionOf<Key>> by(const std::vector<WeightSize>& weights, Key WeightSize::* key) {
  std::map<Key, Compression> sums;
  for (const WeightSize& weight : weights) add(sums[weight.*key], weight);
  std::vector<CompressionOf<Key>> out;
  out.reserve(sums.size());
  for (const auto& [value, sum] : sums) out.push_back({.key = value, .sum = sum});
  return out;
}

}  // namespace

std::uint64_t elements_of(std::span<const std::int64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t n : shape)
    elements *= static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
  return elements;
}

double Compression::bits_per_weight() const {
  return elements == 0 ? 0 : 8.0 * static_cast<double>(bytes.v) / static_cast<double>(elements);
}

double Compression::ratio(unsigned bits) const {
  const double own = bits_per_weight();
  return own > 0 ? bits / own : 0;
}

CompressionReport compression(std::vector<WeightSize> weights) {
  CompressionReport report{.total = {},
                           .types = by(weights, &WeightSize::type),
                           .layers = by(weights, &WeightSize::layer),
                           .components = by(weights, &WeightSize::component),
                           .weights = {}};
  for (const WeightSize& weight : weights) add(report.total, weight);
  std::ranges::stable_sort(report.types,
                           [](const auto& a, const auto& b) { return b.sum.bytes < a.sum.bytes; });
  report.weights = std::move(weights);
  return report;
}

std::expected<std::vector<WeightSize>, TraceError> session_weights(
    const SessionReader& reader, const ContinueCheck& keep_going) {
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  std::vector<WeightSize> out;
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> seen;  // places in the files
  for (const TemplateId id : *ids) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors) {
      const FileRange& file = tensor.file;
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor || file.empty() ||
          !seen.emplace(file.file, file.offset, file.length).second)
        continue;
      out.push_back({.name = tensor.name,
                     .type = tensor.type,
                     .layer = tensor.layer,
                     .component = tensor.component,
                     .elements = elements_of(tensor.ne),
                     .bytes = Bytes{file.length}});
    }
  }
  return out;
}

namespace {

constexpr unsigned kF16 = 16, kF32 = 32;

template <unsigned bits>
double ratio_of(const Compression& sum) {
  return sum.ratio(bits);
}

constexpr const char* name_of(const std::string*) { return "type"; }

constexpr const char* name_of(const LayerId*) { return "layer"; }

constexpr const char* name_of(const Component*) { return "component"; }

}  // namespace

static Fields<Compression> fields_of(const Compression*) {
  return Fields<Compression>("CompressionSum")
      .add("tensors", "", &Compression::tensors)
      .add("elements", "", &Compression::elements)
      .add("bytes", "", &Compression::bytes)
      .add("bits_per_weight", "", &Compression::bits_per_weight)
      .add("ratio_f16", "size as F16 divided by the actual size", ratio_of<kF16>)
      .add("ratio_f32", "size as F32 divided by the actual size", ratio_of<kF32>);
}

template <class Key>
Fields<CompressionOf<Key>> fields_of(const CompressionOf<Key>*) {
  using Row = CompressionOf<Key>;
  return Fields<Row>()
      .add(name_of(static_cast<const Key*>(nullptr)), "", &Row::key)
      .include(&Row::sum);
}

static Fields<WeightSize> fields_of(const WeightSize*) {
  const auto sum_of = [](const WeightSize& weight) {
    return Compression{.tensors = 1, .elements = weight.elements, .bytes = weight.bytes};
  };
  return Fields<WeightSize>()
      .add("name", "", &WeightSize::name)
      .add("type", "", &WeightSize::type)
      .add("layer", "", &WeightSize::layer)
      .add("component", "", &WeightSize::component)
      .add("elements", "", &WeightSize::elements)
      .add("bytes", "", &WeightSize::bytes)
      .add("bits_per_weight", "",
           [=](const WeightSize& of) { return sum_of(of).bits_per_weight(); })
      .add("ratio_f16", "", [=](const WeightSize& of) { return sum_of(of).ratio(kF16); })
      .add("ratio_f32", "", [=](const WeightSize& of) { return sum_of(of).ratio(kF32); });
}

Fields<CompressionReport> fields_of(const CompressionReport*) {
  return Fields<CompressionReport>("Compression")
      .add("total", "", &CompressionReport::total)
      .add("types", "the quantization mix, sorted by size, largest first",
           &CompressionReport::types)
      .add("layers", "", &CompressionReport::layers)
      .add("components", "", &CompressionReport::components)
      .add("weights", "", &CompressionReport::weights);
}

}  // namespace tt
