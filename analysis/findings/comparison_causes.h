// What the recordings of two sessions know about the causes of their differences. Data; the words
// are in api/text/cause_text.h. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/findings/compared_fact.h"
#include "analysis/tables/session_conditions.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class DifferenceKind : std::uint8_t {
  Altered,  // what a run was changed to compute at its stops
  Model,
  Settings,   // of the context: facts "context.*"
  Recording,  // level, timing
  Request,    // facts "request.*", without those of stops: where a run stops changes no result
  Reuse,      // a reused prefix: the second of two equal requests evaluates almost nothing of it
  NewGraphs,  // steps that the recording slowed down
  Disturbed,  // a machine that was not clean
  Machine,    // facts "host.*"
  Library,    // facts "library.*"
};
const char* to_text(DifferenceKind);

// A cause: what differs, on both sides. `facts` is not empty. Names that are not those of metadata:
//   model.file                         name of the first file
//   model.bytes                        of all files
//   record.level, record.timing
//   steps.new_graph                    number of steps with a graph for the first time
//   machine                            what SessionConditions::text says; none: clean, or not known
struct DifferenceCause {
  DifferenceKind kind = DifferenceKind::Model;
  std::vector<ComparedFact> facts;  // sorted by name
  friend bool operator==(const DifferenceCause&, const DifferenceCause&) = default;
};

// A session's metadata and conditions; both must outlive the call.
struct CauseSide {
  const SessionInfo& info;
  const SessionConditions& conditions;
};

// At most one of each kind. Empty: no cause is recorded.
std::vector<DifferenceCause> causes_of(const CauseSide& left, const CauseSide& right);

}  // namespace tt
