#include "analysis/common/spread.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tracer/format/model/quantile.h"

namespace tt {

std::optional<Spread> spread_of(std::vector<Ns> durations) {
  if (durations.empty()) return std::nullopt;
  std::ranges::sort(durations);
  const auto at = [&](double q) { return *quantile(std::span<const Ns>(durations), q); };
  return Spread{.p5 = at(0.05), .median = at(0.5), .p95 = at(0.95)};
}

}  // namespace tt
