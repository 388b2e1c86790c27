#include "tracer/request/generation.h"

#include <array>
#include <atomic>
#include <chrono>
#include <format>
#include <random>

namespace tt {

std::string new_session_id() {
  // A counter with a random start: ids of one process are unique even within a second.
  static std::atomic<std::uint32_t> next = std::random_device{}();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return std::format("{:%Y%m%d-%H%M%S}-{:06x}", now, next++ & 0xFFFFFFU);
}

const char* to_text(ReuseEnd end) {
  static constexpr std::array words = {"none", "other_token", "sliding_window", "recurrent_state",
                                       "not_kept"};
  return words[static_cast<std::size_t>(end)];
}

const char* to_text(StopReason reason) {
  static constexpr std::array words = {"none",         "eos",       "stop",  "length",
                                       "context_full", "cancelled", "error", "embedded"};
  return words[static_cast<std::size_t>(reason)];
}

}  // namespace tt
