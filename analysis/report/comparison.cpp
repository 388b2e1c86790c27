#include "analysis/report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/axis_words.h"
#include "analysis/aggregate/breakdown.h"
#include "analysis/common/no_such_part.h"
#include "analysis/common/op_info.h"
#include "analysis/common/rebuilt.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/fields/fields.h"
#include "analysis/speed/speed_comparison.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/template_list.h"
#include "tracer/format/model/quantile.h"
#include "tracer/format/names/names.h"

namespace tt {

namespace {

// --- rows ---------------------------------------------------------------------

double difference(const ComparedSums& row, double TraceSums::* what) {
  const TraceSums none;
  return std::abs(row.left.value_or(none).*what - row.right.value_or(none).*what);
}

// --- within a session ----------------------------------------------------------

// The end of an axis: the number of tokens, steps or layers.
std::uint64_t end_of(const SessionIndex& index, Axis axis) {
  if (axis == Axis::Token) return index.extent().tokens;
  if (axis == Axis::Step) return index.steps().size();
  std::int64_t end = index.info().n_layers;
  for (const SessionOp& op : index.names().ops()) end = std::max(end, std::int64_t{op.layer.v} + 1);
  return static_cast<std::uint64_t>(end);
}

Status check_exists(const SessionIndex& index, Axis axis, std::uint64_t at) {
  const std::uint64_t end = end_of(index, axis);
  if (at < end) return {};
  return std::unexpected(no_such_part("session", to_text(axis), at, end));
}

}  // namespace

TraceFilter filter_of_side(TraceFilter filter, Axis axis, std::uint64_t at) {
  // Nothing if the filter leaves it out.
  const auto within = [&](std::optional<Range<std::uint64_t>>& range) {
    range = range && !range->contains(at) ? Range<std::uint64_t>{at, at}
                                          : Range<std::uint64_t>{at, at + 1};
  };
  if (axis == Axis::Token) within(filter.tokens);
  if (axis == Axis::Step) within(filter.steps);
  if (axis == Axis::Layer) filter.layers = {LayerId{static_cast<std::int32_t>(at)}};
  return filter;
}

namespace {

// llama.cpp names some outputs by a sequence number only ("node_30"), which differs from layer to
// layer and from graph to graph.
bool is_number_only(std::string_view name) {
  constexpr std::string_view kPrefix = "node_";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) == name.npos;
}

// By such a name: the op with this output; null if different ops have it, in different graphs.
using NumberedOutputs = std::map<std::string_view, const SessionOp*>;

NumberedOutputs numbered_outputs(const SessionNames& names) {
  NumberedOutputs outputs;
  for (const SessionOp& op : names.ops()) {
    if (!is_number_only(op.output)) continue;
    if (const auto [place, is_new] = outputs.emplace(op.output, &op); !is_new)
      place->second = nullptr;
  }
  return outputs;
}

// The name that a tensor or an op has in common with its counterpart in another layer.
std::string relative_name(std::string name, LayerId own, std::uint64_t layer) {
  if (own == kNoLayer) return name;
  const std::int64_t distance = own.v - static_cast<std::int64_t>(layer);
  if (distance == 0) return name;
  return std::format("{} (layer {:+})", name, distance);
}

// `layer`: the compared one; none: tokens or steps are compared.
std::string row_name(const SessionIndex& index, const NumberedOutputs& numbered,
                     const SessionTensor& tensor, std::optional<std::uint64_t> layer) {
  const auto found = numbered.find(tensor.name);
  if (const SessionOp* op = found == numbered.end() ? nullptr : found->second) {
    const std::string& kind = index.names().kinds()[op->kind];
    if (layer) return relative_name(kind, op->layer, *layer);
    return op->layer == kNoLayer ? kind : std::format("{}, layer {}", kind, op->layer.v);
  }
  if (!layer) return tensor.name;
  return relative_name(std::string(name_without_layer(tensor.name)), tensor.layer, *layer);
}

struct Side {
  std::map<std::string, TraceSums> rows;  // by name
  TraceSums total;
};

std::expected<Side, TraceError> side_of(const SessionIndex& index, const WithinQuery& query,
                                        std::uint64_t at, const ContinueCheck& keep_going) {
  if (auto found = check_exists(index, query.axis, at); !found)
    return std::unexpected(found.error());
  const TraceFilter filter = filter_of_side(query.filter, query.axis, at);
  const auto layer = query.axis == Axis::Layer ? std::optional(at) : std::nullopt;
  Side side;
  const NumberedOutputs numbered = numbered_outputs(index.names());
  const auto add = [&](std::int64_t key, const TraceSums& sums) {
    const SessionTensor& tensor = index.names().tensors()[static_cast<std::size_t>(key)];
    side.rows[row_name(index, numbered, tensor, layer)] += sums;
  };
  if (layer) {
    const auto costs = step_costs(index, Axis::Tensor, filter, keep_going);
    if (!costs) return std::unexpected(costs.error());
    side.total = costs->total;
    for (const StepCost& row : costs->rows) add(row.key, row.sums);
  } else {
    const auto sums = breakdown(index, {.by = Axis::Tensor, .filter = filter}, keep_going);
    if (!sums) return std::unexpected(sums.error());
    side.total = sums->total.all;
    for (const BreakdownRow& row : sums->rows) add(row.key, row.all);
  }
  return side;
}

// --- tokens -------------------------------------------------------------------

// Per token, its share of the duration of its step; none if no step evaluated it.
std::vector<std::optional<Ns>> times_of(const SessionIndex& index, std::uint32_t tokens) {
  std::vector<std::optional<Ns>> times(tokens);
  for (const IndexedStep& step : index.steps()) {
    if (step.left_out) continue;
    for (std::uint32_t i = 0; i < step.n_tokens && step.first_token + i < tokens; ++i)
      times[step.first_token + i] = Ns{(step.end - step.begin).v / step.n_tokens};
  }
  return times;
}

std::expected<TokenAlignment, TraceError> align(const ComparedSession& left,
                                                const ComparedSession& right, PageRange range) {
  const auto left_tokens = left.reader.tokens(0, kNone);
  if (!left_tokens) return std::unexpected(left_tokens.error());
  const auto right_tokens = right.reader.tokens(0, kNone);
  if (!right_tokens) return std::unexpected(right_tokens.error());
  TokenAlignment aligned{.left = static_cast<std::uint32_t>(left_tokens->size()),
                         .right = static_cast<std::uint32_t>(right_tokens->size()),
                         .common = 0,
                         .rows = {}};
  const auto same = [](const Token& a, const Token& b) { return a.id == b.id && a.text == b.text; };
  const auto differ = std::ranges::mismatch(*left_tokens, *right_tokens, same);
  aligned.common = static_cast<std::uint32_t>(differ.in1 - left_tokens->begin());
  const auto left_times = times_of(left.index, aligned.left);
  const auto right_times = times_of(right.index, aligned.right);
  const std::uint32_t all = std::max(aligned.left, aligned.right);
  aligned.rows.total = all;
  for (std::uint64_t i = range.from; i < all && range.contains(i); ++i) {
    ComparedToken row{.index = static_cast<std::uint32_t>(i),
                      .left = {},
                      .right = {},
                      .left_ns = {},
                      .right_ns = {}};
    if (i < aligned.left) {
      row.left = (*left_tokens)[i];
      row.left_ns = left_times[i];
    }
    if (i < aligned.right) {
      row.right = (*right_tokens)[i];
      row.right_ns = right_times[i];
    }
    aligned.rows.rows.push_back(std::move(row));
  }
  return aligned;
}

// --- templates ----------------------------------------------------------------

struct Shape {
  TemplateRow row;
  std::string ops;  // kind and output name of every op
};

std::expected<std::vector<Shape>, TraceError> shapes_of(const SessionReader& reader,
                                                        const ContinueCheck& keep_going) {
  const auto rows = template_list(reader, keep_going);
  if (!rows) return std::unexpected(rows.error());
  std::vector<Shape> shapes;
  for (const TemplateRow& row : *rows) {
    const auto graph = reader.graph(row.id);
    if (!graph) return std::unexpected(graph.error());
    Shape shape{.row = row, .ops = {}};
    for (const Op& op : (*graph)->ops) {
      const Tensor& output = (*graph)->tensor((*graph)->node(op.last()).output);
      shape.ops += op_name(**graph, op) + '\t' + output.name + '\n';
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// Each template has at most one partner: one with the same fingerprint, else the first
// unpaired one with the same ops.
std::vector<ComparedTemplate> pair_up(const std::vector<Shape>& left,
                                      const std::vector<Shape>& right) {
  std::vector<std::size_t> partner(left.size(), right.size());
  std::vector<bool> taken(right.size());
  const auto pair_where = [&](const auto& alike) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < right.size() && partner[i] == right.size(); ++j) {
        if (taken[j] || !alike(left[i], right[j])) continue;
        partner[i] = j;
        taken[j] = true;
      }
    }
  };
  pair_where([](const Shape& a, const Shape& b) { return a.row.fingerprint == b.row.fingerprint; });
  pair_where([](const Shape& a, const Shape& b) { return a.ops == b.ops; });

  std::vector<ComparedTemplate> pairs;
  const auto add = [&](const Shape* a, const Shape* b) {
    ComparedTemplate pair;
    if (a != nullptr) {
      pair.left = a->row.id;
      pair.left_steps = a->row.steps;
      pair.left_ops = a->row.ops;
    }
    if (b != nullptr) {
      pair.right = b->row.id;
      pair.right_steps = b->row.steps;
      pair.right_ops = b->row.ops;
    }
    pair.match = b == nullptr                               ? TemplateMatch::OnlyLeft
                 : a == nullptr                             ? TemplateMatch::OnlyRight
                 : a->row.fingerprint == b->row.fingerprint ? TemplateMatch::Identical
                                                            : TemplateMatch::SameOps;
    pairs.push_back(pair);
  };
  for (std::size_t i = 0; i < left.size(); ++i)
    add(&left[i], partner[i] < right.size() ? &right[partner[i]] : nullptr);
  for (std::size_t j = 0; j < right.size(); ++j)
    if (!taken[j]) add(nullptr, &right[j]);
  return pairs;
}

// --- change ---------------------------------------------------------------------

// Times per token of the counted steps, if they are undisturbed; ascending.
std::vector<double> samples_of(const SessionIndex& index, Phase phase) {
  const TimedSteps counted = counted_steps(index, phase);
  std::vector<double> ns;
  for (std::size_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (counted.is_used(index, i) && step.n_tokens > 0 && step.end > step.begin &&
        !is_disturbed(step.verdict))
      ns.push_back(static_cast<double>((step.end - step.begin).v) / step.n_tokens);
  }
  std::ranges::sort(ns);
  return ns;
}

// By phase, of the phases that the session has.
std::map<Phase, CountedTimes> times_by_phase(const SessionIndex& index) {
  std::map<Phase, CountedTimes> times;
  for (const IndexedStep& step : index.steps())
    if (!step.left_out && !times.contains(step.phase))
      times.emplace(step.phase, counted_times(index, step.phase));
  return times;
}

std::optional<TokenChange> change_of(const SessionIndex& left, const SessionIndex& right) {
  for (const Phase phase : {Phase::Generate, Phase::Prompt}) {
    const auto left_bytes = bytes_per_token(left, phase),
               right_bytes = bytes_per_token(right, phase);
    if (!left_bytes || !right_bytes) continue;
    const std::vector<double> before = samples_of(left, phase), after = samples_of(right, phase);
    const auto side = [](const std::vector<double>& ns, double bytes) {
      const double median = quantile<double>(ns, 0.5).value_or(0);
      return TokenChange::Side{
          .steps = ns.size(), .median = Ns{std::llround(median)}, .bytes_read = bytes};
    };
    return TokenChange{.phase = phase,
                       .left = side(before, *left_bytes),
                       .right = side(after, *right_bytes),
                       .time = compare_medians(before, after, kLeastNoiseOfRuns)};
  }
  return std::nullopt;
}

// What a token of the phase reads of each memory source.
std::expected<std::map<Source, double>, TraceError> sources_of(const SessionIndex& index,
                                                               const TokenChange& change,
                                                               double bytes_per_token,
                                                               const ContinueCheck& keep_going) {
  const auto rows =
      breakdown(index, {.by = Axis::Source, .filter = {.phase = change.phase}}, keep_going);
  if (!rows) return std::unexpected(rows.error());
  std::map<Source, double> sources;
  const double all = rows->total.all.bytes_read;
  for (const BreakdownRow& row : rows->rows)
    if (row.all.bytes_read > 0)
      sources[static_cast<Source>(row.key)] = row.all.bytes_read / all * bytes_per_token;
  return sources;
}

std::expected<std::vector<ComparedSource>, TraceError> compare_sources(
    const SessionIndex& left, const SessionIndex& right, const TokenChange& change,
    const ContinueCheck& keep_going) {
  const auto before = sources_of(left, change, change.left.bytes_read, keep_going);
  if (!before) return std::unexpected(before.error());
  const auto after = sources_of(right, change, change.right.bytes_read, keep_going);
  if (!after) return std::unexpected(after.error());
  std::map<Source, ComparedSource> both;
  for (const auto& [source, bytes] : *before) both[source].left = bytes;
  for (const auto& [source, bytes] : *after) both[source].right = bytes;
  std::vector<ComparedSource> sources;
  for (auto& [source, row] : both) {
    row.source = source;
    sources.push_back(row);
  }
  std::ranges::stable_sort(sources, std::greater{}, [](const ComparedSource& row) {
    return std::abs(row.right - row.left);
  });
  return sources;
}

}  // namespace

