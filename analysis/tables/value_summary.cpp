#include "analysis/tables/value_summary.h"
#include "tracer/format/model/captured_kinds.h"
#include "tracer/format/model/lens_values.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <vector>

namespace tt {

ValueSummary summary_of(std::span<const float> values) {
  ValueSummary summary;
  double sum = 0, squares = 0;
  for (const float value : values) {
    if (std::isnan(value)) {
      ++summary.nan;
    } else if (std::isinf(value)) {
      ++summary.inf;
    } else {
      const double v = double{value};
      summary.min = summary.finite == 0 ? v : std::min(summary.min, v);
      summary.max = summary.finite == 0 ? v : std::max(summary.max, v);
      sum += v;
      squares += v * v;
      ++summary.finite;
    }
  }
  summary.norm = std::sqrt(squares);
  if (summary.finite == 0) return summary;
  const auto n = static_cast<double>(summary.finite);
  summary.mean = sum / n;
  double deviations = 0;
  for (const float value : values)
    if (std::isfinite(value))
      deviations += (double{value} - summary.mean) * (double{value} - summary.mean);
  summary.std = std::sqrt(deviations / n);
  return summary;
}

ValueSummary summary_of(const OutputValues& values) {
  if (!is_top(values.of)) return summary_of(std::span(values.values));
  const std::size_t count = values.ne[0];
  std::vector<float> largest;
  std::span<const float> rest = values.values;
  for (; count > 0 && rest.size() >= 2 * count; rest = rest.subspan(2 * count))
    largest.append_range(rest.subspan(count, count));
  return summary_of(std::span<const float>(largest));
}

std::string value_name(const GraphTemplate& graph, const OutputValues& values) {
  const Op& op = graph.op(values.op);
  if (values.of == ValuesOf::Output || is_source(values.of) || is_top(values.of)) {
    std::string name = graph.tensor(graph.node(op.last()).output).name;
    if (is_source(values.of)) name += std::format(".src{}", source_of(values.of));
    if (is_top(values.of)) name += ".top";
    return name;
  }
  const char* const what = values.of == kLensValues ? "lens" : "attention";
  return op.layer == kNoLayer ? what : std::format("{}-{}", what, op.layer.v);
}

}  // namespace tt
