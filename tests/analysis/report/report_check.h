// Compares analysis/report/report.h with a reference implementation: figures from a walk over
// every access.
#pragma once

#include <filesystem>

#include "analysis/report/report.h"

namespace tt::test {

// Checks the figures of a session; that the pin plan has the most-read tensors and experts and
// saves the simulated number of bytes; and that the advice names the tensors to pin.
void expect_figures(const ReportData& figures, const SessionReader& reader);

// Also checks that the report renders as HTML, Markdown and JSON.
void expect_report(const std::filesystem::path& file, const SessionIndex& index,
                   const SessionReader& reader);

}  // namespace tt::test
