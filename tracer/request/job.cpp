#include "tracer/request/job.h"

#include <array>

namespace tt {

const char* to_text(JobState state) {
  static constexpr std::array words = {"queued", "running", "done", "cancelled", "failed"};
  return words[static_cast<std::size_t>(state)];
}

}  // namespace tt
