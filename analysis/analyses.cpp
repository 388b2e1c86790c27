#include "analysis/analyses.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/axis_words.h"
#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/op_durations.h"
#include "analysis/aggregate/roofline.h"
#include "analysis/aggregate/summed_steps.h"
#include "analysis/aggregate/totals.h"
#include "analysis/attention/captured_attention.h"
#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "analysis/backends/split_times.h"
#include "analysis/common/rebuilt.h"
#include "analysis/common/session_layers.h"
#include "analysis/experts/expert_cache.h"
#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "analysis/experts/router_margins.h"
#include "analysis/index/session_index.h"
#include "analysis/parameters/filter_parameters.h"
#include "analysis/report/comparison.h"
#include "analysis/speculation/draft_ledger.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/weight_residency.h"
#include "analysis/values/captured_outputs.h"
#include "analysis/values/channels.h"
#include "analysis/values/logit_lens.h"
#include "analysis/values/residual_stream.h"
#include "analysis/weights/compression.h"
#include "analysis/weights/file_order.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/pin_plan.h"
#include "analysis/weights/reuse.h"
#include "analysis/weights/sequentiality.h"

namespace tt {

namespace {

using Cost = Analysis::Cost;

// Completes a row: `run(reader, query, keep_going)` returns a result with declared fields, or an
// error.
template <class Query, class Run>
Analysis on_session(Analysis row, const Parameters<Query>& parameters, Run run) {
  using Found = std::invoke_result_t<Run, const SessionReader&, const Query&, const ContinueCheck&>;
  row.parameters = parameters.infos();
  row.schema = fields::schema_of<typename Found::value_type>();
  row.parse = [=](const ParameterText& text) {
    return parameters.parse(text).transform([&](Query query) {
      return Question(
          [query = std::move(query), run](const Subject& subject, const ContinueCheck& keep_going) {
            return run(subject.reader, query, keep_going).transform([](const auto& found) {
              return fields::value_of(found);
            });
          });
    });
  };
  return row;
}

// The same for `run(reader, keep_going)`: a question without parameters.
struct NoQuery {};
template <class Run>
Analysis on_session(Analysis row, Run run) {
  return on_session(std::move(row), Parameters<NoQuery>(),
                    [run](const SessionReader& reader, const NoQuery&,
                          const ContinueCheck& keep_going) { return run(reader, keep_going); });
}

// The same for `run(reader, page, keep_going)`: rows by the page.
template <class Run>
Analysis on_page(Analysis row, Run run) {
  struct Asked {
    PageRange page{};
  };
  return on_session(
      std::move(row), Parameters<Asked>().page(&Asked::page),
      [run](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        return run(reader, asked.page, keep_going);
      });
}

// A question over the index, restricted by a filter.
template <class Query>
struct Filtered {
  FilterQuery part{};
  Query query{};
};
// The parameters of the query and those of the filter, which sets `query.filter`.
template <class Query>
Parameters<Filtered<Query>> filtered(const Parameters<Query>& parameters) {
  return Parameters<Filtered<Query>>()
      .include(parameters, &Filtered<Query>::query)
      .include(filter_parameters(), &Filtered<Query>::part);
}

// By the names, because ratios of times have the same schema without a unit.
bool has_times(const fields::Schema& schema) {
  return std::ranges::any_of(schema.item, has_times) ||
         std::ranges::any_of(schema.fields, [](const fields::Field& field) {
           return std::string_view(field.name).ends_with("_ns") || has_times(field.schema);
         });
}

// The filters that the steps of an answer passed.
template <class Found>
std::vector<TraceFilter> filters_of(const TraceFilter& filter, const Found&) {
  return {filter};
}
std::vector<TraceFilter> filters_of(TraceFilter filter, const WithinComparison& found) {
  if (found.phase) filter.phase = found.phase;
  return {filter_of_side(filter, found.axis, found.left),
          filter_of_side(filter, found.axis, found.right)};
}

// The same for `run(index, query, keep_going)`, or `run(reader, index, query, keep_going)`. An
// answer with times says what the steps are worth that they are sums of.
template <class Query, class Run>
Analysis on_index(Analysis row, const Parameters<Filtered<Query>>& parameters, Run run) {
  const auto call = [run](const SessionReader& reader, const SessionIndex& index,
                          const Query& query, const ContinueCheck& keep_going) {
    if constexpr (std::is_invocable_v<Run, const SessionIndex&, const Query&,
                                      const ContinueCheck&>) {
      return run(index, query, keep_going);
    } else {
      return run(reader, index, query, keep_going);
    }
  };
  using Found = std::invoke_result_t<decltype(call), const SessionReader&, const SessionIndex&,
                                     const Query&, const ContinueCheck&>;
  row.cost = Cost::Index;
  row.parameters = parameters.infos();
  row.schema = fields::schema_of<typename Found::value_type>();
  const bool sums_times = has_times(row.schema);
  if (sums_times)
    row.schema.fields.push_back(
        {.name = kSummedSteps,
         .meaning = "the steps that sums of times are of; clean=true leaves the disturbed ones out",
         .schema = fields::schema_of<SummedSteps>()});
  row.parse = [=](const ParameterText& text) {
    return parameters.parse(text).transform([&](Filtered<Query> asked) {
      return Question([asked = std::move(asked), call, sums_times](const Subject& subject,
                                                                   const ContinueCheck& keep_going)
                          -> std::expected<fields::Value, TraceError> {
        Query query = asked.query;
        auto filter = filter_of(asked.part, subject.reader);
        if (!filter) return std::unexpected(filter.error());
        query.filter = *std::move(filter);
        const auto index = subject.index(asked.part.leave_out, keep_going);
        if (!index) return std::unexpected(index.error());
        return call(subject.reader, **index, query, keep_going).transform([&](const auto& found) {
          fields::Value answer = fields::value_of(found);
          if (sums_times) {
            const SummedSteps steps = summed_steps(**index, filters_of(query.filter, found));
            std::get<fields::Record>(answer.of).push_back({kSummedSteps, fields::value_of(steps)});
          }
          return answer;
        });
      });
    });
  };
  row.matches_nothing = [=](const ParameterText& text, const Subject& subject,
                            const ContinueCheck& keep_going) -> std::expected<bool, TraceError> {
    const auto asked = parameters.parse(text);
    if (!asked) return false;
    const auto filter = filter_of(asked->part, subject.reader);
    if (!filter) return std::unexpected(filter.error());
    if (*filter == TraceFilter{}) return false;
    const auto index = subject.index(asked->part.leave_out, keep_going);
    if (!index) return std::unexpected(index.error());
    return breakdown(**index, {.by = Axis::All, .filter = *filter, .order = {}}, keep_going)
        .transform([](const Breakdown& all) {
          const TraceSums& sums = all.total.all;
          return sums.executions == 0 && sums.reads == 0 && sums.writes == 0;
        });
  };
  return row;
}

// Parameters of several rows.
constexpr bool is_row_axis(Axis axis) { return std::ranges::contains(kRowAxisList, axis); }
constexpr columns::Enumeration kRowAxisWords{
    .schema = "RowAxis", .count = kAxisWords.count, .word = kAxisWords.word};
constexpr const char* kStepTimes =
    "add the median and the spread of the time in one step to each row (step_ns), of generated "
    "steps unless phase selects others; sort=time then sorts by the median. Takes longer, because "
    "it reads the times of all ops. Not for by=step and by=token";
template <class Asked>
Parameters<Asked> with_gap(Parameters<Asked> parameters) {
  return std::move(parameters)
      .number("gap",
              "a read is sequential if it starts at most this many bytes after the end of the "
              "previous read",
              &Asked::gap, kMaxJsonInteger)
      .by_default(std::to_string(kDefaultGap));
}
constexpr const char* kNoLayerNumber = "is not the number of a layer. Layers are numbered from 0.";

struct PhaseQuery {
  std::optional<Phase> phase{};
};

// --- sums

std::vector<std::pair<std::string, Order<Value>>> sort_words() {
  std::vector<std::pair<std::string, Order<Value>>> words;
  for (const std::string& word : fields::list_of(words_of(Value{}))) {
    const auto by = static_cast<Value>(words.size() / 2);
    words.emplace_back(word, Order<Value>{.by = by});
    words.emplace_back("-" + word, Order<Value>{.by = by, .descending = true});
  }
  return words;
}

Analysis breakdown_row() {
  return on_index(
      {.name = "breakdown",
       .path = "breakdown",
       .summary = "Bytes, accesses and time grouped by layer, op, tensor or another axis",
       .answer = "Rows and their totals",
       .cost = Cost::Index},
      filtered(
          Parameters<BreakdownQuery>()
              .word("by", "what each row shows", &BreakdownQuery::by, kRowAxisWords, is_row_axis)
              .word("sort",
                    "a leading - sorts in descending order. Without it: the order of the "
                    "axis, such as layer numbers",
                    &BreakdownQuery::order, sort_words())
              .flag("step_times", kStepTimes, &BreakdownQuery::step_times)
              .page(&BreakdownQuery::page)),
      breakdown);
}

Analysis totals_row() {
  struct Asked {
    TraceFilter filter{};
  };
  return on_index({.name = "totals",
                   .path = "totals",
                   .summary = "Bytes, accesses and time by tensor type, by kernel and by buffer",
                   .answer = "The sums of everything, and one list of rows for each",
                   .cost = Cost::Index},
                  filtered(Parameters<Asked>()),
                  [](const SessionReader& reader, const SessionIndex& index, const Asked& asked,
                     const ContinueCheck& keep_going) -> std::expected<Totals, TraceError> {
                    if (auto known = needs_recorded_graphs(
                            index.info(), "which type, kernel and buffer an access has");
                        !known)
                      return std::unexpected(known.error());
                    return totals(reader, index, asked.filter, keep_going);
                  });
}

Analysis roofline_row() {
  return on_index(
      {.name = "roofline",
       .path = "roofline",
       .summary = "What limits each op: reading memory, computing, overhead or waiting, by the "
                  "measured rates of the machine; the op to optimise first is the first row",
       .answer = "The bounds of the machine, and one page of ops",
       .cost = Cost::Index},
      filtered(Parameters<RooflineQuery>()
                   .word("by", "what each row shows: an op of all layers, or an op type",
                         &RooflineQuery::by)
                   .page(&RooflineQuery::page)),
      [](const SessionReader& reader, const SessionIndex& index, const RooflineQuery& query,
         const ContinueCheck& keep_going) { return roofline(reader, index, query, keep_going); });
}

Analysis op_durations_row() {
  struct Asked {
    TraceFilter filter{};
  };
  return on_index(
      {.name = "op-durations",
       .path = "op_durations",
       .summary = "How long ops take: a histogram of the durations of single executions",
       .answer = "The bins of the histogram",
       .cost = Cost::Index},
      filtered(Parameters<Asked>()),
      [](const SessionIndex& index, const Asked& asked, const ContinueCheck& keep_going) {
        return op_durations(index, asked.filter, keep_going);
      });
}

Analysis hot_row() {
  struct Asked : HotQuery {
    std::optional<double> hot_percent{}, cold_percent{};
  };
  return on_index(
      {.name = "hot",
       .path = "hot",
       .summary = "The most and least accessed tensors, layers, ops or other rows",
       .answer = "Rows and their totals",
       .cost = Cost::Index},
      filtered(Parameters<Asked>()
                   .word("by", "what each row shows", &Asked::by, kRowAxisWords, is_row_axis)
                   .word("value",
                         "value that the rows are sorted by. Without it: accesses, unless more "
                         "than half of the rows have equally many; then bytes; if these are equal, "
                         "too, time",
                         &Asked::value)
                   .percent("hot_percent",
                            "percentage of the rows that are hot, from the highest value down. "
                            "Rows with equal values that the limit would divide are warm",
                            &Asked::hot_percent, "10")
                   .percent("cold_percent",
                            "percentage of the rows that are cold, from the lowest value up. By "
                            "default each percentage is at most what the other leaves; together "
                            "they must be at most 100",
                            &Asked::cold_percent, "50")
                   .flag("step_times", kStepTimes, &Asked::step_times)
                   .page(&Asked::page)
                   .check([](const Asked& asked) {
                     if (asked.hot_percent.value_or(0) + asked.cold_percent.value_or(0) <= 100)
                       return std::string();
                     return std::string(
                         "\"hot_percent\" and \"cold_percent\" overlap: together they must be at "
                         "most 100.");
                   })),
      [](const SessionIndex& index, Asked query, const ContinueCheck& keep_going) {
        query.set_shares(query.hot_percent, query.cold_percent);
        return hot_cold(index, query, keep_going);
      });
}

Analysis sequentiality_row() {
  struct Asked {
    TraceFilter filter{};
    std::uint64_t gap = kDefaultGap;
    PageRange page{};
  };
  return on_index(
      {.name = "sequentiality",
       .path = "sequentiality",
       .summary = "Number of reads of the model files that are sequential",
       .answer = "Rows and their totals",
       .cost = Cost::Index},
      filtered(with_gap(Parameters<Asked>()).page(&Asked::page)),
      [](const SessionIndex& index, const Asked& asked, const ContinueCheck& keep_going) {
        return sequentiality(index, asked.filter, asked.gap, asked.page, keep_going);
      });
}

Analysis comparison_row() {
  struct Sides {
    std::optional<std::uint32_t> left{}, right{};
  };
  struct Asked : WithinQuery {
    Sides token{}, step{}, layer{};
  };
  constexpr const char *kLeft = "the left side; with the parameter of the right side",
                       *kRight = "the right side";
  const auto side = [](auto of, auto which) {
    return [=](Asked& asked) -> auto& { return asked.*of.*which; };
  };
  return on_index(
      {.name = "comparison-within",
       .path = "comparison",
       .summary = "Compares two tokens, two steps or two layers of one session: the tensors with "
                  "the largest difference first",
       .answer = "One page of tensors, and the sums of both sides",
       .cost = Cost::Index,
       .example = "left_step=0 right_step=1"},
      filtered(Parameters<Asked>()
                   .number("left_token", kLeft, side(&Asked::token, &Sides::left))
                   .number("right_token", kRight, side(&Asked::token, &Sides::right))
                   .number("left_step", kLeft, side(&Asked::step, &Sides::left))
                   .number("right_step", kRight, side(&Asked::step, &Sides::right))
                   .number("left_layer", kLeft, side(&Asked::layer, &Sides::left))
                   .number("right_layer", kRight, side(&Asked::layer, &Sides::right))
                   .word("value", "the rows are sorted by the difference of it", &Asked::value)
                   .page(&Asked::page)
                   .check([](const Asked& asked) {
                     int given = 0;
                     bool complete = true;
                     for (const Sides& sides : {asked.token, asked.step, asked.layer}) {
                       given += sides.left || sides.right;
                       complete = complete && sides.left.has_value() == sides.right.has_value();
                     }
                     return std::string(given == 1 && complete
                                            ? ""
                                            : "Set left_token and right_token, left_step and "
                                              "right_step, or left_layer and right_layer.");
                   }))
          .check([](const Filtered<Asked>& asked) {
            return std::string(asked.query.layer.left && asked.part.layers != LayerSet::all()
                                   ? "layers cannot be combined with left_layer and right_layer. "
                                     "Omit it."
                                   : "");
          }),
      [](const SessionIndex& index, Asked query, const ContinueCheck& keep_going) {
        const std::pair<Axis, Sides> all[] = {
            {Axis::Token, query.token}, {Axis::Step, query.step}, {Axis::Layer, query.layer}};
        for (const auto& [axis, sides] : all) {
          if (!sides.left) continue;
          query.axis = axis;
          query.left = *sides.left;
          query.right = *sides.right;
        }
        return compare_within(index, query, keep_going);
      });
}

// --- the machine and the recording

Analysis conditions_row() {
  struct Asked {
    LeaveOut leave_out = LeaveOut::Nothing;
  };
  return on_session(
      {.name = "conditions",
       .path = "conditions",
       .summary = "What the machine did to the times of the session (verdict, evidence and what to "
                  "do), and the spread of step times",
       .answer = "Verdict and spread",
       .cost = Cost::Little},
      Parameters<Asked>().flag("clean", "leave steps whose verdict is not clean out of the spread",
                               &Asked::leave_out),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        return session_conditions(reader, asked.leave_out, keep_going);
      });
}

Analysis residency_row() {
  struct Asked {
    StepId step{};
  };
  return on_session(
      {.name = "residency",
       .path = "steps/{step}/residency",
       .summary = "What of the model files was in memory before the step, by tensor. The request "
                  "of the session must have had residency_interval_ms",
       .answer = "The last snapshot at or before this step, taken just before its step",
       .cost = Cost::Little,
       .example = "step=0"},
      Parameters<Asked>().path_number(
          "step", "step number, from 0", &Asked::step, kMaxNumber,
          "is not the number of a step. Steps are numbered from 0. /steps of the session lists "
          "them."),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck&) {
        return residency_at(reader, asked.step);
      });
}

