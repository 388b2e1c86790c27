#include "analysis/weights/pin_plan.h"

#include <algorithm>
#include <format>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/fields/fields.h"
#include "analysis/fields/page_fields.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

// A weight's name within its layer: "blk.3.attn_q.weight" is "attn_q.weight".
std::string within_layer(const PinnedWeight& weight) {
  const std::string of_layer = std::format("blk.{}.", weight.layer.v);
  const std::string_view name = weight.tensor;
  const auto at = weight.layer == kNoLayer ? std::string_view::npos : name.find(of_layer);
  if (at == std::string_view::npos) return weight.tensor;
  return weight.tensor.substr(0, at) + weight.tensor.substr(at + of_layer.size());
}

// A multimap that keeps keys in insertion order.
template <class Key, class Value>
class Groups {
 public:
  std::vector<Value>& operator[](const Key& key) {
    const auto [at, fresh] = places_.try_emplace(key, groups.size());
    if (fresh) groups.emplace_back(key, std::vector<Value>());
    return groups[at->second].second;
  }
  std::vector<std::pair<Key, std::vector<Value>>> groups;

 private:
  std::map<Key, std::size_t> places_;
};

}  // namespace

PinPlan pin_plan(const ReadSequence& sequence, Bytes memory) {
  PinPlan plan{.memory = memory, .held = {}, .saved = {}, .weights = {}};
  std::map<std::pair<std::string_view, std::uint32_t>, std::size_t> places;  // tensor and file
  std::uint64_t free = memory.v;
  for (const std::uint32_t number : most_read_first(sequence)) {
    const ReuseItem& item = sequence.items[number];
    const Bytes held{std::min(free, item.file.length)};
    if (held.v == 0 || item.reads < 2) continue;
    const auto [at, fresh] = places.try_emplace({item.tensor, item.file.file}, plan.weights.size());
    if (fresh) plan.weights.push_back({.tensor = item.tensor, .layer = item.layer, .experts = {}});
    PinnedWeight& weight = plan.weights[at->second];
    if (item.expert >= 0) weight.experts.push_back(item.expert);
    const Bytes saved{(item.reads - 1) * held.v};
    weight.held += held;
    weight.reads += item.reads;
    weight.saved += saved;
    plan.held += held;
    plan.saved += saved;
    free -= held.v;
  }
  for (PinnedWeight& weight : plan.weights) std::ranges::sort(weight.experts);
  return plan;
}

std::expected<Page<PinnedPart>, TraceError> pin_order(const SessionReader& reader, PageRange range,
                                                      const ContinueCheck& keep_going) {
  const auto sequence = weight_reads(reader, kAllRows, Grain::Part, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  Page<PinnedPart> page{.total = sequence->items.size(), .rows = {}};
  Bytes memory{}, saved{};
  std::uint64_t place = 0;
  for (const std::uint32_t number : most_read_first(*sequence)) {
    const ReuseItem& item = sequence->items[number];
    const Bytes size{item.file.length};
    memory += size;
    saved.v += (item.reads - 1) * size.v;
    if (!range.contains(place++)) continue;
    page.rows.push_back({.tensor = item.tensor,
                         .layer = item.layer,
                         .expert = item.expert,
                         .size = size,
                         .reads = item.reads,
                         .memory = memory,
                         .saved = saved});
  }
  return page;
}

static Fields<PinnedPart> fields_of(const PinnedPart*) {
  return Fields<PinnedPart>("PinnedPart")
      .add("tensor", "", &PinnedPart::tensor)
      .add("layer", "", &PinnedPart::layer)
      .add("expert", "",
           [](const PinnedPart& part) {
             return part.expert < 0 ? std::nullopt : std::optional(part.expert);
           },
           {.null = "not the slice of an expert"})
      .add("size_bytes", "", &PinnedPart::size)
      .add("reads", "", &PinnedPart::reads)
      .add("memory_bytes", "size of this part and of those before it", &PinnedPart::memory)
      .add("saved_bytes", "bytes of reads that they serve from memory", &PinnedPart::saved);
}

Fields<Page<PinnedPart>> fields_of(const Page<PinnedPart>*) {
  return page_fields<PinnedPart>("PinOrder", "parts");
}

std::vector<std::string> names_of(const PinPlan& plan) {
  // Expert weights are grouped by layer and experts, other weights by name and layers.
  Groups<std::pair<std::int32_t, std::vector<std::int32_t>>, std::string> experts;
  Groups<std::string, std::int32_t> names;
  for (const PinnedWeight& weight : plan.weights) {
    if (!weight.experts.empty()) {
      experts[{weight.layer.v, weight.experts}].push_back(within_layer(weight));
    } else {
      auto& layers = names[within_layer(weight)];
      if (weight.layer != kNoLayer) layers.push_back(weight.layer.v);
    }
  }
  Groups<std::vector<std::int32_t>, std::string> by_layers;
  for (auto& [name, layers] : names.groups) {
    std::ranges::sort(layers);
    by_layers[layers].push_back(name);
  }
  std::vector<std::string> out;
  for (const auto& [layers, of] : by_layers.groups) {
    out.push_back(layers.empty() ? join(of)
                                 : std::format("{} of layer{} {}", join(of),
                                               layers.size() == 1 ? "" : "s", runs_text(layers)));
  }
  for (const auto& [key, of] : experts.groups) {
    const auto& [layer, numbers] = key;
    out.push_back(std::format("expert{} {} of layer {} ({})", numbers.size() == 1 ? "" : "s",
                              runs_text(numbers), layer, join(of)));
  }
  return out;
}

std::string runs_text(const std::vector<std::int32_t>& ascending) {
  std::string out;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!out.empty()) out += ", ";
    out += std::to_string(ascending[i]);
    if (end - i > 1) out += (end - i > 2 ? "-" : ", ") + std::to_string(ascending[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace tt
