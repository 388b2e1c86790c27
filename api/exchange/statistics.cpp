#include "api/exchange/statistics.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tt::exchange {
namespace {

constexpr std::size_t kTopTensors = 50;

template <class Line>
Json line_json(const Line& line) {
  return {{"accesses", line.accesses}, {"bytes_read", line.read}, {"bytes_written", line.written}};
}

}  // namespace

// Summed per access of the template first: names are looked up once for each.
void Statistics::add(const StepRows& rows) {
  const Step& step = *rows.scope.step;
  ++steps_;
  tokens_ += step.n_tokens;
  step_ns_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(step_ns_) +
                                       static_cast<std::uint64_t>(step.end.v) -
                                       static_cast<std::uint64_t>(step.begin.v));
  if (rows.scope.graph == nullptr) return;
  const RowTemplate& graph = *rows.scope.graph;
  std::vector<Line> lines(graph.derived->accesses.size());
  for (const ExportRow& row : rows.rows) lines[row.access.access].add(row.access);
  const auto merge = [](Line& into, const Line& from) {
    into.accesses += from.accesses;
    into.read += from.read;
    into.written += from.written;
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].accesses == 0) continue;
    const Access& access = graph.derived->accesses[i];
    const Tensor& tensor = graph.derived->graph->tensor(access.tensor);
    merge(all_, lines[i]);
    merge(phases_[to_text(step.phase)], lines[i]);
    merge(operation_types_[utf8_of(graph.op_names[access.op.v])], lines[i]);
    merge(components_[to_text(tensor.component)], lines[i]);
    merge(sources_[to_text(tensor.source)], lines[i]);
    merge(layers_[tensor.layer.v], lines[i]);
    if (tensor.kind == TensorKind::Weight) merge(tensors_[utf8_of(tensor.name)], lines[i]);
  }
}

Json Statistics::json_of(const Lines& lines, std::size_t most) {
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return a.second.read + a.second.written > b.second.read + b.second.written;
  });
  if (sorted.size() > most) sorted.resize(most);
  Json json = Json::object();
  for (const auto& [name, line] : sorted) json[name] = line_json(line);
  return json;
}

Json Statistics::json() const {
  Json layers = Json::object();
  for (const auto& [layer, line] : layers_)
    layers[layer < 0 ? std::string("none") : std::to_string(layer)] = line_json(line);
  Json json = {{"steps", steps_}, {"tokens_evaluated", tokens_}, {"step_ns", step_ns_}};
  json.update(line_json(all_));
  json["phases"] = json_of(phases_);
  json["layers"] = std::move(layers);
  json["operation_types"] = json_of(operation_types_);
  json["components"] = json_of(components_);
  json["memory_sources"] = json_of(sources_);
  json["weights_with_most_bytes"] = json_of(tensors_, kTopTensors);
  return json;
}

}  // namespace tt::exchange
