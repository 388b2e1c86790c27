// The table of analyses: one row per question about one session. From a row come the REST route
// (server/routes/analysis_routes.cpp), its description and the types of its answer
// (api/openapi.yaml, and from it the types of the page), `tt analyze NAME`, docs/analyses.md, and
// the loops of the tests over all questions (damage, fuzzing, equal answers of REST and tt).
//
// An analysis itself is a pure function in its own file. To add one: README.md of this folder.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/schema.h"
#include "analysis/fields/value.h"
#include "analysis/parameters/parameter.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

class SessionIndex;
enum class LeaveOut : bool;

// The session that a question is about. Both outlive the computation.
struct Subject {
  const SessionReader& reader;
  // The index of the session; built when it is first asked for.
  std::function<std::expected<std::shared_ptr<const SessionIndex>, TraceError>(
      LeaveOut, const ContinueCheck&)>
      index;
};
// A subject that builds its index itself.
Subject subject_of(const SessionReader& reader);

// A question with its parameters. May be asked several times, on any thread.
using Question =
    std::function<std::expected<fields::Value, TraceError>(const Subject&, const ContinueCheck&)>;

struct Analysis {
  // What a question costs: whether it waits for others (server/http/session_query_handler.h).
  enum class Cost : std::uint8_t {
    Little,    // reads a part of the session, or little of each step
    AllSteps,  // reads every step
    Index      // reads every step for the index, unless that was built before
  };

  const char* name;     // "expert-pinning": of `tt analyze`, and of the operation
  const char* path;     // of the route below that of the session: "experts/pinning"
  const char* summary;  // one line: what the question is
  const char* answer;   // one line: what the answer has
  Cost cost;
  // Values of the parameters that must be given, "step=0": for examples and for the tests.
  const char* example = "";
  std::vector<ParameterInfo> parameters{};
  fields::Schema schema{};
  // Reads the parameters.
  std::function<std::expected<Question, ParameterError>(const ParameterText&)> parse{};
  // Whether nothing of the session passes the filter of these parameters, so that an answer has
  // only zeros: then `tt` says kNothingMatches instead. Null: the question has no filter.
  std::function<std::expected<bool, TraceError>(const ParameterText&, const Subject&,
                                                const ContinueCheck&)>
      matches_nothing{};
  // A question about a part that not every model has: the fields of the answer, "steps.layers
  // steps.state_read", of which none has a row or a number above 0 where the model has no such
  // part. Then `missing` says so in a sentence, which the answer has in its field "missing", and
  // `tt` fails with it. Empty: the question is about every session.
  const char* needs = "";
  std::string (*missing)(const SessionInfo&) = nullptr;
};

// All rows, sorted by name.
std::span<const Analysis> analyses();
const Analysis* find_analysis(std::string_view name);  // null: there is none

// The field "missing" of an answer: why the question does not apply to the session, as a sentence.
// Null: it does.
const std::string* does_not_apply(const fields::Value& answer);

// The values of "step=0 by=type". nullopt: not given.
ParameterText parameter_text(std::string_view values);

}  // namespace tt