FactsByName settings_of(const SessionInfo& info) {
  FactsByName settings = {{"record.level", to_text(info.level)},
                          {"record.timing", info.exact_timing ? "exact" : "fast"}};
  if (!info.model_files.empty()) settings["model.file"] = info.model_files.front().path;
  for (const auto& [name, value] : info.facts)
    if (!name.starts_with("result.") && !name.starts_with("trace.") &&
        (!name.starts_with("load.") || name == "load.warning") &&
        name != "host.memory_available_bytes")
      settings[name] = value;
  return settings;
}

bool is_comparable(const Comparison& comparison, Phase phase) {
  const auto times = comparison.step_times.find(phase);
  if (times == comparison.step_times.end()) return false;
  const auto is_usable = [](const std::optional<CountedTimes>& of) {
    return of && of->spread && !is_disturbed(of->steps.verdict);
  };
  if (!is_usable(times->second.left) || !is_usable(times->second.right)) return false;
  const auto& change = comparison.change;
  return !change || change->phase != phase || change->has_enough_steps();
}

std::expected<std::vector<ComparedRow>, TraceError> compare_rows(const SessionIndex& left,
                                                                 const SessionIndex& right, Axis by,
                                                                 Phase phase,
                                                                 const ContinueCheck& keep_going) {
  const auto before = step_costs(left, by, {.phase = phase}, keep_going);
  if (!before) return std::unexpected(before.error());
  const auto after = step_costs(right, by, {.phase = phase}, keep_going);
  if (!after) return std::unexpected(after.error());
  std::vector<ComparedRow> rows;
  std::map<std::pair<std::string, int>, std::size_t> places;
  std::map<std::string, int> seen;
  for (const StepCost& row : before->rows) {
    places[{row.name, seen[row.name]++}] = rows.size();
    rows.push_back({{.left = row.sums, .right = std::nullopt}, row.name});
  }
  seen.clear();
  for (const StepCost& row : after->rows) {
    const auto place = places.find({row.name, seen[row.name]++});
    if (place != places.end()) {
      rows[place->second].right = row.sums;
    } else {
      rows.push_back({{.left = std::nullopt, .right = row.sums}, row.name});
    }
  }
  std::ranges::stable_sort(rows, std::greater(), [](const ComparedRow& row) {
    return std::pair(
        difference(row, &TraceSums::time_ns),
        difference(row, &TraceSums::bytes_read) + difference(row, &TraceSums::bytes_written));
  });
  return rows;
}

