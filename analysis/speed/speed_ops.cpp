#include "analysis/speed/speed_ops.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/speed/quiet_time.h"

namespace tt {

std::expected<StepsTime, TraceError> time_of_steps(const SessionReader& reader, StepId first,
                                                   StepId end) {
  StepsTime sums;
  struct Kind {
    double ns = 0, step_ns = 0;  // of all steps, of the current one
    std::uint64_t count = 0;
    // Times of steps in their order, by template and number of tokens.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> steps;
  };
  std::map<std::string, Kind> kinds;
  std::map<std::uint32_t, std::vector<Kind*>> kinds_of_ops;  // by template
  std::optional<TraceError> failed;
  const auto read = reader.for_each_step(first, end.v - first.v, [&](const Step& step) {
    ++sums.steps;
    sums.conditions.add(step.conditions, step.threads);
    if (step.graph == TemplateId{} || step.timing == Timing::None) {
      ++sums.steps_without_times;
      return true;
    }
    auto [known, fresh] = kinds_of_ops.try_emplace(step.graph.v);
    if (fresh) {
      const auto graph = reader.graph(step.graph);
      if (!graph) {
        failed = graph.error();
        return false;
      }
      for (const Op& op : (*graph)->ops) known->second.push_back(&kinds[op_name(**graph, op)]);
    }
    for (std::uint32_t op = 0; op < known->second.size(); ++op) {
      const auto duration = step.op_duration(OpId{op});
      if (!duration) continue;
      known->second[op]->step_ns += static_cast<double>(duration->v);
      ++known->second[op]->count;
    }
    for (auto& [name, kind] : kinds) {
      if (kind.step_ns <= 0) continue;
      kind.steps[{step.graph.v, step.n_tokens}].push_back(kind.step_ns);
      kind.ns += std::exchange(kind.step_ns, 0);
    }
    return true;
  });
  if (failed) return std::unexpected(*failed);
  if (!read) return std::unexpected(read.error());
  for (auto& [name, kind] : kinds) {
    OpKindTime& row = sums.ops.emplace_back();
    row.op = name;
    row.ns = kind.ns;
    row.count = kind.count;
    for (const auto& [group, times] : kind.steps)
      row.quiet_ns += quiet_time(times) * static_cast<double>(times.size());
  }
  return sums;
}

}  // namespace tt
