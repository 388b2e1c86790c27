#include "analysis/common/machine_bounds.h"

#include <optional>
#include <string_view>
#include <utility>

namespace tt {

namespace {

// 0, with the word why: the rate is not known.
double machine_rate(const SessionInfo& info, const std::string& name, std::uint64_t threads,
                    std::string& why) {
  const std::optional<std::uint64_t> measured_with = info.fact_number("host." + name + "_threads");
  if (measured_with == threads)
    if (const auto rate = info.fact_number("host." + name).value_or(0); rate > 0)
      return static_cast<double>(rate);
  const std::string_view recorded = info.fact("host.no_" + name);
  why = measured_with                               ? "other_threads"
        : !recorded.empty()                         ? std::string(recorded)
        : !info.fact("trace.imported_from").empty() ? "imported"
                                                    : "not_recorded";
  return 0;
}

}  // namespace

const char* reason_of(const std::string& word) {
  for (const auto& [known, reason] :
       {std::pair{"small_model", "the model is not larger than the last cache"},
        std::pair{"no_folder", "there is no folder to store it"},
        std::pair{"little_memory", "too little memory was free to measure it"},
        std::pair{"busy", "other programs disturbed each measurement"},
        std::pair{"not_stored", "no measurement with these threads is stored"},
        std::pair{"other_threads", "it was measured with another number of threads"},
        std::pair{"imported", "the import does not have it"},
        std::pair{"exceeded", "a step of this session read faster than what was measured"}})
    if (word == known) return reason;
  return "the recording does not have it";
}

MachineBounds machine_bounds(const SessionInfo& info, std::uint64_t threads) {
  MachineBounds bounds;
  bounds.read_bandwidth = machine_rate(info, "read_bandwidth", threads, bounds.no_read_bandwidth);
  bounds.compute_peak = machine_rate(info, "compute_peak", threads, bounds.no_compute_peak);
  bounds.last_cache = info.fact_number("host.last_cache_bytes").value_or(0);
  return bounds;
}

}  // namespace tt
