// A report as a self-contained HTML file, as Markdown (without charts), and as JSON.
#pragma once

#include <string>

#include "analysis/report/report.h"
#include "api/json/json.h"

namespace tt {

enum class ReportFormat : std::uint8_t { Html, Markdown, JsonText };

std::string text_of(const Report& report, ReportFormat format);

// The Content-Security-Policy of the HTML file, which it has itself: its own script runs, by its hash,
// and nothing else.
std::string html_report_policy();

}  // namespace tt
