// What the recordings of two sessions know about the causes of their differences. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "analysis/tables/session_conditions.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A session's metadata and conditions; both must outlive the call.
struct CauseSide {
  const SessionInfo& info;
  const SessionConditions& conditions;
};

// One sentence per cause: another model, machine or version of llama.cpp; other settings; another
// prompt or request; a reused prefix (the second of two equal requests evaluates almost nothing of
// its prompt); steps that the recording slowed down; a machine that was not clean. Empty: none of
// these.
std::vector<std::string> causes_of(const CauseSide& left, const CauseSide& right);

}  // namespace tt
