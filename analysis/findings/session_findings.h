// Decides the findings and the advice of a session: the only place with their definitions and
// thresholds. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/finding.h"
#include "analysis/findings/session_figures.h"

namespace tt {

// In the order of a report. A topic about which nothing is known has none.
std::vector<Finding> session_findings(const SessionFigures& figures);

// How much RAM is enough; nullopt: not known. `only_interrupted`: no step ran to its end.
std::optional<Finding> enough_memory(const ModelMemory& memory, bool only_interrupted);

// The first failed check of a validation.
struct FailedCheck {
  std::string check, evidence;
};
// The most important first. `failed`: nullopt, if no check failed or none was made.
std::vector<Advice> session_advice(const SessionFigures& figures,
                                   const std::optional<FailedCheck>& failed = {});

// Whether the speed of reading is the limit. Near: at least kNearBound of the read bandwidth that
// was measured on the machine, with the number of threads of the session.
enum class BandwidthUse : std::uint8_t {
  Unknown,    // not measured with these threads, too few steps, or a device other than the CPU
              // computes
  Below,      // the interval does not reach the threshold
  Near,       // the whole interval is above the threshold
  Unclear,    // the threshold is in the interval
  FromCache,  // the weights fit into the processor's last cache: memory is hardly read
  Exceeded,   // a step read faster (kFasterThanMemory): the bandwidth is no bound of this session
};
struct BandwidthFinding {
  BandwidthUse use = BandwidthUse::Unknown;
  double bandwidth = 0;      // bytes per second; 0: not measured with these threads
  double median = 0;         // bytes read per second of op time, of the steps
  double low = 0, high = 0;  // 95 % interval of the median; 0: too few steps
  double fastest = 0;        // of the fastest step, a disturbed one included; 0: says nothing
  double bound = 0;          // tokens per second of generation, if it only read; 0: not known
};
BandwidthFinding bandwidth_use(const SessionFigures& figures);

}  // namespace tt
