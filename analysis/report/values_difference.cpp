#include "analysis/report/values_difference.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/tables/value_summary.h"
#include "tracer/format/model/lens_values.h"

namespace tt {

namespace {

// Whether both values can be subtracted: the logit lens has numbers of tokens
// (analysis/values/chosen_change.h compares it).
bool is_compared(const OutputValues& output) { return output.of != kLensValues; }

std::uint64_t compared_outputs(const StepValues& values) {
  return static_cast<std::uint64_t>(std::ranges::count_if(values.outputs, is_compared));
}

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

// Calls `visit` with each output of the left step and the one of the right step that belongs to it;
// null: there is none. Returns how many outputs only the right step has.
template <class Visit>
std::size_t for_each_pair(const StepOutputs& left, const StepOutputs& right, Visit visit) {
  std::multimap<std::string, const OutputValues*> others;  // equal names stay in order
  for (const OutputValues& output : right.values.outputs | std::views::filter(is_compared))
    others.emplace(right.name(output), &output);
  for (const OutputValues& output : left.values.outputs | std::views::filter(is_compared)) {
    const std::string name = left.name(output);
    const auto other = others.lower_bound(name);
    const bool found = other != others.end() && other->first == name;
    visit(output, name, found ? other->second : nullptr);
    if (found) others.erase(other);
  }
  return others.size();
}

ValuesDifference difference_of(const StepOutputs& left, const OutputValues& output,
                               const std::string& name, const OutputValues& other) {
  const Op& op = left.graph->op(output.op);
  ValuesDifference difference{.step = left.values.step,
                              .op = output.op,
                              .operation = op_name(*left.graph, op),
                              .tensor = name,
                              .layer = op.layer,
                              .ne = output.ne};
  difference.same_shape = output.ne == other.ne;
  if (difference.same_shape) measure(difference, output.values, other.values);
  return difference;
}

class Comparing {
 public:
  Comparing(const ValuesQuery& query, std::optional<StepId> other_tokens) : query_(query) {
    out_.tolerance = query.tolerance;
    out_.other_tokens = other_tokens;
  }

  void add(const StepOutputs& left, const StepOutputs& right) {
    out_.only_right += for_each_pair(
        left, right,
        [&](const OutputValues& output, const std::string& name, const OutputValues* other) {
          if (other == nullptr)
            ++out_.only_left;
          else
            add(difference_of(left, output, name, *other));
        });
  }

  ValuesComparison result(std::uint64_t more_only_right) {
    out_.only_right += more_only_right;
    const auto layers = layers_ | std::views::values;
    out_.layers.assign(layers.begin(), layers.end());
    return std::move(out_);
  }

 private:
  void add(ValuesDifference of) {
    if (!out_.first_beyond && is_beyond(of, query_.tolerance)) out_.first_beyond = of;
    add_to_layer(of);
    const bool different = differs(of);
    const std::uint64_t row = query_.only_different ? out_.different : out_.compared;
    ++out_.compared;
    out_.different += different;
    if ((different || !query_.only_different) && query_.page.contains(row))
      out_.rows.push_back(std::move(of));
  }

  void add_to_layer(const ValuesDifference& of) {
    if (of.layer == kNoLayer || !of.same_shape ||
        (out_.other_tokens && of.step >= *out_.other_tokens))
      return;
    LayerDifference& layer = layers_[of.layer];
    layer.layer = of.layer;
    ++layer.outputs;
    layer.max_error = std::max(layer.max_error, of.max_error);
    layer.relative_error = std::max(layer.relative_error, of.relative_error);
  }

  const ValuesQuery query_;
  ValuesComparison out_;
  std::map<LayerId, LayerDifference> layers_;
};

// The elements of cell `i` of `cells`, of `size` elements: they follow each other.
struct CellRange {
  std::uint64_t from = 0, to = 0;
};
CellRange range_of(std::uint64_t i, std::uint64_t cells, std::uint64_t size) {
  return {.from = i * size / cells, .to = (i + 1) * size / cells};
}

ValuesPicture picture_of(ValuesDifference output, const ValuesPictureQuery& query,
                         std::span<const float> left, std::span<const float> right) {
  const std::uint64_t columns = output.ne[0];
  const std::uint64_t rows = columns == 0 ? 0 : left.size() / columns;
  ValuesPicture picture{
      .output = std::move(output),
      .width = static_cast<std::uint32_t>(std::min<std::uint64_t>(query.width, columns)),
      .height = static_cast<std::uint32_t>(std::min<std::uint64_t>(query.height, rows)),
      .left = {},
      .right = {}};
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    const CellRange of_rows = range_of(y, picture.height, rows);
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      const CellRange of_columns = range_of(x, picture.width, columns);
      std::uint64_t most = of_rows.from * columns + of_columns.from;
      for (std::uint64_t row = of_rows.from; row < of_rows.to; ++row) {
        for (std::uint64_t at = row * columns + of_columns.from; at < row * columns + of_columns.to;
             ++at)
          if (error_of(left[at], right[at]) > error_of(left[most], right[most])) most = at;
      }
      picture.left.push_back(left[most]);
      picture.right.push_back(right[most]);
    }
  }
  return picture;
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

bool differs(const ValuesDifference& of) { return !of.same_shape || of.max_error > 0; }

bool is_beyond(const ValuesDifference& of, double tolerance) {
  return !of.same_shape || of.relative_error > tolerance;
}

std::expected<ValuesComparison, TraceError> compare_values(const SessionReader& left,
                                                           const SessionReader& right,
                                                           const ValuesQuery& query,
                                                           const ContinueCheck& keep_going) {
  const auto other = other_tokens(left, right);
  if (!other) return std::unexpected(other.error());
  Comparing comparing(query, *other);
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
    compared_right += compared_outputs(theirs->values);
    comparing.add(*ours, *theirs);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  if (!done) return std::unexpected(done.error());
  // The steps that only the right session has.
  std::uint64_t all_right = 0;
  const auto counted = right.for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& values) {
    all_right += compared_outputs(values);
    return keep_going();
  });
  if (!counted) return std::unexpected(counted.error());
  return comparing.result(all_right - compared_right);
}

std::expected<ValuesPicture, TraceError> values_picture(const SessionReader& left,
                                                        const SessionReader& right,
                                                        const ValuesPictureQuery& query) {
  const auto ours = outputs_of(left, query.step), theirs = outputs_of(right, query.step);
  if (!ours || !theirs) return std::unexpected(ours ? theirs.error() : ours.error());
  std::optional<ValuesPicture> picture;
  bool same_shape = true;
  for_each_pair(
      *ours, *theirs,
      [&](const OutputValues& output, const std::string& name, const OutputValues* other) {
        if (other == nullptr || output.op != query.op || name != query.tensor) return;
        ValuesDifference difference = difference_of(*ours, output, name, *other);
        same_shape = difference.same_shape;
        if (same_shape)
          picture = picture_of(std::move(difference), query, output.values, other->values);
      });
  if (picture) return *std::move(picture);
  return std::unexpected(TraceError{
      TraceError::Kind::NotFound,
      same_shape ? std::format("The sessions have no captured output {} of op {} of step {} in "
                               "common.",
                               query.tensor, query.op.v, query.step.v)
                 : std::format("{} has another shape in the other session.", query.tensor)});
}

}  // namespace tt