// --- drafts

Analysis drafts_row() {
  return on_page(
      {.name = "drafts",
       .path = "drafts",
       .summary = "What drafts cost and what they save, in a session of a program that generates "
                  "with a draft model: accepted tokens, time and bytes of drafting and checking",
       .answer = "Totals, and one page of drafts",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoDrafts); }},
      draft_ledger);
}

// --- backends

Analysis splits_row() {
  return on_session(
      {.name = "splits",
       .path = "splits",
       .summary = "Where the time of a program with several backends went, such as a GPU and the "
                  "CPU: the time of each, and what was copied between them",
       .answer = "Totals by backend, and by pair of backends",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoSplits); }},
      split_times);
}

// --- captured values

Analysis lens_row() {
  return on_session(
      {.name = "lens",
       .path = "lens",
       .summary = "What the model would have said after each layer (logit lens), and the "
                  "probability, rank and alternatives of each chosen token, if they were captured",
       .answer = "One page of chosen tokens and layers",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedLens); }},
      Parameters<LensQuery>()
          .layer("layer", "only after this layer; outside (alias none): only the model's output",
                 &LensQuery::layer)
          .number("token", "only of the token with this index", &LensQuery::token, UINT32_MAX)
          .page(&LensQuery::page),
      logit_lens);
}

