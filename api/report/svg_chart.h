// Charts of a report as SVG text: no script, no font of their own, colours by
// the classes c0, c1, ... of the page that they stand in. Each has a title that
// a screen reader says. Pure functions; a chart without data is no text.
#pragma once

#include <string>

#include "analysis/report/report.h"

namespace tt {

std::string svg_of(const Chart& chart);

}  // namespace tt