const char* to_text(TemplateMatch match) {
  constexpr std::array kWords = {"identical", "same_ops", "only_left", "only_right"};
  return kWords[std::to_underlying(match)];
}

std::expected<Comparison, TraceError> compare(const ComparedSession& left,
                                              const ComparedSession& right,
                                              const CompareQuery& query,
                                              const ContinueCheck& keep_going) {
  Comparison comparison;
  comparison.change = change_of(left.index, right.index);
  comparison.phase = query.phase.value_or(comparison.change ? comparison.change->phase
                                                            : ranked_phase(left.index, {}));
  comparison.facts =
      differing_facts(settings_of(left.index.info()), settings_of(right.index.info()));
  const auto left_conditions = session_conditions(left.reader, left.index.leave_out(), keep_going);
  if (!left_conditions) return std::unexpected(left_conditions.error());
  const auto right_conditions =
      session_conditions(right.reader, right.index.leave_out(), keep_going);
  if (!right_conditions) return std::unexpected(right_conditions.error());
  comparison.causes = causes_of({.info = left.index.info(), .conditions = *left_conditions},
                                {.info = right.index.info(), .conditions = *right_conditions});
  if (comparison.change) {
    auto sources = compare_sources(left.index, right.index, *comparison.change, keep_going);
    if (!sources) return std::unexpected(sources.error());
    comparison.sources = *std::move(sources);
  }
  const auto left_speed = token_speed(left.reader), right_speed = token_speed(right.reader);
  if (!left_speed) return std::unexpected(left_speed.error());
  if (!right_speed) return std::unexpected(right_speed.error());
  comparison.left_speed = *left_speed;
  comparison.right_speed = *right_speed;
  auto left_memory = model_memory(left.index, left.reader);
  if (!left_memory) return std::unexpected(left_memory.error());
  comparison.left_memory = *std::move(left_memory);
  auto right_memory = model_memory(right.index, right.reader);
  if (!right_memory) return std::unexpected(right_memory.error());
  comparison.right_memory = *std::move(right_memory);
  for (auto& [phase, times] : times_by_phase(left.index))
    comparison.step_times[phase].left = std::move(times);
  for (auto& [phase, times] : times_by_phase(right.index))
    comparison.step_times[phase].right = std::move(times);
  auto aligned = align(left, right, query.tokens);
  if (!aligned) return std::unexpected(aligned.error());
  comparison.tokens = *std::move(aligned);
  auto chosen = chosen_change(left.reader, right.reader, comparison.tokens.common, keep_going);
  if (!chosen) return std::unexpected(chosen.error());
  comparison.chosen = *std::move(chosen);
  const auto left_shapes = shapes_of(left.reader, keep_going);
  if (!left_shapes) return std::unexpected(left_shapes.error());
  const auto right_shapes = shapes_of(right.reader, keep_going);
  if (!right_shapes) return std::unexpected(right_shapes.error());
  comparison.templates = pair_up(*left_shapes, *right_shapes);
  // The only row of Axis::All; none: the session has no such step.
  const auto total = compare_rows(left.index, right.index, Axis::All, comparison.phase, keep_going);
  if (!total) return std::unexpected(total.error());
  if (!total->empty()) comparison.total = total->front();
  if (query.by) {
    auto rows = compare_rows(left.index, right.index, *query.by, comparison.phase, keep_going);
    if (!rows) return std::unexpected(rows.error());
    comparison.rows = *std::move(rows);
  }
  return comparison;
}

