// How the probabilities of chosen tokens differ between two sessions that both captured the logit
// lens: what a change at a breakpoint or another setting did to the answer. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "analysis/common/walk_steps.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ChosenChange {
  struct Side {
    std::string text;  // of the chosen token, bytes
    double probability = 0;
    friend bool operator==(const Side&, const Side&) = default;
  };
  struct At {
    std::uint32_t token = 0;  // index in both sessions
    Side left, right;
    friend bool operator==(const At&, const At&) = default;
  };
  std::uint32_t tokens = 0;          // that both chose after the same text
  std::optional<At> first, largest;  // with another probability; none: all are equal
  std::optional<At> other;           // where the texts part; none: nowhere, or it was not captured
  friend bool operator==(const ChosenChange&, const ChosenChange&) = default;
};

// `common`: the number of first tokens that both have. nullopt: no token was chosen after the same
// text with a probability in both sessions.
std::expected<std::optional<ChosenChange>, TraceError> chosen_change(
    const SessionReader& left, const SessionReader& right, std::uint32_t common,
    const ContinueCheck& keep_going);

}  // namespace tt
