// The words for the findings and the advice of a session, the only ones: tt report prints them,
// REST returns them, the page shows them. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/findings/finding.h"

namespace tt {

// One or a few sentences: "55.2 % of the bytes that are read from the mapped model file..."
// "4.4 tokens/s". Two digits at least.
std::string speed_text(double tokens_per_second);

std::string finding_text(const Finding& finding);

struct AdviceText {
  std::string advice;   // what to do, in the imperative
  std::string because;  // the reason, with its numbers
};
AdviceText advice_text(const Advice& advice);

// What a session comes down to, at most three: the speed, what a token reads, what limits the
// speed. Each with the finding that explains it.
struct HeadlineFigure {
  std::string name;   // "limited by"
  std::string value;  // "memory bandwidth"
  FindingTopic topic = FindingTopic::Speed;
};
std::vector<HeadlineFigure> headline_of(std::span<const Finding> findings);

}  // namespace tt