Analysis residual_row() {
  return on_session(
      {.name = "residual",
       .path = "residual",
       .summary = "How the residual stream changes from layer to layer, if it was captured: its "
                  "norm, what attention and the feed-forward part add, similarity of layers",
       .answer = "One row per layer",
       .cost = Cost::AllSteps,
       .needs = "layers",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedResidual); }},
      residual_stream);
}

Analysis channels_row() {
  return on_session(
      {.name = "channels",
       .path = "channels",
       .summary = "Statistics of captured outputs over all their tokens: range, norm, kurtosis, "
                  "histogram of magnitudes, and the channels with the largest values",
       .answer = "One page of outputs, one row for all outputs of a name",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedOutput); }},
      Parameters<ChannelsQuery>()
          .layer("layer", "only of this layer; outside (alias none): outside the layers",
                 &ChannelsQuery::layer)
          .text("output", "only of this name, such as l_out-3", &ChannelsQuery::output)
          .page(&ChannelsQuery::page),
      output_channels);
}

Analysis captured_values_row() {
  return on_session(
      {.name = "captured-values",
       .path = "values",
       .summary = "The captured values of a session: one row per output, with its shape, size and "
                  "statistics, and how many outputs were left out",
       .answer = "One page of outputs",
       .cost = Cost::AllSteps,
       .needs = "total not_captured",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedValues); }},
      Parameters<CapturedQuery>()
          .number("step", "only of this step", &CapturedQuery::step, UINT32_MAX)
          .layer("layer", "only of this layer; outside (alias none): outside the layers",
                 &CapturedQuery::layer)
          .text("output", "only of this name, such as l_out-3", &CapturedQuery::output)
          .page(&CapturedQuery::page),
      captured_list);
}

