// Comparison of two sessions, such as two prompts, two settings or two quantizations of one
// model. Tokens are aligned by index, templates by structure and rows by name. An item
// that occurs in only one session has only one side. Also of two tokens, steps or layers of
// one session. What is compared is one step of one phase (analysis/aggregate/step_costs.h). Pure
// functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/step_costs.h"
#include "analysis/aggregate/step_times.h"
#include "analysis/common/page.h"
#include "analysis/common/spread.h"
#include "analysis/fields/declare.h"
#include "analysis/findings/compared_fact.h"
#include "analysis/findings/comparison_causes.h"
#include "analysis/findings/model_memory.h"
#include "analysis/index/session_index.h"
#include "analysis/speed/speed_verdict.h"
#include "analysis/tables/token_speed.h"
#include "analysis/values/chosen_change.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A session's index and reader; both must outlive the call.
struct ComparedSession {
  const SessionIndex& index;
  const SessionReader& reader;
};

// Of two sides, as StepCost::sums. None: only the other side has such a row.
struct ComparedSums {
  std::optional<TraceSums> left, right;
};
struct ComparedRow : ComparedSums {
  std::string name;
};
// The axes of which sessions have rows in common.
inline constexpr std::array kComparedAxes = {Axis::Component, Axis::Layer, Axis::OpKind,
                                             Axis::Tensor};

struct ComparedToken {
  std::uint32_t index = 0;
  std::optional<Token> left, right;
  // The duration of the step that evaluated the token, divided by the tokens of the step.
  // None: not evaluated, or the step was left out of the index.
  std::optional<Ns> left_ns, right_ns;
};
struct TokenAlignment {
  std::uint32_t left = 0, right = 0;  // token counts
  std::uint32_t common = 0;           // length of the common prefix
  Page<ComparedToken> rows;
};

// Identical: equal fingerprints. SameOps: the same ops on tensors of the same names, which
// may differ in type, shape and location. OnlyLeft, OnlyRight: no counterpart.
enum class TemplateMatch : std::uint8_t { Identical, SameOps, OnlyLeft, OnlyRight };
const char* to_text(TemplateMatch);
struct ComparedTemplate {
  TemplateMatch match = TemplateMatch::Identical;
  TemplateId left{}, right{};  // 0: none
  std::uint32_t left_steps = 0, right_steps = 0, left_ops = 0, right_ops = 0;
  friend bool operator==(const ComparedTemplate&, const ComparedTemplate&) = default;
};

// Which steps count is the same for all times of a comparison.
// None: the session has no step of the phase.
struct ComparedTimes {
  std::optional<CountedTimes> left, right;
  friend bool operator==(const ComparedTimes&, const ComparedTimes&) = default;
};

// Whether the evaluation of a token takes longer in the right session, and whether this is more
// than noise. Of generated tokens; of those of the prompt if one of the sessions generated none.
// Judged by the counted_steps(), if nothing is known to have disturbed them.
struct TokenChange {
  struct Side {
    std::size_t steps = 0;  // that are judged
    Ns median{};            // of their times per token; 0: none
    double bytes_read = 0;  // bytes_per_token()
    friend bool operator==(const Side&, const Side&) = default;
  };
  Phase phase = Phase::Generate;
  Side left, right;
  // Without interval: fewer than kLeastSamples steps on a side.
  SpeedChange time;
  // Otherwise times of this phase say nothing about a difference.
  bool has_enough_steps() const { return time.low && time.high; }
};

// What the tokens of Comparison::change read of one memory source.
struct ComparedSource {
  Source source = Source::Disk;
  double left = 0, right = 0;  // bytes per token
  friend bool operator==(const ComparedSource&, const ComparedSource&) = default;
};

struct Comparison {
  // Of which `total` and `rows` are: that of the query; else that of `change`, or
  // ranked_phase() of the left session.
  Phase phase = Phase::Generate;
  ComparedSums total;
  std::vector<ComparedRow> rows;          // of the axis of the query; none: no axis
  std::optional<TokenChange> change;      // none: no phase with tokens is in both sessions
  std::vector<ComparedSource> sources;    // of `change`, the largest difference first
  TokenSpeed left_speed, right_speed;     // of the whole sessions, also of disturbed steps
  ModelMemory left_memory, right_memory;  // empty: not known
  std::vector<DifferenceCause> causes;    // of differences
  std::vector<ComparedFact> facts;        // sorted by name; without result.* and trace.*
  std::map<Phase, ComparedTimes> step_times;
  TokenAlignment tokens;
  std::optional<ChosenChange> chosen;       // none: not captured in both
  std::vector<ComparedTemplate> templates;  // in the order of the left session
};

// Whether times of the phase say something about a difference: both sides have undisturbed steps,
// of the phase of Comparison::change enough of them.
bool is_comparable(const Comparison& comparison, Phase phase);

// Model, settings, request and machine, as facts; without what a run resulted in.
FactsByName settings_of(const SessionInfo& info);

struct CompareQuery {
  std::optional<Axis> by{};  // one of kComparedAxes
  std::optional<Phase> phase{};
  PageRange tokens = kAllRows;  // rows of the token alignment
};
std::expected<Comparison, TraceError> compare(const ComparedSession& left,
                                              const ComparedSession& right,
                                              const CompareQuery& query = {},
                                              const ContinueCheck& keep_going = never_cancel);
// The rows of an axis, largest difference in time first, then in bytes. Rows with equal names are
// paired in order.
std::expected<std::vector<ComparedRow>, TraceError> compare_rows(
    const SessionIndex& left, const SessionIndex& right, Axis by, Phase phase,
    const ContinueCheck& keep_going = never_cancel);

// Two tokens, steps or layers of one session.
struct WithinQuery {
  Axis axis = Axis::Token;  // Token, Step or Layer
  std::uint64_t left = 0, right = 0;
  Value value = Value::Time;  // rows are sorted by the difference of it, largest first
  TraceFilter filter{};       // of both sides; its condition on `axis` is replaced
  PageRange page = kAllRows;
};
// The filter, restricted to the token, step or layer `at`.
TraceFilter filter_of_side(TraceFilter filter, Axis axis, std::uint64_t at);
// The rows are tensors that own bytes; tensors with the same name are one row. Between layers,
// the name is without the layer of the side, so that "blk.2.attn_q.weight" and
// "blk.5.attn_q.weight" are one row; a tensor of another layer has its distance in the name
// ("l_out (layer -1)": of the layer before). An output that llama.cpp did not name ("node_30") has
// the type and the layer of its op as its name: "FLASH_ATTN_EXT, layer 3"; between layers
// "FLASH_ATTN_EXT".
struct WithinComparison {
  Axis axis = Axis::Token;
  std::uint64_t left = 0, right = 0;
  // Layers: of one step of this phase, which is ranked_phase(). None: of the token or step itself.
  std::optional<Phase> phase;
  TraceSums left_sums, right_sums;  // of everything that passes the filter
  Page<ComparedRow> rows;
  std::uint32_t damaged_steps = 0;
  std::uint64_t left_out_steps = 0;  // of the index; on no side
};
// NotFound if the session does not have one of both.
std::expected<WithinComparison, TraceError> compare_within(
    const SessionIndex& index, const WithinQuery& query,
    const ContinueCheck& keep_going = never_cancel);

// With difference and ratio.
Fields<ComparedSums> fields_of(const ComparedSums*);
Fields<ComparedRow> fields_of(const ComparedRow*);
Fields<WithinComparison> fields_of(const WithinComparison*);

}  // namespace tt
