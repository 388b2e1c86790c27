#include "api/text/change_text.h"

#include <cmath>
#include <format>

#include "analysis/common/format_units.h"

namespace tt {

namespace {

std::string percent(double ratio) { return std::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string duration(Ns time) { return format_duration(static_cast<double>(time.v)); }

// Empty: the recordings have no accesses.
std::string bytes_text(const TokenChange& change) {
  const auto& [phase, before, after, time] = change;
  if (before.bytes_read == 0 && after.bytes_read == 0) return "";
  const std::string left = format_bytes(before.bytes_read), right = format_bytes(after.bytes_read);
  return left == right ? std::format("; it reads {} in both", left)
                       : std::format("; it reads {} instead of {}", right, left);
}

std::string time_text(const TokenChange& change) {
  const auto& [phase, left, right, time] = change;
  const char* token = phase == Phase::Generate ? "generated token" : "prompt token";
  if (!time.low || !time.high)
    return std::format(
        "Whether a {} takes longer in one of the sessions cannot be told from noise: it needs {} "
        "undisturbed steps in each, not {} and {}",
        token, kLeastSamples, left.steps, right.steps);
  const std::string evidence = std::format(
      "{:.0f} % interval of the change: {} to {}, from the fastest of {} and {} undisturbed steps",
      100 * kConfidence, percent(*time.low), percent(*time.high), left.steps, right.steps);
  const std::string before = duration(left.fastest), after = duration(right.fastest);
  if (time.verdict == SpeedVerdict::Equal)
    return std::format(
        "The time of a {}, {} and {}, does not differ significantly between the sessions ({})",
        token, before, after, evidence);
  return std::format(
      "A {} takes {:.1f} % {} in the second session, {} instead of {}, more than the "
      "steps of one session vary ({}); another load of the machine may be the cause",
      token, 100 * std::abs(time.ratio - 1),
      time.verdict == SpeedVerdict::Slower ? "longer" : "less time", after, before, evidence);
}

}  // namespace

std::string what_changed(const Comparison& comparison) {
  if (!comparison.change) return "The sessions have no phase with tokens in common.";
  return std::format("{}{}.", time_text(*comparison.change), bytes_text(*comparison.change));
}

}  // namespace tt