Analysis captured_output_row() {
  const auto place = [](auto member) {
    return [=](CapturedValuesQuery& asked) -> auto& { return asked.place.*member; };
  };
  return on_session(
      {.name = "captured-output",
       .path = "steps/{step}/ops/{op}/values",
       .summary =
           "The captured values of one op: statistics, a histogram and the values themselves",
       .answer = "One page of values, in the order of the dimensions",
       .cost = Cost::Little,
       .example = "step=0 op=0"},
      Parameters<CapturedValuesQuery>()
          .path_number("step", "step number, from 0", place(&CapturedPlace::step), kMaxNumber,
                       "is not the number of a step. Steps are numbered from 0. /steps of the "
                       "session lists them.")
          .path_number("op", "index of the op in the step", place(&CapturedPlace::op), kMaxNumber,
                       "is not the number of an op. Ops are numbered from 0. /values of the "
                       "session lists those with captured values.")
          .text("output",
                "which values of the op, such as l_out-3.src1. Without it: the first ones of the "
                "list of captured values",
                place(&CapturedPlace::output))
          .page(&CapturedValuesQuery::page),
      [](const SessionReader& reader, const CapturedValuesQuery& query, const ContinueCheck&) {
        return captured_values(reader, query);
      });
}

// --- weights

Analysis compression_row() {
  return on_session(
      {.name = "compression",
       .path = "compression",
       .summary = "Sizes and bits per weight of the weights that a session accessed",
       .answer = "Totals, and one row per weight",
       .cost = Cost::Little},
      [](const SessionReader& reader,
         const ContinueCheck& keep_going) -> std::expected<CompressionReport, TraceError> {
        const auto info = reader.info();
        if (!info) return std::unexpected(info.error());
        if (auto known = needs_recorded_graphs(*info, "the shape of a weight"); !known)
          return std::unexpected(known.error());
        return session_weights(reader, keep_going).transform(compression);
      });
}

