// Report charts as SVG text: no script and no fonts; colours come from the classes c0, c1, ...
// of the embedding page. Each chart has a title for screen readers. Pure functions. A chart
// without data gives an empty string.
#pragma once

#include <string>

#include "analysis/report/report.h"

namespace tt {

std::string svg_of(const Chart& chart);

}  // namespace tt
