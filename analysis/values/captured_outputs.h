// The captured values of ops in one session: what was captured, and the values of one output with
// their histogram (docs/values.md). Pure functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/tables/value_summary.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Which outputs are meant.
struct CapturedSelection {
  std::optional<StepId> step{};  // nullopt: of all steps
  std::string output{};          // its name (value_name()); empty: all
};

// Calls `visit` for the selected outputs in order, until it returns an error. Returns how many
// outputs of these steps were not captured.
using CapturedVisit = std::function<std::expected<void, TraceError>(
    StepId step, const GraphTemplate& graph, const std::string& name, const OutputValues& output)>;
std::expected<std::uint64_t, TraceError> for_each_captured(const SessionReader& reader,
                                                           const CapturedSelection& selection,
                                                           const ContinueCheck& keep_going,
                                                           const CapturedVisit& visit);

// The numbers of an output as an array, ne[0] in a row: of the largest values of rows, only the
// values. Without elements: the logit lens, which has texts.
struct CapturedArray {
  std::array<std::uint64_t, 4> ne{};
  std::vector<float> values;
  std::uint64_t rows() const { return ne[1] * ne[2] * ne[3]; }
};
CapturedArray array_of(const OutputValues& output);

// One captured output.
struct CapturedRow {
  StepId step;
  OpId op;
  std::uint32_t token = 0, tokens = 0;  // of the step: the first one, and how many
  std::string operation, output;
  std::string part;  // of the op: "output", "input 1", "largest of output", ...
  LayerId layer = kNoLayer;
  std::string type;                  // of the tensor; the values are 32-bit floats
  std::vector<std::uint64_t> shape;  // of array_of(), without outermost dimensions of 1
  Bytes bytes{};                     // of the values as 32-bit floats
  ValueSummary summary{};
};

struct CapturedQuery {
  std::optional<std::uint32_t> step{};
  std::optional<LayerId> layer{};
  std::string output{};  // empty: all
  PageRange page{};
};

struct CapturedList {
  Page<CapturedRow> page;
  Bytes bytes{};                   // of all outputs of the query
  std::uint64_t not_captured = 0;  // outputs of these steps that were wanted
};

// In the order of steps and ops. Errors: NotFound, the session has no such step or layer, or no
// captured output of this name.
std::expected<CapturedList, TraceError> captured_list(
    const SessionReader& reader, const CapturedQuery& query,
    const ContinueCheck& keep_going = never_cancel);

Fields<CapturedList> fields_of(const CapturedList*);

// Which output of an op.
struct CapturedPlace {
  StepId step{};
  OpId op{};
  std::string output{};  // empty: the first one that was captured
};

// Errors: NotFound, it was not captured.
std::expected<OutputValues, TraceError> captured_output(const SessionReader& reader,
                                                        const CapturedPlace& place);

// The finite values from `from` to `to`; the last bin also has those that are equal to `to`.
struct ValueBin {
  double from = 0, to = 0;
  std::uint64_t count = 0;
};
// Bins of equal width from the smallest to the largest finite value; one if they are equal. Empty:
// there are none.
std::vector<ValueBin> bins_of(std::span<const float> values);

struct CapturedValuesQuery {
  CapturedPlace place{};
  PageRange page{};  // of the values
};

struct CapturedValues {
  CapturedRow of;
  std::uint64_t total = 0;
  std::vector<ValueBin> histogram;
  std::vector<std::optional<double>> values;  // of the page; nullopt: not finite
};

// Errors: as of captured_output(); NotFound also for the logit lens, which is not an array.
std::expected<CapturedValues, TraceError> captured_values(const SessionReader& reader,
                                                          const CapturedValuesQuery& query);

Fields<CapturedValues> fields_of(const CapturedValues*);

// For a session without them.
inline constexpr const char* kNoCapturedValues =
    "The session has no captured values. Record with --capture, such as --capture l_out, or with "
    "\"capture\": [\"l_out\"] in the request.";

}  // namespace tt