Analysis reuse_row() {
  return on_session(
      {.name = "reuse",
       .path = "reuse",
       .summary = "Reuse distances of weight reads, and the reads that a cache would save with the "
                  "policies LRU, pinning and optimal (Belady)",
       .answer = "Reuse distances and cache curves",
       .cost = Cost::AllSteps},
      Parameters<ReuseQuery>()
          .word("grain",
                "unit to cache. part: parts that are read separately, such as experts; tensor: "
                "whole tensors",
                &ReuseQuery::grain)
          .numbers("sizes",
                   "cache sizes in bytes. Default: 10 %, 20 %, ... 100 % of the distinct bytes "
                   "read",
                   &ReuseQuery::capacities, kMaxJsonInteger, 100),
      [](const SessionReader& reader, const ReuseQuery& query, const ContinueCheck& keep_going) {
        return reuse(reader, query, keep_going);
      });
}

Analysis pin_order_row() {
  return on_page(
      {.name = "pin-order",
       .path = "pin-order",
       .summary = "Which weights to keep in memory of a given size: their parts in the order in "
                  "which the policy pinning keeps them, the most read first",
       .answer = "One page of parts. A memory of `memory_bytes` holds a part and all before it",
       .cost = Cost::AllSteps},
      pin_order);
}

Analysis file_order_row() {
  struct Asked {
    std::uint64_t gap = kDefaultGap;
    PageRange page{};
  };
  return on_session(
      {.name = "file-order",
       .path = "file-order",
       .summary = "How sequentially generated tokens read the model files, and how they would if "
                  "tensors or experts were stored in the order of their use",
       .answer = "One row per layout of the files, and the tensors in order of use",
       .cost = Cost::AllSteps,
       .needs = "layouts.reads",
       .missing = [](const SessionInfo&) { return std::string(kNoMappedReads); }},
      with_gap(Parameters<Asked>()).page(&Asked::page),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        return file_order(reader, asked.gap, asked.page, keep_going);
      });
}

