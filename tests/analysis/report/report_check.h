// The second way to a report (analysis/report/report.h): its figures from a walk over every
// access, its advice from these.
#pragma once

#include <filesystem>

#include "analysis/report/report.h"

namespace tt::test {

// The figures of a session; that what is to be pinned are the tensors and experts that are
// read most, and save what a walk through the reads says; that there is advice exactly
// where its reason is, and that it names what to pin.
void expect_figures(const ReportFigures& figures, const SessionReader& reader);

// That, and that the report is told: as HTML, Markdown, JSON.
void expect_report(const std::filesystem::path& file, const SessionIndex& index,
                   const SessionReader& reader);

}  // namespace tt::test