std::expected<WithinComparison, TraceError> compare_within(const SessionIndex& index,
                                                           const WithinQuery& query,
                                                           const ContinueCheck& keep_going) {
  // Rows of a log name each view of a cache, not the cache.
  if (auto known = needs_recorded_graphs(index.info(), "which tensors are views of the same one");
      !known)
    return std::unexpected(known.error());
  const auto left = side_of(index, query, query.left, keep_going);
  if (!left) return std::unexpected(left.error());
  const auto right = side_of(index, query, query.right, keep_going);
  if (!right) return std::unexpected(right.error());
  std::map<std::string, ComparedRow> by_name;
  for (const auto& [name, sums] : left->rows) by_name[name].left = sums;
  for (const auto& [name, sums] : right->rows) by_name[name].right = sums;
  std::vector<ComparedRow> rows;
  for (auto& [name, row] : by_name) {
    rows.push_back(std::move(row));
    rows.back().name = name;
  }
  const auto key = [&](const ComparedRow& row) {
    const TraceSums none;
    return std::abs(row.left.value_or(none).of(query.value) -
                    row.right.value_or(none).of(query.value));
  };
  std::ranges::stable_sort(rows, std::greater(), key);
  WithinComparison out{.axis = query.axis,
                       .left = query.left,
                       .right = query.right,
                       .phase = query.axis == Axis::Layer
                                    ? std::optional(ranked_phase(index, query.filter))
                                    : std::nullopt,
                       .left_sums = left->total,
                       .right_sums = right->total,
                       .rows = {.total = rows.size(), .rows = {}},
                       .damaged_steps = static_cast<std::uint32_t>(index.damaged().size()),
                       .left_out_steps = index.left_out()};
  for (std::uint64_t i = query.page.from; i < rows.size() && query.page.contains(i); ++i)
    out.rows.rows.push_back(std::move(rows[static_cast<std::size_t>(i)]));
  return out;
}