Analysis pattern_row() {
  return on_session(
      {.name = "pattern",
       .path = "pattern",
       .summary = "The order in which each token reads the weights, and how accurately this order "
                  "predicts the next read (access_pattern.json)",
       .answer = "The format is described in docs/access-pattern.md",
       .cost = Cost::AllSteps,
       .needs = pattern_names::kTokenOrder,
       .missing = [](const SessionInfo&) { return std::string(kNoPattern); }},
      recorded_pattern);
}

Analysis determinism_row() {
  return on_session(
      {.name = "determinism",
       .path = "determinism",
       .summary = "Whether consecutive generated tokens make the same accesses, and why not",
       .answer = "Counts by cause, and the first difference of each cause",
       .cost = Cost::AllSteps,
       .needs = "pairs",
       .missing = [](const SessionInfo&) { return std::string(kNoPairs); }},
      determinism);
}

// --- attention

Analysis heads_row() {
  return on_session(
      {.name = "heads",
       .path = "heads",
       .summary = "Bytes and reads of each attention head in the Q, K, V and O weights",
       .answer = "One row per weight",
       .cost = Cost::AllSteps,
       .needs = "weights.heads",
       .missing = [](const SessionInfo&) { return std::string(kNoHeadWeights); }},
      head_table);
}

Analysis attention_row() {
  return on_session(
      {.name = "attention",
       .path = "attention",
       .summary = "Which tokens each attention head looks at, from captured attention weights: "
                  "entropy, distance, the first and the previous token, induction",
       .answer = "One row per head",
       .cost = Cost::AllSteps,
       .needs = "heads",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedAttention); }},
      attention_table);
}

Analysis attention_weights_row() {
  return on_session(
      {.name = "attention-weights",
       .path = "attention/weights",
       .summary = "Captured attention weights: of each head and token, the weight of every token",
       .answer = "One page of heads and tokens",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedAttention); }},
      Parameters<TokenAttentionQuery>()
          .number("layer", "only this layer", &TokenAttentionQuery::layer,
                  std::numeric_limits<std::int32_t>::max())
          .number("head", "only this head", &TokenAttentionQuery::head, UINT32_MAX)
          .number("token", "only what this token looks at", &TokenAttentionQuery::token, UINT32_MAX)
          .page(&TokenAttentionQuery::page),
      token_attention);
}

Analysis attention_tokens_row() {
  return on_session(
      {.name = "attention-tokens",
       .path = "attention/tokens",
       .summary =
           "Which tokens each token looks at, from captured attention weights: the mean over "
           "all heads of a layer, or of all layers",
       .answer = "One row per token",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedAttention); }},
      Parameters<MeanAttentionQuery>()
          .number("layer", "only this layer", &MeanAttentionQuery::layer,
                  std::numeric_limits<std::int32_t>::max())
          .number("head", "only this head", &MeanAttentionQuery::head, UINT32_MAX)
          .range("token", "tokens that look at others", &MeanAttentionQuery::tokens, UINT32_MAX)
          .page(&MeanAttentionQuery::page),
      mean_attention);
}

Analysis kv_row() {
  return on_page(
      {.name = "kv",
       .path = "kv",
       .summary = "KV cache bytes per step and layer. Reads are divided into bytes that the same "
                  "step wrote and bytes that earlier steps wrote",
       .answer = "One page of steps",
       .cost = Cost::Little,
       .needs = "steps.layers steps.state_read steps.state_written",
       .missing = [](const SessionInfo&) { return std::string(kNoKvAccesses); }},
      kv_use);
}

// --- experts

Analysis experts_row() {
  return on_session(
      {.name = "experts",
       .path = "experts",
       .summary = "Expert usage by router",
       .answer = "One row per router, sorted by layer; empty for a model without experts",
       .cost = Cost::AllSteps,
       .needs = "routers",
       .missing = no_expert_choices},
      Parameters<PhaseQuery>().word("phase", "only steps of this phase", &PhaseQuery::phase),
      [](const SessionReader& reader, const PhaseQuery& asked, const ContinueCheck& keep_going) {
        return expert_use(reader, asked.phase, keep_going);
      });
}

Analysis expert_layer_row() {
  struct Asked {
    LayerId layer{};
    std::uint32_t router = 0;
    std::optional<Phase> phase{};
    DetailLimits limits{};
  };
  return on_session(
      {.name = "expert-layer",
       .path = "experts/layers/{layer}",
       .summary = "Expert usage of one layer, with the pairs of experts chosen together and the "
                  "tokens that each expert is chosen for",
       .answer = "The router",
       .cost = Cost::AllSteps,
       .example = "layer=0"},
      Parameters<Asked>()
          .path_number("layer", "layer number, from 0", &Asked::layer,
                       std::numeric_limits<std::int32_t>::max(), kNoLayerNumber)
          .number("router", "index of the router in the layer, for layers with two routers",
                  &Asked::router)
          .by_default("0")
          .word("phase", "only steps of this phase", &Asked::phase)
          .number(
              "pairs", "maximum number of expert pairs",
              [](Asked& asked) -> auto& { return asked.limits.pairs; }, kMaxRows)
          .by_default(std::to_string(DetailLimits{}.pairs))
          .number(
              "tokens", "maximum number of tokens per expert",
              [](Asked& asked) -> auto& { return asked.limits.tokens; }, 100)
          .by_default(std::to_string(DetailLimits{}.tokens)),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        return router_detail(reader, asked.layer, asked.router, asked.phase, asked.limits,
                             keep_going);
      });
}

