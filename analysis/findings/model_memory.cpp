#include "analysis/findings/model_memory.h"

#include <memory>
#include <ranges>
#include <set>
#include <string_view>

namespace tt {

bool is_recurrent_state(const Tensor& tensor) {
  return tensor.kind == TensorKind::Kv && tensor.role == Role::State;
}

ModelMemory model_memory(const GraphTemplate& graph, const SessionInfo& info) {
  ModelMemory memory;
  std::set<std::string_view> seen;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.view_of != kNoTensor || tensor.source == Source::Device) continue;
    const bool is_compute = tensor.kind != TensorKind::Weight && tensor.kind != TensorKind::Kv;
    if (!seen.insert(tensor.name).second) continue;
    Bytes& place = is_compute                          ? memory.touched_compute
                   : is_recurrent_state(tensor)        ? memory.recurrent
                   : tensor.kind == TensorKind::Kv     ? memory.kv
                   : tensor.source == Source::Repacked ? memory.repacked
                                                       : memory.file;
    place += size_of(tensor);
  }
  if (const auto bytes = info.fact_number("result.compute_bytes")) memory.compute = Bytes{*bytes};
  memory.cache_tokens = info.fact_number("context.size");
  memory.flash_attention = info.fact("context.flash_attention");
  return memory;
}

std::expected<std::shared_ptr<const GraphTemplate>, TraceError> last_graph(
    const SessionIndex& index, const SessionReader& reader) {
  TemplateId last{};
  for (const IndexedStep& step : index.steps() | std::views::reverse) {
    if (step.series == kNone) continue;
    if (!step.interrupted || last.v == 0) last = index.series()[step.series].graph;
    if (!step.interrupted) break;
  }
  if (last.v == 0) return nullptr;
  return reader.graph(last);
}

std::expected<ModelMemory, TraceError> model_memory(const SessionIndex& index,
                                                    const SessionReader& reader) {
  const auto graph = last_graph(index, reader);
  if (!graph) return std::unexpected(graph.error());
  return *graph ? model_memory(**graph, index.info()) : ModelMemory{};
}

std::expected<ModelMemory, TraceError> model_memory(const SessionReader& reader,
                                                    const SessionInfo& info) {
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  // Nearly always the last step is complete.
  TemplateId last{};
  for (std::uint32_t i = *steps; i-- > 0;) {
    const auto step = reader.step(StepId{i});
    if (!step) return std::unexpected(step.error());
    if (step->graph.v == 0) continue;
    const bool is_complete = !step->aborted && !step->dropped;
    if (is_complete || last.v == 0) last = step->graph;
    if (is_complete) break;
  }
  if (last.v == 0) return ModelMemory{};
  return reader.graph(last).transform(
      [&](const auto& graph) { return model_memory(*graph, info); });
}

}  // namespace tt
