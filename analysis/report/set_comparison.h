// Comparison of two sets of sessions, such as five recordings with one setting and five with
// another: what one session differs from the next without any reason is the noise that the
// difference is judged by. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/columns/enumerations.h"
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
  // A time or a rate that is not that of the model alone: no step was free of other work of the
  // machine or, for what a whole session takes, its verdict is not clean.
  bool disturbed = false;
};
// "1.25 ms", "12.5 %", "80.12".
std::string figure_text(FigureUnit unit, double value);

// What a set keeps of a session.
struct SetMember {
  FactsByName facts;  // model, settings, machine
  std::vector<SetFigure> figures, rows;
  std::uint32_t disturbed_steps = 0;  // that the evaluation times leave out
};
// `by`: layer, component, op kind or tensor; none: without rows.
std::expected<SetMember, TraceError> set_member(const SessionIndex& index,
                                                const SessionReader& reader, std::optional<Axis> by,
                                                const ContinueCheck& keep_going = never_cancel);

// What all sessions agree on; the names of the other facts are added to `mixed`.
FactsByName common_facts(const std::vector<SetMember>& members, std::set<std::string>& mixed);

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

consteval columns::Enumeration words_of(FigureUnit) {
  return columns::words_to("", FigureUnit::Word);
}
Fields<SampleMedian> fields_of(const SampleMedian*);
Fields<SetComparison> fields_of(const SetComparison*);

}  // namespace tt