Analysis expert_tokens_row() {
  struct Asked {
    std::optional<LayerId> layer{};
    PageRange page{};
  };
  return on_session(
      {.name = "expert-tokens",
       .path = "experts/tokens",
       .summary = "Tokens with the experts they were routed to, for one layer or summed over all "
                  "layers",
       .answer = "One page of tokens",
       .cost = Cost::AllSteps,
       .needs = "tokens.experts",
       .missing = no_expert_choices},
      Parameters<Asked>()
          .layer("layer", "a layer number, or outside (alias none) for routers of no layer",
                 &Asked::layer)
          .page(&Asked::page),
      [](const SessionReader& reader, const Asked& asked,
         const ContinueCheck& keep_going) -> std::expected<Page<TokenExperts>, TraceError> {
        if (asked.layer) {
          const auto there = validate_layers(reader, LayerSet::one(*asked.layer));
          if (!there) return std::unexpected(there.error());
        }
        return token_experts(reader, asked.layer, asked.page, keep_going);
      });
}

Analysis expert_margins_row() {
  struct Asked {
    double below = 1;  // percent
  };
  return on_session(
      {.name = "expert-margins",
       .path = "experts/margins",
       .summary = "How near the routers were to choosing other experts, if their scores were "
                  "captured: margin between the last chosen expert and the first one not chosen",
       .answer = "One row per router, sorted by layer",
       .cost = Cost::AllSteps,
       .needs = "routers",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedRouters); }},
      Parameters<Asked>().percent(
          "below",
          "a margin below this counts as near: of scores that are probabilities, percentage "
          "points; of others, hundredths",
          &Asked::below, "1"),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        return router_margins(reader, asked.below / 100, keep_going);
      });
}

Analysis expert_token_margins_row() {
  return on_session(
      {.name = "expert-token-margins",
       .path = "experts/margins/tokens",
       .summary = "For each token and router with captured scores: the chosen experts, the best "
                  "ones not chosen, and the margin between them",
       .answer = "One page of routers and tokens",
       .cost = Cost::AllSteps,
       .needs = "total",
       .missing = [](const SessionInfo&) { return std::string(kNoCapturedRouters); }},
      Parameters<TokenMarginQuery>()
          .layer("layer", "only of this layer; outside (alias none): of routers of no layer",
                 &TokenMarginQuery::layer)
          .number("token", "only of the token with this index", &TokenMarginQuery::token,
                  UINT32_MAX)
          .page(&TokenMarginQuery::page),
      token_margins);
}

Analysis expert_pinning_row() {
  struct Asked {
    std::optional<std::uint64_t> capacity{};
  };
  return on_session(
      {.name = "expert-pinning",
       .path = "experts/pinning",
       .summary = "Bytes saved by pinning (always keeping in memory) the most read experts",
       .answer = "Bytes saved by a cache of each size",
       .cost = Cost::AllSteps,
       .needs = "slices",
       .missing = no_expert_choices},
      Parameters<Asked>().number("capacity",
                                 "cache size in bytes. Default: 10 %, 20 %, ... 100 % of the "
                                 "distinct bytes of the experts read",
                                 &Asked::capacity, kMaxJsonInteger),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        std::vector<Bytes> capacities;
        if (asked.capacity) capacities.push_back(Bytes{*asked.capacity});
        return expert_pinning(reader, capacities, keep_going);
      });
}

Analysis expert_caches_row() {
  struct Asked {
    std::optional<std::uint32_t> slots{};
    std::optional<Phase> phase{};
  };
  return on_session(
      {.name = "expert-caches",
       .path = "experts/caches",
       .summary = "Requests of experts served by caches with slots per layer or in one pool",
       .answer = "Requests served, by number of slots, policy and order of the tokens",
       .cost = Cost::AllSteps,
       .needs = "routers",
       .missing = no_expert_choices},
      Parameters<Asked>()
          .number("slots",
                  "number of slots per layer. Default: 1, 2, 4, ... below the number of experts",
                  &Asked::slots, kMaxExpertSlots, 1)
          .word("phase", "only tokens of steps of this phase", &Asked::phase),
      [](const SessionReader& reader, const Asked& asked, const ContinueCheck& keep_going) {
        std::vector<std::uint32_t> slots;
        if (asked.slots) slots.push_back(*asked.slots);
        return expert_caches(reader, asked.phase, slots, keep_going);
      });
}

