#include "analysis/tables/step_summary.h"

#include <algorithm>
#include <format>
#include <utility>

#include "analysis/common/file_bytes.h"
#include "analysis/common/walk_steps.h"

namespace tt {

namespace {

constexpr std::uint32_t kMaxLayers = 1024;  // limits memory for untrusted files

// The index of an op's layer in the per-layer lists; the last entry is for ops outside of
// layers.
std::size_t layer_entry(const GraphTemplate& graph, OpId op, std::uint32_t n_layers) {
  const LayerId layer = graph.op(op).layer;
  return layer.v < 0 || std::cmp_greater_equal(layer.v, n_layers)
             ? n_layers
             : static_cast<std::size_t>(layer.v);
}

}  // namespace

StepSummary step_summary(const GraphTemplate* graph, std::span<const Access> accesses,
                         const Step& step, std::uint32_t n_layers) {
  StepSummary out;
  out.StepFacts::operator=(facts_of(step));
  out.layer_ns.resize(n_layers + std::size_t{1});
  out.layer_bytes.resize(n_layers + std::size_t{1});
  if (graph == nullptr) return out;

  out.ops_timed = std::min(step.op_ends.size(), graph->ops.size());
  for (std::uint32_t i = 0; i < out.ops_timed; ++i) {
    Ns& ns = out.layer_ns[layer_entry(*graph, OpId{i}, n_layers)];
    ns = ns + (step.op_ends[i] - step.op_begin(OpId{i}));
  }
  FileBytes mapped;
  for_each_access(*graph, accesses, step, [&](const StepAccess& row) {
    mapped.add_reads(*graph, row);
    ++out.accesses;
    (row.write ? out.written : out.read) += row.touched;
    out.layer_bytes[layer_entry(*graph, row.op, n_layers)] += row.touched;
  });
  out.mapped = mapped.size();
  return out;
}

std::expected<Page<StepSummary>, TraceError> step_summaries(const SessionReader& reader,
                                                            PageRange range,
                                                            const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (info->n_layers > kMaxLayers) {
    return std::unexpected(
        TraceError{TraceError::Kind::Damaged,
                   std::format("the session's layer count {} is above the limit of {}",
                               info->n_layers, kMaxLayers)});
  }
  const auto total = reader.step_count();
  if (!total) return std::unexpected(total.error());

  Page<StepSummary> page{.total = *total, .rows = {}};
  if (range.from >= *total) return page;
  const auto read = walk_derived_steps(
      reader, range, keep_going, [&](const DerivedPtr& derived, const Step& step) {
        page.rows.push_back(
            derived == nullptr
                ? step_summary(nullptr, {}, step, info->n_layers)
                : step_summary(derived->graph.get(), derived->accesses, step, info->n_layers));
      });
  if (!read) return std::unexpected(read.error());
  return page;
}

}  // namespace tt
