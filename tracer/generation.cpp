#include "tracer/generation.h"

#include <array>

namespace tt {

bool ends_at_eog(const GenerationRequest& request) {
  return !request.ignore_eos || !request.sampling.grammar.empty();
}

const char* to_text(StopReason reason) {
  static constexpr std::array words = {"none",         "eos",       "stop",  "length",
                                       "context_full", "cancelled", "error", "embedded"};
  return words[static_cast<std::size_t>(reason)];
}

}  // namespace tt
