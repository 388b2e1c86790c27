#include "tracer/memory/experts/token_demand.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "tracer/format/access/access.h"
#include "tracer/format/model/quantile.h"
#include "tracer/memory/plan/compute_time.h"

namespace tt {

namespace {

double quantile_of(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return quantile<double>(values, q).value_or(0);
}
double median(std::vector<double> values) { return quantile_of(std::move(values), 0.5); }

bool generates(const Step& step) {
  return step.phase == Phase::Generate && step.n_tokens == 1 && !step.dropped && !step.aborted &&
         step.graph.v != 0;
}

// Of a step that nothing disturbed.
void add_prompt(const Step& step, TokenDemand::Prompt& prompt) {
  if (step.phase != Phase::Prompt || step.dropped || step.aborted || step.n_tokens < prompt.tokens)
    return;
  prompt = {.tokens = step.n_tokens,
            .seconds = static_cast<double>((step.end - step.begin).v) * 1e-9,
            .bytes = static_cast<double>(step.conditions.disk_read_bytes.value_or(0))};
}

std::unexpected<TraceError> cancelled() {
  return std::unexpected(TraceError{TraceError::Kind::Cancelled, "cancelled"});
}

// Weights of one layer whose experts one list selects.
struct RoutedLayer {
  SlotId list;
  ExpertCache::Layer layer;
};

std::vector<RoutedLayer> routed_layers(const GraphTemplate& graph,
                                       std::span<const Access> accesses) {
  std::vector<RoutedLayer> layers;
  for (const Access& access : accesses) {
    const Tensor& root = graph.tensor(graph.root(access.tensor));
    if (access.write || access.extent != Extent::Experts || root.source != Source::Disk) continue;
    auto layer = std::ranges::find(layers, access.slot, &RoutedLayer::list);
    if (layer == layers.end()) {
      const std::int64_t experts = std::clamp<std::int64_t>(root.ne[2], 0, UINT16_MAX);
      layer = layers.insert(
          layer, {.list = access.slot,
                  .layer = {.experts = static_cast<std::uint32_t>(experts), .bytes = 0}});
    }
    layer->layer.bytes += access.unit.v;
  }
  return layers;
}

std::vector<std::uint32_t> experts_of(const Step& step, const RoutedLayer& layer) {
  std::vector<std::uint32_t> experts;
  if (layer.list.v >= step.slots.size()) return experts;
  for (const std::int64_t expert : step.slots[layer.list.v].ints)
    if (expert >= 0 && expert < layer.layer.experts)
      experts.push_back(static_cast<std::uint32_t>(expert));
  std::ranges::sort(experts);
  const auto [first, last] = std::ranges::unique(experts);
  experts.erase(first, last);
  return experts;
}

}  // namespace

std::expected<TokenDemand, TraceError> token_demand(
    const SessionReader& reader, std::uint32_t skip,
    const std::function<bool(const Step&)>& is_disturbed, const std::function<bool()>& keep_going) {
  const auto going = [&] { return !keep_going || keep_going(); };
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  std::map<std::uint32_t, std::uint32_t> uses;  // of each template
  const auto counted =
      reader.for_each_step_row(StepId{0}, *steps, [&](const SessionReader::StepRow& row) {
        if (generates(row.head)) ++uses[row.head.graph.v];
        return going();
      });
  if (!counted) return std::unexpected(counted.error());
  if (!going()) return cancelled();
  TokenDemand demand;
  if (uses.empty()) return demand;
  const TemplateId id{
      std::ranges::max_element(uses, {}, [](const auto& use) { return use.second; })->first};
  const auto stored = reader.graph(id);
  if (!stored) return std::unexpected(stored.error());
  GraphTemplate graph = **stored;
  const std::vector<std::uint64_t> addresses = map_weights(graph);
  const std::vector<Access> accesses = accesses_of(graph);
  const WeightOrder order = weight_order(graph, accesses, addresses);
  for (const WeightUse& use : order.weights)
    if (!std::ranges::contains(demand.weights, use.range)) demand.weights.push_back(use.range);
  std::vector<WeightRange> experts;
  for (const ExpertUse& use : order.experts) {
    demand.expert_slice_bytes += use.slice / order.experts.size();
    if (!std::ranges::contains(experts, use.range)) experts.push_back(use.range);
  }
  for (const WeightRange& range : experts) demand.expert_bytes += range.file.length;

  const std::vector<RoutedLayer> layers = routed_layers(graph, accesses);
  for (const RoutedLayer& layer : layers) demand.layers.push_back(layer.layer);
  std::vector<std::int64_t> op_ns;
  std::vector<double> seconds, unread_seconds, bytes, faults;
  std::uint32_t generated = 0;
  const auto read = reader.for_each_step(StepId{0}, *steps, [&](const Step& step) {
    const bool learned = step.timing == Timing::Learned;
    if (!learned && !is_disturbed(step)) add_prompt(step, demand.prompt);
    if (!generates(step)) return going();
    const bool undisturbed = !learned && generated > 0 && !is_disturbed(step);
    demand.disturbed_steps += undisturbed ? 0 : 1;
    const bool measured = generated++ >= skip && !learned;
    if (measured) {
      seconds.push_back(static_cast<double>((step.end - step.begin).v) * 1e-9);
      if (step.conditions.disk_read_bytes && step.conditions.major_faults) {
        bytes.push_back(static_cast<double>(*step.conditions.disk_read_bytes));
        faults.push_back(static_cast<double>(*step.conditions.major_faults));
        if (bytes.back() == 0 && undisturbed) unread_seconds.push_back(seconds.back());
      }
    }
    if (step.graph != id) return going();
    if (undisturbed && step.op_ends.size() == graph.ops.size()) {
      if (op_ns.empty()) op_ns.assign(graph.ops.size(), INT64_MAX);
      for (std::uint32_t op = 0; op < op_ns.size(); ++op)
        op_ns[op] = std::min(op_ns[op], step.op_duration(OpId{op})->v);
    }
    if (demand.routed.size() == FaultReplay::kMaxTokens) demand.routed.erase(demand.routed.begin());
    std::vector<std::vector<std::uint32_t>>& of_step = demand.routed.emplace_back();
    for (const RoutedLayer& layer : layers) of_step.push_back(experts_of(step, layer));
    return going();
  });
  if (!read) return std::unexpected(read.error());
  if (!going()) return cancelled();
  const std::size_t first_counted = demand.routed.size() / 2;
  std::uint64_t routed_bytes = 0;
  for (std::size_t at = first_counted; at < demand.routed.size(); ++at)
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      routed_bytes += demand.routed[at][layer].size() * demand.layers[layer].bytes;
  if (!demand.routed.empty())
    demand.expert_bytes_per_token = routed_bytes / (demand.routed.size() - first_counted);
  demand.fault_replay = FaultReplay(order, demand.routed);
  demand.compute_seconds =
      static_cast<double>(compute_time(op_ns, weight_bytes_of_ops(order, graph.ops.size()))) * 1e-9;
  demand.unread_seconds =
      std::max(demand.compute_seconds, quantile_of(std::move(unread_seconds), 0.25));
  demand.steps = static_cast<std::uint32_t>(seconds.size());
  demand.seconds = median(seconds);
  demand.disk_recorded = !bytes.empty();
  demand.bytes = median(bytes);
  demand.faults = median(faults);
  return demand;
}

double least_bytes_per_token(const FaultReplay& tokens, std::uint64_t room) {
  // A read of a range whose bytes are kept from the one before saves them. Which intervals between
  // two reads to keep is decided in the order of their ends, each as far as there is room in all of
  // it: optimal for bytes, of which each may be kept alone. What was read before the counted tokens
  // may be in the cache, so each range has an interval that begins before all of them.
  struct Range {
    FileRange bytes;
    std::size_t last = 0;  // when it was read; 0: before the counted tokens
  };
  std::vector<Range> ranges;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::size_t> number_of;
  std::vector<std::size_t> reads;
  for (std::size_t token = tokens.first_counted(); token < tokens.tokens(); ++token)
    tokens.each_range(token, [&](const FileRange& range) {
      const auto [at, is_new] =
          number_of.try_emplace({range.file, range.offset, range.length}, ranges.size());
      if (is_new) ranges.push_back({.bytes = range});
      reads.push_back(at->second);
    });
  // Free bytes between the read before and read i, as groups: a group of bytes is free since a
  // read. Bytes that became free last are taken first: the others are left to longer intervals.
  std::map<std::size_t, std::uint64_t> free_since = {{0, room}};
  std::uint64_t missed = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Range& range = ranges[reads[i]];
    std::uint64_t left = range.bytes.length;
    for (auto at = free_since.upper_bound(range.last); left > 0 && at != free_since.begin();) {
      --at;
      const std::uint64_t taken = std::min(left, at->second);
      left -= taken;
      at->second -= taken;
      if (at->second == 0) at = free_since.erase(at);
    }
    missed += left;
    range.last = i + 1;
    if (range.bytes.length > left) free_since[range.last] += range.bytes.length - left;
  }
  const std::size_t counted = tokens.tokens() - tokens.first_counted();
  return counted == 0 ? 0 : static_cast<double>(missed) / static_cast<double>(counted);
}

