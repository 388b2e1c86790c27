#include "analysis/values/captured_outputs.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <span>
#include <utility>

#include "analysis/common/no_such_part.h"
#include "analysis/common/op_info.h"
#include "analysis/common/session_layers.h"
#include "analysis/fields/page_fields.h"
#include "tracer/format/model/captured_kinds.h"
#include "tracer/format/model/lens_values.h"

namespace tt {

namespace {

// The tensor that the values are of. kNoTensor: they are computed from several.
TensorId tensor_of(const GraphTemplate& graph, const OutputValues& output) {
  const Op& op = graph.op(output.op);
  const ValuesOf of = whole_of(output.of);
  if (of == ValuesOf::Output) return graph.node(op.last()).output;
  if (!is_source(of)) return kNoTensor;
  // Sources are those of the first node of a fused op.
  const auto& sources = graph.node(op.first).src;
  return source_of(of) < sources.size() ? sources[source_of(of)] : kNoTensor;
}

std::string part_of(ValuesOf of) {
  const std::string whole = is_source(of) ? std::format("input {}", source_of(of))
                            : whole_of(of) == ValuesOf::Attention ? "attention weights"
                            : of == kLensValues                   ? "logit lens"
                                                                  : "output";
  return is_top(of) ? "largest of " + whole : whole;
}

std::vector<std::uint64_t> shape_of(const std::array<std::uint64_t, 4>& ne) {
  std::size_t dimensions = ne.size();
  while (dimensions > 1 && ne[dimensions - 1] == 1) --dimensions;
  return {ne.begin(), ne.begin() + static_cast<std::ptrdiff_t>(dimensions)};
}

std::array<std::uint64_t, 4> array_ne(const OutputValues& output) {
  if (output.of == kLensValues) return {};
  auto ne = output.ne;
  // Pairs of rows: columns, then values.
  if (is_top(output.of)) ne = {ne[0], ne[1] * ne[2] * ne[3] / 2, 1, 1};
  return ne;
}

CapturedRow row_of(const Step& step, const GraphTemplate& graph, std::string name,
                   const OutputValues& output) {
  const TensorId tensor = tensor_of(graph, output);
  CapturedRow row{.step = step.id,
                  .op = output.op,
                  .token = step.first_token,
                  .tokens = step.n_tokens,
                  .operation = op_name(graph, graph.op(output.op)),
                  .output = std::move(name),
                  .part = part_of(output.of),
                  .layer = graph.op(output.op).layer,
                  .type = tensor == kNoTensor ? "f32" : graph.tensor(tensor).type,
                  .shape = shape_of(output.of == kLensValues ? output.ne : array_ne(output)),
                  .bytes = Bytes{output.values.size() * sizeof(float)}};
  // Those of the lens are texts.
  if (output.of != kLensValues) row.summary = summary_of(output);
  return row;
}

}  // namespace

std::expected<std::uint64_t, TraceError> for_each_captured(const SessionReader& reader,
                                                           const CapturedSelection& selection,
                                                           const ContinueCheck& keep_going,
                                                           const CapturedVisit& visit) {
  std::uint64_t not_captured = 0;
  std::expected<void, TraceError> done;
  const auto add = [&](const StepValues& of) {
    if (!keep_going()) done = std::unexpected(cancelled_error());
    not_captured += of.not_captured;
    if (!done || of.outputs.empty()) return done.has_value();
    const auto step = reader.step(of.step);
    const auto graph = step ? reader.graph(step->graph) : std::unexpected(step.error());
    if (!graph) {
      done = std::unexpected(graph.error());
      return false;
    }
    for (const OutputValues& output : of.outputs) {
      const std::string name = value_name(**graph, output);
      if (!selection.output.empty() && name != selection.output) continue;
      done = visit(of.step, **graph, name, output);
      if (!done) return false;
    }
    return true;
  };
  const auto read = selection.step ? reader.for_each_values(*selection.step, 1, add)
                                   : reader.for_each_values(StepId{0}, UINT32_MAX, add);
  if (!read) return std::unexpected(read.error());
  if (!done) return std::unexpected(done.error());
  return not_captured;
}

CapturedArray array_of(const OutputValues& output) {
  CapturedArray array{.ne = array_ne(output), .values = {}};
  if (output.of == kLensValues) return array;
  if (!is_top(output.of)) {
    array.values = output.values;
    return array;
  }
  const std::size_t count = output.ne[0];
  std::span<const float> rest = output.values;
  for (; count > 0 && rest.size() >= 2 * count; rest = rest.subspan(2 * count))
    array.values.append_range(rest.subspan(count, count));
  return array;
}

std::expected<CapturedList, TraceError> captured_list(const SessionReader& reader,
                                                      const CapturedQuery& query,
                                                      const ContinueCheck& keep_going) {
  if (query.layer)
    if (auto there = validate_layers(reader, LayerSet::one(*query.layer)); !there)
      return std::unexpected(there.error());
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  CapturedSelection selection{.step = {}, .output = query.output};
  if (query.step) {
    if (*query.step >= *steps)
      return std::unexpected(no_such_part("session", "step", *query.step, *steps));
    selection.step = StepId{*query.step};
  }
  CapturedList list;
  std::optional<Step> step;
  const auto read =
      for_each_captured(reader, selection, keep_going,
                        [&](StepId id, const GraphTemplate& graph, const std::string& name,
                            const OutputValues& output) -> std::expected<void, TraceError> {
                          if (query.layer && graph.op(output.op).layer != *query.layer) return {};
                          list.bytes.v += output.values.size() * sizeof(float);
                          if (!query.page.contains(list.page.total++)) return {};
                          if (!step || step->id != id) {
                            auto found = reader.step(id);
                            if (!found) return std::unexpected(found.error());
                            step = *std::move(found);
                          }
                          list.page.rows.push_back(row_of(*step, graph, name, output));
                          return {};
                        });
  if (!read) return std::unexpected(read.error());
  list.not_captured = *read;
  if (list.page.total == 0 && !query.output.empty())
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The session has no captured output \"{}\". tt values, or /values of "
                    "the session, lists what was captured.",
                    query.output)});
  return list;
}

