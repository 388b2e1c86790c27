// The ops of one step as rows: what ran, when, on what, and from where it read.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/op_facts.h"
#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

struct OpRow {
  OpId op;
  std::string name;  // op_name()
  TensorId output;
  // Of the output, or where its name says nothing, of the first weight that the op reads.
  Component component = Component::Other;
  Role role = Role::None;
  Ns begin{}, end{};  // the step's own where its timing is None
  Bytes read{}, written{};
  std::vector<TensorId> sources;      // in ggml's order, without what lives only inside a fused op
  std::optional<ValueStats> stats{};  // of the output's values, where VERBOSE asked for them
  friend bool operator==(const OpRow&, const OpRow&) = default;
};

// The rows name tensors by their place in `graph`.
struct OpTable {
  std::shared_ptr<const GraphTemplate> graph;  // null: no template was recorded, no rows
  Page<OpRow> page;
};

struct OpFilter {
  std::string name{};              // has_part() of the op's or its output's
  std::optional<LayerId> layer{};  // of the op; kNoLayer: those outside of any
  std::optional<Component> component{};
};

// ByOp: as they ran. ByBytes: read and written. The layer is what rows may lack.
enum class OpSort { ByOp, ByName, ByDuration, ByBytes, ByLayer };

// Ops `range` of one step, of those that pass the filter. An op that did not run
// (a cancelled step) has no row.
std::expected<OpTable, TraceError> op_table(const SessionReader& reader, StepId step,
                                            const OpFilter& filter, Order<OpSort> order,
                                            PageRange range);

}  // namespace tt
