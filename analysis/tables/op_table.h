// The ops of one step as table rows: name, time, bytes, sources and output.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/kernel.h"
#include "analysis/common/op_info.h"
#include "analysis/common/page.h"
#include "analysis/common/step_facts.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

struct OpRow {
  OpId op;
  std::string name;  // op_name()
  TensorId output;
  // As op_role_of().
  Component component = Component::Other;
  Role role = Role::None;
  std::optional<Kernel> kernel{};  // kernel_of()
  Ns begin{};                      // that of the step if the op has no time
  std::optional<Ns> duration{};    // none: no time was recorded
  Bytes read{}, written{};
  std::vector<TensorId> sources;      // op_sources()
  std::optional<ValueStats> stats{};  // of the output's values, if recorded (level VERBOSE)
  friend bool operator==(const OpRow&, const OpRow&) = default;
};

// TensorIds in the rows are indices into `graph`.
struct OpTable {
  StepFacts step;
  std::shared_ptr<const GraphTemplate> graph;  // null: no template was recorded; no rows
  Page<OpRow> page;
};

struct OpFilter {
  std::string name{};  // pattern (matches_pattern()) on the name of the op or its output
  std::optional<LayerId> layer{};  // of the op; kNoLayer: ops outside of layers
  std::optional<Component> component{};
};

// ByOp: execution order. ByBytes: read plus written. Rows may lack the duration and the layer.
enum class OpSort { ByOp, ByName, ByDuration, ByBytes, ByLayer };

// The rows `range` of the ops of one step that pass the filter. An op that did not run
// (in a cancelled step) has no row.
std::expected<OpTable, TraceError> op_table(const SessionReader& reader, StepId step,
                                            const OpFilter& filter, Order<OpSort> order,
                                            PageRange range);

}  // namespace tt
