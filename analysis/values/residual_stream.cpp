#include "analysis/values/residual_stream.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "analysis/fields/fields.h"
#include "analysis/values/walk_values.h"

namespace tt {

namespace {

// A captured output as rows of one token each. Missing: null.
struct Stream {
  const OutputValues* values = nullptr;
  std::uint64_t rows() const { return values == nullptr ? 0 : values->ne[1]; }
  // The row of the token that is `back` tokens before the last one of the step: the last layer has
  // only the tokens whose output is wanted.
  std::span<const float> row(std::uint64_t back) const {
    const std::size_t size = values->ne[0];
    return std::span(values->values).subspan((rows() - 1 - back) * size, size);
  }
};

// The streams of one layer in one step.
struct LayerStreams {
  Stream between, after;  // before the feed-forward part (ffn_inp), after the layer (l_out)
};

struct Mean {
  double sum = 0;
  std::uint64_t n = 0;
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value;
    ++n;
  }
  std::optional<double> get() const {
    return n == 0 ? std::nullopt : std::optional(sum / static_cast<double>(n));
  }
};

struct Means {
  std::uint64_t tokens = 0;
  Mean norm, mixer, ffn, change, similar;
};

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double norm_of_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

// Calls `each(a, b)` for the rows of the tokens that both have.
template <class Each>
void for_pairs(const Stream& a, const Stream& b, Each each) {
  if (a.rows() == 0 || b.rows() == 0 || a.values->ne[0] != b.values->ne[0]) return;
  for (std::uint64_t back = 0; back < std::min(a.rows(), b.rows()); ++back)
    each(a.row(back), b.row(back));
}

void add_layer(Means& means, const Stream& before, const LayerStreams& layer) {
  const auto& [between, after] = layer;
  means.tokens += after.rows();
  for (std::uint64_t back = 0; back < after.rows(); ++back)
    means.norm.add(std::sqrt(dot(after.row(back), after.row(back))));
  for_pairs(before, between, [&](auto a, auto b) { means.mixer.add(norm_of_difference(a, b)); });
  for_pairs(between, after, [&](auto a, auto b) { means.ffn.add(norm_of_difference(a, b)); });
  for_pairs(before, after, [&](auto a, auto b) {
    means.change.add(norm_of_difference(a, b));
    means.similar.add(dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)));
  });
}

// Whether the op adds to `stream`.
bool adds_to(const GraphTemplate& graph, const OutputValues* sum, const OutputValues& stream) {
  if (sum == nullptr) return false;
  const TensorId tensor = graph.node(graph.op(stream.op).last()).output;
  return std::ranges::contains(graph.node(graph.op(sum->op).last()).src, tensor);
}

// What of the step is the residual stream, by layer. `embedding`: before layer 0, unless the
// architecture does something to it first.
std::map<LayerId, LayerStreams> streams_of(const GraphTemplate& graph, const StepValues& of,
                                           Stream& embedding) {
  std::map<LayerId, LayerStreams> layers;
  for (const OutputValues& values : of.outputs) {
    if (values.of != ValuesOf::Output || values.ne[2] != 1 || values.ne[3] != 1) continue;
    const std::string& name = graph.tensor(graph.node(graph.op(values.op).last()).output).name;
    const LayerId layer = graph.op(values.op).layer;
    if (layer == kNoLayer && name.ends_with("embd") && embedding.values == nullptr)
      embedding.values = &values;
    if (name.starts_with("ffn_inp-")) layers[layer].between.values = &values;
    if (name.starts_with("l_out-")) layers[layer].after.values = &values;
  }
  const auto found = layers.find(LayerId{0});
  const LayerStreams first = found == layers.end() ? LayerStreams{} : found->second;
  if (embedding.values != nullptr && !adds_to(graph, first.between.values, *embedding.values) &&
      !adds_to(graph, first.after.values, *embedding.values))
    embedding = {};
  return layers;
}

}  // namespace

std::expected<ResidualTable, TraceError> residual_stream(const SessionReader& reader,
                                                         const ContinueCheck& keep_going) {
  std::map<LayerId, Means> means;
  const auto add_step = [&](const GraphTemplate& graph, const StepValues& of) {
    Stream embedding;
    const auto layers = streams_of(graph, of, embedding);
    for (const auto& [layer, streams] : layers) {
      const auto below = layers.find(LayerId{layer.v - 1});
      const Stream before = layer.v == 0            ? embedding
                            : below == layers.end() ? Stream{}
                                                    : below->second.after;
      add_layer(means[layer], before, streams);
    }
  };
  const auto walked = walk_values(
      reader, keep_going,
      [&](const GraphTemplate& graph, const Step&, const StepValues& of) { add_step(graph, of); });
  if (!walked) return std::unexpected(walked.error());
  ResidualTable table;
  for (const auto& [layer, of] : means)
    table.layers.push_back({.layer = layer,
                            .tokens = of.tokens,
                            .norm = of.norm.get(),
                            .mixer = of.mixer.get(),
                            .ffn = of.ffn.get(),
                            .change = of.change.get(),
                            .similar = of.similar.get()});
  return table;
}

static Fields<ResidualLayer> fields_of(const ResidualLayer*) {
  constexpr const char* kNotCaptured = "not captured, or the layer has no such part";
  return Fields<ResidualLayer>("ResidualLayer")
      .add("layer", "", &ResidualLayer::layer)
      .add("tokens", "captured after the layer; the other fields are means over tokens",
           &ResidualLayer::tokens)
      .add("norm", "of the residual stream after the layer", &ResidualLayer::norm,
           {.null = kNotCaptured})
      .add("attention", "norm of what attention, or the recurrent part, adds",
           &ResidualLayer::mixer, {.null = kNotCaptured})
      .add("feed_forward", "norm of what the feed-forward part, or the experts, add",
           &ResidualLayer::ffn, {.null = kNotCaptured})
      .add("layer_adds", "norm of what the layer adds", &ResidualLayer::change,
           {.null = kNotCaptured})
      .add("similarity",
           "cosine of the stream before and after the layer: 1, it keeps its direction",
           &ResidualLayer::similar, {.null = kNotCaptured});
}

Fields<ResidualTable> fields_of(const ResidualTable*) {
  return Fields<ResidualTable>("ResidualTable").add("layers", "by number", &ResidualTable::layers);
}

}  // namespace tt