std::expected<OutputValues, TraceError> captured_output(const SessionReader& reader,
                                                        const CapturedPlace& place) {
  std::optional<OutputValues> found;
  const auto read =
      for_each_captured(reader, {.step = place.step, .output = place.output}, never_cancel,
                        [&](StepId, const GraphTemplate&, const std::string&,
                            const OutputValues& output) -> std::expected<void, TraceError> {
                          if (!found && output.op == place.op) found = output;
                          return {};
                        });
  if (!read) return std::unexpected(read.error());
  if (found) return *std::move(found);
  return std::unexpected(TraceError{
      TraceError::Kind::NotFound,
      std::format("The session has no captured output{} of op {} of step {}. tt values, or /values "
                  "of the session, lists what was captured.",
                  place.output.empty() ? "" : std::format(" \"{}\"", place.output), place.op.v,
                  place.step.v)});
}

std::vector<ValueBin> bins_of(std::span<const float> values) {
  const ValueSummary summary = summary_of(values);
  if (summary.finite == 0) return {};
  constexpr std::size_t kBins = 64;
  const double width = summary.max - summary.min;
  const std::size_t count = width > 0 ? kBins : 1;
  std::vector<ValueBin> bins(count);
  const auto end = [&](std::size_t i) {
    return i == count ? summary.max
                      : summary.min + width * static_cast<double>(i) / static_cast<double>(count);
  };
  for (std::size_t i = 0; i < count; ++i) bins[i] = {.from = end(i), .to = end(i + 1)};
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = double{value};
    auto at = width > 0
                  ? static_cast<std::size_t>((v - summary.min) / width * static_cast<double>(count))
                  : 0;
    at = std::min(at, count - 1);
    // The quotient may be rounded over an end that the bins are listed with.
    if (v < bins[at].from) --at;
    if (at + 1 < count && v >= bins[at].to) ++at;
    ++bins[at].count;
  }
  return bins;
}