namespace {

// The compared measures.
constexpr const char* kMeasureNames[] = {"accesses", "bytes_read", "bytes_written", "executions",
                                         "time_ns"};
struct ComparedFigures {
  std::array<std::optional<double>, std::size(kMeasureNames)> values{};
};
Fields<ComparedFigures> fields_of(const ComparedFigures*) {
  return [] {
    Fields<ComparedFigures> all("ComparedFigures");
    for (std::size_t i = 0; i < std::size(kMeasureNames); ++i)
      std::move(all).add(kMeasureNames[i], "",
                         [i](const ComparedFigures& of) { return of.values[i]; });
    return all;
  }();
}

ComparedFigures figures_of(const TraceSums& sums) {
  // 0: nothing was measured.
  return {{sums.accesses(), sums.bytes_read, sums.bytes_written, sums.executions,
           sums.time_ns > 0 ? std::optional(sums.time_ns) : std::nullopt}};
}
// Of both sides; a side without the row has zeros, and what one of them has not measured has no
// result.
template <class Combine>
std::optional<ComparedFigures> combined(const ComparedSums& of, Combine combine) {
  constexpr ComparedFigures kZeros{{0, 0, 0, 0, 0}};
  const ComparedFigures left = of.left.transform(figures_of).value_or(kZeros),
                        right = of.right.transform(figures_of).value_or(kZeros);
  ComparedFigures figures;
  for (std::size_t i = 0; i < std::size(kMeasureNames); ++i)
    if (left.values[i] && right.values[i])
      figures.values[i] = combine(*left.values[i], *right.values[i]);
  return figures;
}

}  // namespace

