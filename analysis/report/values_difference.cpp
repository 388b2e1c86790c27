#include "analysis/report/values_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/tables/value_summary.h"

namespace tt {

namespace {

// The captured outputs of a step, with the graph that they are of.
struct StepOutputs {
  StepValues values;
  std::shared_ptr<const GraphTemplate> graph;  // null: no outputs
  std::string name(const OutputValues& output) const { return value_name(*graph, output); }
};

std::expected<StepOutputs, TraceError> with_graph(const SessionReader& reader,
                                                  const StepValues& values) {
  StepOutputs outputs{.values = values, .graph = nullptr};
  if (values.outputs.empty()) return outputs;
  const auto step = reader.step(values.step);
  if (!step) return std::unexpected(step.error());
  auto graph = reader.graph(step->graph);
  if (!graph) return std::unexpected(graph.error());
  outputs.graph = *std::move(graph);
  return outputs;
}

std::expected<StepOutputs, TraceError> outputs_of(const SessionReader& reader, StepId step) {
  std::optional<StepValues> values;
  const auto read = reader.for_each_values(step, 1, [&](const StepValues& of) {
    values = of;
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return values ? with_graph(reader, *values) : StepOutputs{};
}

double error_of(float left, float right) {
  if (left == right || (std::isnan(left) && std::isnan(right))) return 0;
  const double error = std::abs(double{left} - double{right});
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

void measure(ValuesDifference& difference, std::span<const float> left,
             std::span<const float> right) {
  double squares = 0, of_left = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double error = error_of(left[i], right[i]);
    squares += error * error;
    if (std::isfinite(left[i])) of_left += double{left[i]} * double{left[i]};
    if (i > 0 && error <= difference.max_error) continue;
    difference.max_error = error;
    difference.at = i;
    difference.left = left[i];
    difference.right = right[i];
  }
  if (squares > 0) difference.relative_error = std::sqrt(squares / of_left);
}

void compare_step(const StepOutputs& left, const StepOutputs& right, ValuesComparison& out) {
  std::multimap<std::string, const OutputValues*> others;  // equal names stay in order
  for (const OutputValues& output : right.values.outputs)
    others.emplace(right.name(output), &output);
  for (const OutputValues& output : left.values.outputs) {
    const auto other = others.lower_bound(left.name(output));
    if (other == others.end() || other->first != left.name(output)) {
      ++out.only_left;
      continue;
    }
    const Op& op = left.graph->op(output.op);
    ValuesDifference difference{.step = left.values.step,
                                .op = output.op,
                                .operation = op_name(*left.graph, op),
                                .tensor = left.name(output),
                                .layer = op.layer,
                                .ne = output.ne};
    difference.same_shape = output.ne == other->second->ne;
    if (difference.same_shape) measure(difference, output.values, other->second->values);
    out.outputs.push_back(std::move(difference));
    others.erase(other);
  }
  out.only_right += others.size();
}

std::expected<std::optional<StepId>, TraceError> other_tokens(const SessionReader& left,
                                                              const SessionReader& right) {
  const auto ours = left.tokens(0, UINT32_MAX), theirs = right.tokens(0, UINT32_MAX);
  if (!ours || !theirs) return std::unexpected(ours ? theirs.error() : ours.error());
  const auto [mine, other] = std::ranges::mismatch(*ours, *theirs, {}, &Token::id, &Token::id);
  if (mine == ours->end() || other == theirs->end()) return std::nullopt;
  std::optional<StepId> found;
  const auto read =
      left.for_each_step_row(StepId{0}, UINT32_MAX, [&](const SessionReader::StepRow& row) {
        const bool evaluates = row.head.first_token + row.head.n_tokens > mine->index;
        if (evaluates) found = row.head.id;
        return !evaluates;
      });
  if (!read) return std::unexpected(read.error());
  return found;
}

}  // namespace

std::expected<ValuesComparison, TraceError> compare_values(const SessionReader& left,
                                                           const SessionReader& right,
                                                           const ContinueCheck& keep_going) {
  ValuesComparison comparison;
  const auto other = other_tokens(left, right);
  if (!other) return std::unexpected(other.error());
  comparison.other_tokens = *other;
  std::uint64_t compared_right = 0;
  std::expected<void, TraceError> done;
  const auto read = left.for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& values) {
    if (!keep_going()) {
      done = std::unexpected(cancelled_error());
      return false;
    }
    const auto ours = with_graph(left, values);
    const auto theirs = outputs_of(right, values.step);
    if (!ours || !theirs) {
      done = std::unexpected(ours ? theirs.error() : ours.error());
      return false;
    }
    compared_right += theirs->values.outputs.size();
    compare_step(*ours, *theirs, comparison);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  if (!done) return std::unexpected(done.error());
  // The steps that only the right session has.
  std::uint64_t all_right = 0;
  const auto counted = right.for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& values) {
    all_right += values.outputs.size();
    return keep_going();
  });
  if (!counted) return std::unexpected(counted.error());
  comparison.only_right += all_right - compared_right;
  return comparison;
}

}  // namespace tt
