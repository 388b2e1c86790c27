#include "tracer/engine/load_record.h"

#include <format>

namespace tt {

namespace {

std::string elapsed_ns(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::to_string(std::chrono::nanoseconds(to - from).count());
}

}  // namespace

void LoadRecord::end_part(const char* part) {
  const auto now = Clock::now();
  parts_.emplace_back(std::format("load.{}_ns", part), elapsed_ns(last_, now));
  last_ = now;
}

LoadRecord::Facts LoadRecord::facts() const {
  const MachineState::Usage now = MachineState::usage();
  Facts facts = {{"load.duration_ns", elapsed_ns(begin_, last_)}};
  facts.insert(facts.end(), parts_.begin(), parts_.end());
  facts.emplace_back("load.disk_read_bytes", std::to_string(now.disk_bytes - before_.disk_bytes));
  facts.emplace_back("load.minor_faults", std::to_string(now.minor - before_.minor));
  facts.emplace_back("load.major_faults", std::to_string(now.major - before_.major));
  return facts;
}

}  // namespace tt
