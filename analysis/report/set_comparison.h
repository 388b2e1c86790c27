// Comparison of two sets of sessions, such as five recordings with one setting and five with
// another: what one session differs from the next without any reason is the noise that the
// difference is judged by. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/findings/compared_fact.h"
#include "analysis/findings/finding.h"
#include "analysis/index/session_index.h"
#include "analysis/speed/set_verdict.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A figure of one session. Rates and times of the whole session, and the median time per step of
// the rows of an axis (analysis/aggregate/step_times.h).
struct SetFigure {
  std::string name;
  FigureUnit unit = FigureUnit::Duration;
  double value = 0;
};

// What a set keeps of a session.
struct SetMember {
  FactsByName facts;  // model, settings, machine
  std::vector<SetFigure> figures, rows;
};
// `by`: layer, component, op kind or tensor.
std::expected<SetMember, TraceError> set_member(const SessionIndex& index,
                                                const SessionReader& reader, Axis by,
                                                const ContinueCheck& keep_going = never_cancel);

struct ComparedFigure {
  std::string name;
  FigureUnit unit = FigureUnit::Duration;
  SampleMedian left, right;       // of the sessions that have the figure
  std::optional<double> ratio{};  // of the medians, right to left; nullopt: one is missing or 0
  double p = 1;                   // rank_sum_p()
  // Judged together with all other figures and rows (differ()).
  bool different = false;
};

struct SetComparison {
  std::size_t left = 0, right = 0;  // sessions
  // Facts that all sessions of a set have in common and that differ between the sets.
  std::vector<ComparedFact> facts{};
  std::vector<std::string> mixed{};  // facts that differ within a set, by name
  std::vector<ComparedFigure> figures{};
  std::vector<ComparedFigure> rows{};  // largest difference of the medians first
  // Too few sessions for any difference to be significant, whatever it is.
  bool too_few = false;
};
SetComparison compare_sets(const std::vector<SetMember>& left, const std::vector<SetMember>& right);

const Fields<SetComparison>& fields_of(const SetComparison*);

}  // namespace tt