std::expected<CapturedValues, TraceError> captured_values(const SessionReader& reader,
                                                          const CapturedValuesQuery& query) {
  const auto output = captured_output(reader, query.place);
  if (!output) return std::unexpected(output.error());
  const auto step = reader.step(query.place.step);
  if (!step) return std::unexpected(step.error());
  const auto graph = reader.graph(step->graph);
  if (!graph) return std::unexpected(graph.error());
  const std::string name = value_name(**graph, *output);
  if (output->of == kLensValues)
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format(
            "{} has texts and probabilities, no array of numbers: tt analyze lens, or /lens "
            "of the session, shows them.",
            name)});
  const CapturedArray array = array_of(*output);
  CapturedValues found{.of = row_of(*step, **graph, name, *output),
                       .total = array.values.size(),
                       .histogram = bins_of(array.values),
                       .values = {}};
  const std::uint64_t from = std::min<std::uint64_t>(query.page.from, array.values.size());
  const std::uint64_t count = std::min<std::uint64_t>(query.page.limit, array.values.size() - from);
  for (const float value : std::span(array.values).subspan(from, count))
    found.values.push_back(std::isfinite(value) ? std::optional(double{value}) : std::nullopt);
  return found;
}

static Fields<CapturedRow> fields_of(const CapturedRow*) {
  constexpr const char* kNoValue = "no finite value, or the logit lens, which has texts";
  const auto figure = [](double ValueSummary::* of) {
    return [of](const CapturedRow& row) {
      return row.summary.finite > 0 ? std::optional(row.summary.*of) : std::nullopt;
    };
  };
  return Fields<CapturedRow>("CapturedOutput")
      .add("step", "", &CapturedRow::step)
      .add("op", "index in the step", &CapturedRow::op)
      .add("token", "index of the first token that the step evaluates", &CapturedRow::token)
      .add("tokens", "that the step evaluates", &CapturedRow::tokens)
      .add("operation", "of the op", &CapturedRow::operation)
      .add("output", "name of the values", &CapturedRow::output)
      .add("part",
           "of the op: output, input N, attention weights, logit lens, or the largest values of "
           "each row of these",
           &CapturedRow::part)
      .add("layer", "null: outside the layers", &CapturedRow::layer)
      .add("type", "of the tensor in memory; the values are stored as numbers of 32 bits",
           &CapturedRow::type)
      .add("shape", "innermost dimension first, without outermost dimensions of 1",
           &CapturedRow::shape)
      .add("bytes", "of the values as numbers of 32 bits", &CapturedRow::bytes)
      .add("min", "of the finite values", figure(&ValueSummary::min), {.null = kNoValue})
      .add("max", "of the finite values", figure(&ValueSummary::max), {.null = kNoValue})
      .add("mean", "of the finite values", figure(&ValueSummary::mean), {.null = kNoValue})
      .add("std", "of the finite values", figure(&ValueSummary::std), {.null = kNoValue})
      .add("norm", "root of the sum of the squares", figure(&ValueSummary::norm),
           {.null = kNoValue})
      .add("nan", "", [](const CapturedRow& row) { return row.summary.nan; })
      .add("inf", "", [](const CapturedRow& row) { return row.summary.inf; });
}

Fields<CapturedList> fields_of(const CapturedList*) {
  return Fields<CapturedList>("CapturedOutputs")
      .add("bytes", "of all captured values of the question, as numbers of 32 bits",
           &CapturedList::bytes)
      .add("not_captured",
           "outputs of these steps that a rule wanted and that were left out: they did not fit "
           "into the budget, or could not be read",
           &CapturedList::not_captured)
      .add("total", kTotalRows, [](const CapturedList& list) { return list.page.total; })
      .add("rows", "", [](const CapturedList& list) { return list.page.rows; });
}

static Fields<ValueBin> fields_of(const ValueBin*) {
  return Fields<ValueBin>("ValueBin")
      .add("from", "", &ValueBin::from)
      .add("to", "exclusive, except of the last bin", &ValueBin::to)
      .add("count", "values", &ValueBin::count);
}

Fields<CapturedValues> fields_of(const CapturedValues*) {
  return Fields<CapturedValues>("CapturedOutputValues")
      .include(&CapturedValues::of)
      .add("total", "number of values", &CapturedValues::total)
      .add("histogram",
           "of the finite values: bins of equal width from the smallest to the largest one",
           &CapturedValues::histogram)
      .add("values",
           "one page of them, in the order of the dimensions, the innermost one first; null: "
           "NaN or infinite",
           &CapturedValues::values);
}

}  // namespace tt
