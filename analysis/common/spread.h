// Median and spread of durations.
#pragma once

#include <optional>
#include <vector>

#include "analysis/fields/declare.h"
#include "tracer/format/model/ids.h"

namespace tt {

// Quantiles by the rule of tracer/format/model/quantile.h.
struct Spread {
  Ns p5{}, median{}, p95{};
  friend bool operator==(const Spread&, const Spread&) = default;
};

std::optional<Spread> spread_of(std::vector<Ns> durations);  // nullopt: there are none

Fields<Spread> fields_of(const Spread*);

}  // namespace tt
