// The words for the causes of differences between two sessions, the only ones: tt compare prints
// them, REST returns them, the page shows them. Pure functions.
#pragma once

#include <string>

#include "analysis/findings/comparison_causes.h"

namespace tt {

// "Other settings".
const char* cause_title(DifferenceKind kind);
// Why it makes a difference, a sentence; "": the title and the facts say it.
const char* cause_reason(const DifferenceCause& cause);
// "context size" of "context.size"; of a name that is not known, its last part without underscores.
std::string fact_label(const std::string& name);
// All in one line: "Other settings: context size 512 and 1024, threads 2 and 4." Of long values
// only the label, of many facts only the first.
std::string cause_line(const DifferenceCause& cause);
// What is said if no cause is known.
inline constexpr const char* kNoCause =
    "No cause of a difference is recorded: same model, settings, request and machine.";

}  // namespace tt