Fields<ComparedSums> fields_of(const ComparedSums*) {
  return Fields<ComparedSums>("ComparedSums")
      .add("left", "", [](const ComparedSums& of) { return of.left.transform(figures_of); },
           {.null = "the left side has no such row"})
      .add("right", "", [](const ComparedSums& of) { return of.right.transform(figures_of); },
           {.null = "the right side has no such row"})
      .add("difference", "right minus left; time_ns null: one side has no time",
           [](const ComparedSums& of) {
             return combined(of, [](double left, double right) { return right - left; });
           })
      .add("ratio", "right divided by left; a null: left is 0, or has no time",
           [](const ComparedSums& of) {
             return combined(of, [](double left, double right) {
               return left > 0 ? std::optional(right / left) : std::nullopt;
             });
           });
}

Fields<ComparedRow> fields_of(const ComparedRow*) {
  return Fields<ComparedRow>()
      .add("name", "", &ComparedRow::name)
      .include([](const ComparedRow& row) { return ComparedSums(row); });
}

Fields<WithinComparison> fields_of(const WithinComparison*) {
  return Fields<WithinComparison>("WithinComparison")
      .add("of", "token, step or layer", &WithinComparison::axis, {.words = &kRowAxes})
      .add("left", "", &WithinComparison::left)
      .add("right", "", &WithinComparison::right)
      .add("phase",
           "layers are compared by what they cost in one step of this phase: counts are means, "
           "times are medians",
           &WithinComparison::phase, {.null = "tokens or steps are compared by their own sums"})
      .add("sums", "",
           [](const WithinComparison& of) { return ComparedSums{of.left_sums, of.right_sums}; })
      .add("damaged_steps", kDamagedSteps, &WithinComparison::damaged_steps)
      .add("left_out_steps", kLeftOutSteps, &WithinComparison::left_out_steps)
      .add("total", kTotalRows, [](const WithinComparison& of) { return of.rows.total; })
      .add("rows", "", [](const WithinComparison& of) { return of.rows.rows; });
}

}  // namespace tt