// Whether a field has a row or a number above 0. nullopt: a list of the answer before it has no
// rows, as a page beyond the last row.
std::optional<bool> has_any(const fields::Value& in, std::string_view path) {
  if (const auto* list = std::get_if<fields::List>(&in.of)) {
    if (path.empty()) return !list->empty();
    std::optional<bool> any;
    for (const fields::Value& row : *list)
      if (const auto has = has_any(row, path)) any = any.value_or(false) || *has;
    return any;
  }
  if (const auto* record = std::get_if<fields::Record>(&in.of)) {
    const auto dot = std::min(path.find('.'), path.size());
    const auto member = std::ranges::find(*record, path.substr(0, dot), &fields::Member::name);
    if (member == record->end()) return std::nullopt;
    return has_any(member->value, path.substr(std::min(dot + 1, path.size())));
  }
  const auto* number = std::get_if<std::uint64_t>(&in.of);
  return number != nullptr && *number > 0;
}

// Whether the answer has nothing of what the row needs.
bool lacks_needs(const Analysis& row, const fields::Value& answer) {
  bool is_known = false;
  for (const auto field : std::views::split(std::string_view(row.needs), ' ')) {
    const auto has = has_any(answer, std::string_view(field));
    if (has == true) return false;
    is_known |= has.has_value();
  }
  return is_known;
}

constexpr const char* kMissing = "missing";

// Its answers say why the question does not apply to a session.
Analysis with_missing(Analysis row) {
  row.schema.fields.push_back({.name = kMissing,
                               .meaning = "why the question does not apply to this session",
                               .schema = {.kind = fields::Schema::Kind::Text},
                               .optional = true});
  const auto plain = std::make_shared<const Analysis>(row);
  row.parse = [plain](const ParameterText& text) {
    return plain->parse(text).transform([&](Question ask) {
      return Question(
          [plain, ask = std::move(ask)](
              const Subject& subject,
              const ContinueCheck& keep_going) -> std::expected<fields::Value, TraceError> {
            auto answer = ask(subject, keep_going);
            if (!answer || !lacks_needs(*plain, *answer)) return answer;
            const auto info = subject.reader.info();
            if (!info) return std::unexpected(info.error());
            std::get<fields::Record>(answer->of).push_back({kMissing, {plain->missing(*info)}});
            return answer;
          });
    });
  };
  return row;
}

std::vector<Analysis> all_rows() {
  std::vector<Analysis> rows = {
      attention_row(),
      attention_weights_row(),
      attention_tokens_row(),
      breakdown_row(),
      captured_output_row(),
      captured_values_row(),
      comparison_row(),
      compression_row(),
      conditions_row(),
      determinism_row(),
      drafts_row(),
      expert_caches_row(),
      expert_layer_row(),
      expert_margins_row(),
      expert_pinning_row(),
      expert_token_margins_row(),
      expert_tokens_row(),
      experts_row(),
      file_order_row(),
      heads_row(),
      hot_row(),
      kv_row(),
      lens_row(),
      op_durations_row(),
      pattern_row(),
      pin_order_row(),
      residency_row(),
      residual_row(),
      channels_row(),
      reuse_row(),
      roofline_row(),
      sequentiality_row(),
      splits_row(),
      totals_row(),
  };
  for (Analysis& row : rows)
    if (*row.needs != 0) row = with_missing(std::move(row));
  std::ranges::sort(rows, {}, [](const Analysis& row) { return std::string_view(row.name); });
  return rows;
}

}  // namespace

const std::string* does_not_apply(const fields::Value& answer) {
  const auto* record = std::get_if<fields::Record>(&answer.of);
  if (record == nullptr) return nullptr;
  const auto missing = std::ranges::find(*record, kMissing, &fields::Member::name);
  return missing == record->end() ? nullptr : std::get_if<std::string>(&missing->value.of);
}

Subject subject_of(const SessionReader& reader) {
  return {
      .reader = reader, .index = [&reader](LeaveOut leave_out, const ContinueCheck& keep_going) {
        return SessionIndex::build(reader, keep_going, leave_out).transform([](SessionIndex index) {
          return std::make_shared<const SessionIndex>(std::move(index));
        });
      }};
}

std::span<const Analysis> analyses() {
  static const std::vector<Analysis> rows = all_rows();
  return rows;
}

const Analysis* find_analysis(std::string_view name) {
  const auto found = std::ranges::find(analyses(), name, &Analysis::name);
  return found == analyses().end() ? nullptr : &*found;
}

ParameterText parameter_text(std::string_view values) {
  std::map<std::string, std::string, std::less<>> given;
  for (const auto word : std::views::split(values, ' ')) {
    const std::string_view text(word);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    given.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return [given = std::move(given)](const std::string& name) -> std::optional<std::string> {
    const auto found = given.find(name);
    return found == given.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace tt
