#include "api/json/analysis/statistics_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/json/result_json.h"

namespace tt {
namespace {

Json to_json(const AccessSums& sums) {
  return {
      {"accesses", sums.accesses}, {"bytes_read", sums.read.v}, {"bytes_written", sums.written.v}};
}

std::string key_of(const std::string& name) { return name; }
std::string key_of(LayerId layer) { return layer == kNoLayer ? "none" : std::to_string(layer.v); }
template <class Enum>
std::string key_of(Enum value) {
  return to_text(value);
}

template <class Key>
Json by_key(const std::map<Key, AccessSums>& sums) {
  Json json = Json::object();
  for (const auto& [key, of] : sums) json[key_of(key)] = to_json(of);
  return json;
}

// Sorted by bytes, descending.
template <class Key>
Json by_bytes(const std::map<Key, AccessSums>& sums, std::size_t max = SIZE_MAX) {
  std::vector<std::pair<Key, AccessSums>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second.touched() > b.second.touched(); });
  if (sorted.size() > max) sorted.resize(max);
  Json json = Json::object();
  for (const auto& [key, of] : sorted) json[key_of(key)] = to_json(of);
  return json;
}

}  // namespace

Json to_json(const SessionStatistics& statistics, std::size_t max_weights) {
  Json tensors = Json::object();
  for (const auto& [kind, count] : statistics.tensors) tensors[to_text(kind)] = count;
  Json json = {{"steps", statistics.steps},
               {"tokens_evaluated", statistics.tokens},
               {"step_ns", statistics.time.v},
               {"damaged_steps", statistics.damaged_steps},
               {"ops", statistics.ops},
               {"distinct_tensors", std::move(tensors)},
               {"distinct_weight_bytes", statistics.weights_size.v}};
  json.update(to_json(statistics.all));
  json["phases"] = by_key(statistics.phases);
  for (const auto& [phase, spread] : statistics.step_times)
    json["step_quantiles_ns"][to_text(phase)] = to_json(spread);
  json["layers"] = by_key(statistics.layers);
  json["operation_types"] = by_bytes(statistics.op_kinds);
  json["components"] = by_bytes(statistics.components);
  json["memory_sources"] = by_bytes(statistics.sources);
  json["weights_with_most_bytes"] = by_bytes(statistics.weights, max_weights);
  return json;
}

}  // namespace tt
