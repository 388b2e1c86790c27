#pragma once

#include <chrono>
#include <optional>

#include "tracer/gguf/file_residency.h"

namespace tt {

// What is recorded beside the steps.
struct RecordingOptions {
  bool minor_faults = false;
  // What of the model files is in memory, before steps: at most one snapshot per interval, 0:
  // before every step.
  std::optional<FileResidency> residency;
  std::chrono::milliseconds residency_interval{};
};

}  // namespace tt