double expert_hit_rate(const TokenDemand& demand, std::uint64_t room) {
  ExpertCache cache(demand.layers, room);
  std::uint64_t used = 0, missed = 0;  // bytes
  for (std::size_t step = 0; step < demand.routed.size(); ++step) {
    const bool counted = step >= demand.routed.size() / 2;
    for (std::size_t layer = 0; layer < demand.layers.size(); ++layer) {
      const std::uint64_t bytes = demand.layers[layer].bytes;
      const std::size_t read = cache.use(layer, demand.routed[step][layer]).size();
      cache.trim(layer);
      if (!counted) continue;
      used += demand.routed[step][layer].size() * bytes;
      missed += read * bytes;
    }
  }
  return used == 0 ? 0 : 1 - static_cast<double>(missed) / static_cast<double>(used);
}

double uniform_hit_rate(const TokenDemand& demand, std::uint64_t room) {
  const ExpertCache cache(demand.layers, room);
  double kept = 0, uses = 0;
  for (const auto& step : demand.routed) {
    for (std::size_t layer = 0; layer < demand.layers.size(); ++layer) {
      const auto used = static_cast<double>(step[layer].size());
      kept += used * cache.slots(layer) / std::max(1U, demand.layers[layer].experts);
      uses += used;
    }
  }
  return uses == 0 ? 0 : kept / uses;
}

}  // namespace tt
