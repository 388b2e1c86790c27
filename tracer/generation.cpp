#include "tracer/generation.h"

#include <array>

namespace tt {

const char* to_text(StopReason reason) {
  static constexpr std::array words = {"none",         "eos",       "stop",  "length",
                                       "context_full", "cancelled", "error", "embedded"};
  return words[static_cast<std::size_t>(reason)];
}

}  // namespace tt
