#include "analysis/common/spread.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tracer/format/model/quantile.h"

namespace tt {

std::optional<Spread> spread_of(std::vector<Ns> durations) {
  if (durations.empty()) return std::nullopt;
  // Not sorted, which takes longer: the values from one quantile on have the next one.
  auto found = durations.begin();
  const auto at = [&](double q) {
    const auto place =
        durations.begin() + static_cast<std::ptrdiff_t>(quantile_place(durations.size(), q));
    std::ranges::nth_element(found, place, durations.end());
    found = place;
    return *place;
  };
  const Ns p5 = at(0.05), median = at(0.5), p95 = at(0.95);
  return Spread{.p5 = p5, .median = median, .p95 = p95};
}

}  // namespace tt
