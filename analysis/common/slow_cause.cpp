#include "analysis/common/slow_cause.h"

#include <format>

#include "analysis/common/format_units.h"
#include "analysis/common/verdict.h"

namespace tt {

std::string slow_cause(const Step& step) {
  if (step.timing == Timing::Learned) return "new graph: measured while it was learned";
  const auto verdict = verdict_of(step.conditions, step.threads);
  switch (verdict.value_or(Verdict::Clean)) {
    case Verdict::Contended:
      return std::format(
          "other programs: waited {} for a processor",
          format_duration(static_cast<double>(step.conditions.cpu_wait_ns.value_or(0))));
    case Verdict::Throttled:
      return "a CPU limit, or slowed processors";
    case Verdict::Disk:
      return std::format("waited for the disk: {}",
                         counted(step.conditions.major_faults.value_or(0), "time"));
    case Verdict::Clean:
      break;
  }
  if (step.n_tokens > 1) return std::format("{} at once", counted(step.n_tokens, "token"));
  return verdict ? "none found" : "not recorded";
}

}  // namespace tt
