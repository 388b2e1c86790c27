#include "analysis/aggregate/roofline.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <format>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/read_rates.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/common/format_units.h"
#include "analysis/common/operations.h"
#include "analysis/common/rebuilt.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// --- what limits an op

double ns_at(double amount, double per_second) { return amount * 1e9 / per_second; }

std::string why_not(const OpCost& cost, const MachineBounds& bounds, bool from_cache) {
  if (from_cache) return "its bytes come from caches, whose rate is not measured";
  if (cost.memory_bytes > 0 && bounds.read_bandwidth <= 0) return "the read bandwidth is not known";
  if (!cost.operations) return "its operations are not counted";
  if (*cost.operations > 0 && bounds.compute_peak <= 0) return "the compute peak is not known";
  return "";
}

std::string share_text(double part, double ns) { return format_percent(std::min(part, ns), ns); }

std::string limit_text(const OpCost& cost, const OpVerdict& verdict, const std::string& why) {
  switch (verdict.limit) {
    case OpLimit::MemoryBound:
      return std::format("memory-bound: reading takes {} of its time",
                         share_text(*verdict.read_ns, cost.ns));
    case OpLimit::ComputeBound:
      return std::format("compute-bound: computing takes {} of its time",
                         share_text(*verdict.compute_ns, cost.ns));
    case OpLimit::Overhead:
      return std::format("overhead: the bound is {} of its time",
                         share_text(verdict.bound_ns.value_or(0), cost.ns));
    case OpLimit::Waiting:
      return std::format("waiting: all steps are {}", to_text(*cost.disturbed));
    case OpLimit::Unknown:
      return "unknown: " + why;
  }
  return "";
}

// --- the ops of all layers

// The output without the number of the layer; the type, of one without a name of its own.
std::string name_of_all_layers(std::string_view output, std::string_view kind) {
  constexpr std::string_view kUnnamed = "node_", kCache = "cache_";
  std::string name(output.substr(0, output.find('-')));
  if (output.starts_with(kCache)) name = output.substr(0, kCache.size() + 1);  // "cache_k"
  if (!output.starts_with(kUnnamed) && !name.empty()) return name;
  name = kind;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

// A row while its ops are added.
struct RoofGroup {
  RooflineRow row;
  double other_bytes = 0;  // of neither weights nor caches
};

// The groups of the ops of all series, and what they cost in the mean step.
class RoofGroups {
 public:
  // The arguments outlive the object.
  RoofGroups(const SessionReader& reader, const SessionIndex& index, const TraceFilter& filter,
             RooflineBy by)
      : reader_(reader), index_(index), matcher_(index, filter), by_(by) {}

  std::expected<void, TraceError> add_ops() {
    std::map<std::tuple<std::string, std::uint32_t, Component>, std::uint32_t> numbers;
    const SessionNames& names = index_.names();
    for (const Series& series : index_.series()) {
      auto graph = reader_.graph(series.graph);
      if (!graph) return std::unexpected(graph.error());
      std::vector<std::uint32_t>& of_ops = group_of_op_.emplace_back(series.ran, kNone);
      for (std::uint32_t i = 0; i < series.ran; ++i) {
        const OutlineOp& op = series.outline->ops[i];
        if (!matcher_.time(*series.outline, op)) continue;
        const std::string& kind = names.kinds()[op.kind];
        const bool by_op = by_ == RooflineBy::Op;
        std::string name = by_op ? name_of_all_layers(names.ops()[op.op].output, kind) : kind;
        const auto [at, is_new] =
            numbers.try_emplace({name, op.kind, by_op ? op.component : Component::Other},
                                static_cast<std::uint32_t>(groups_.size()));
        if (is_new) {
          groups_.emplace_back().row.name = std::move(name);
          RooflineRow& row = groups_.back().row;
          row.op_kind = kind;
          if (by_op) row.component = op.component;
          row.cost.operations = 0;
        }
        of_ops[i] = at->second;
        groups_[at->second].row.cost.other_device |= (*graph)->ops[i].device != "CPU";
      }
      graphs_.push_back(*std::move(graph));
    }
    return {};
  }

  // `steps`: the number of steps that the shares are of.
  void add(const SeriesShare& share, double steps) {
    for_each_op(share, [&](std::uint32_t group, std::uint32_t op) {
      add_op(share, op, share.share_of(op) / steps, groups_[group]);
    });
  }
  // `each(group, op)` of each op that counts.
  void for_each_op(const SeriesShare& share, auto each) const {
    const std::vector<std::uint32_t>& of_ops = group_of_op_[share.number];
    const std::uint32_t end = std::min(share.end_op, static_cast<std::uint32_t>(of_ops.size()));
    for (std::uint32_t op = share.first_op; op < end; ++op)
      if (of_ops[op] != kNone) each(of_ops[op], op);
  }

  std::vector<RoofGroup>& all() { return groups_; }

 private:
  void add_op(const SeriesShare& share, std::uint32_t number, double of_step, RoofGroup& to) const {
    const TemplateOutline& outline = *share.series.outline;
    const OutlineOp& op = outline.ops[number];
    const auto accesses = std::span(outline.accesses).subspan(op.first_access, op.accesses);
    const auto bytes_of = [&](const OutlineAccess& access) {
      const double parts = access.rule == kNone ? share.steps() : share.parts(access.rule);
      return static_cast<double>(access.unit.v) * parts;
    };
    to.row.executions += share.steps() * of_step;
    for (const OutlineAccess& access : accesses) {
      const double bytes = bytes_of(access) * of_step;
      const TensorKind kind = index_.names().tensors()[access.tensor].kind;
      const bool from_memory = kind == TensorKind::Weight || kind == TensorKind::Kv;
      to.row.bytes += bytes;
      (from_memory ? to.row.cost.memory_bytes : to.other_bytes) += bytes;
    }
    if (!to.row.cost.operations) return;
    const GraphTemplate& graph = *graphs_[share.number];
    const auto operations = operations_of(graph, graph.ops[number], [&](TensorId source) {
      double read = 0;
      for (const OutlineAccess& access : accesses)
        if (!access.write && access.view == source) read += bytes_of(access) / share.steps();
      return read;
    });
    if (operations) {
      *to.row.cost.operations += *operations * share.steps() * of_step;
    } else {
      to.row.cost.operations.reset();
    }
  }

  const SessionReader& reader_;
  const SessionIndex& index_;
  const TraceMatcher matcher_;
  const RooflineBy by_;
  std::vector<std::shared_ptr<const GraphTemplate>> graphs_;  // per series
  std::vector<std::vector<std::uint32_t>> group_of_op_;       // per series; kNone: does not count
  std::vector<RoofGroup> groups_;
};

// Limits the memory: the times that are kept at once.
constexpr std::size_t kMaxRoofTimes = std::size_t{1} << 23;

// Sets the times of the groups: of the steps that count and in which the group has time.
std::expected<void, TraceError> add_times(const SessionIndex& index, const TraceFilter& filter,
                                          const TimedSteps& timed, RoofGroups& groups,
                                          const ContinueCheck& keep_going) {
  StepShares shares(index, filter.phase, StepShares::Times::Yes);
  std::vector<RoofGroup>& all = groups.all();
  const std::size_t at_once =
      std::max<std::size_t>(1, kMaxRoofTimes / std::max<std::size_t>(1, timed.used));
  std::vector<Ns> whole;  // of all groups
  std::vector<double> sums(all.size());
  for (std::size_t from = 0; from < all.size(); from += at_once) {
    const std::size_t to = std::min(all.size(), from + at_once);
    std::vector<std::vector<Ns>> times(to - from);
    StepWindow window = window_of(index, filter);
    const Range<std::uint64_t> steps = window.steps;
    for (std::uint64_t i = steps.from; i < steps.to; ++i) {
      if (i % 16 == 0 && !keep_going()) return std::unexpected(cancelled_error());
      if (!timed.is_used(index, static_cast<std::size_t>(i))) continue;
      window.steps = {i, i + 1};
      std::ranges::fill(sums, 0);
      double total = 0;
      shares.visit(window, [&](const SeriesShare& share) {
        groups.for_each_op(share, [&](std::uint32_t group, std::uint32_t op) {
          // Signed: a damaged file may have negative durations.
          const double ns =
              share.share_of(op) * static_cast<double>(static_cast<std::int64_t>(share.op_ns[op]));
          sums[group] += ns;
          total += ns;
        });
      });
      if (total <= 0) continue;
      if (from == 0) whole.push_back(Ns{std::llround(total)});
      for (std::size_t group = from; group < to; ++group)
        if (sums[group] > 0) times[group - from].push_back(Ns{std::llround(sums[group])});
    }
    const auto total = spread_of(whole);
    for (std::size_t group = from; group < to; ++group) {
      StepTimes& of = all[group].row.times;
      of.steps = static_cast<std::uint32_t>(times[group - from].size());
      const auto spread = spread_of(std::move(times[group - from]));
      if (!spread || !total || total->median.v <= 0) continue;
      of.spread = *spread;
      of.share = static_cast<double>(spread->median.v) / static_cast<double>(total->median.v);
    }
  }
  return {};
}

// Of the last step that counts.
std::uint64_t threads_of(const SessionReader& reader, const SessionIndex& index,
                         const TimedSteps& timed) {
  for (std::size_t i = index.steps().size(); i-- > 0;) {
    if (!timed.is_used(index, i)) continue;
    const auto step = reader.step(StepId{static_cast<std::uint32_t>(i)});
    if (step && step->threads > 0) return step->threads;
    break;
  }
  return index.info().fact_number("context.threads").value_or(0);
}

std::string rate_text(double per_second, const std::string& why, std::string_view known,
                      std::string_view name) {
  if (per_second > 0) return std::string(known);
  return std::format("the {} is not known: {}", name, reason_of(why));
}

std::string bounds_text(const Roofline& of) {
  const MachineBounds& bounds = of.bounds;
  return std::format(
      "Bounds with {}: {}; {}.", counted(of.threads, "thread"),
      rate_text(bounds.read_bandwidth, bounds.no_read_bandwidth,
                std::format("reading {}/s", format_bytes(bounds.read_bandwidth)), "read bandwidth"),
      rate_text(
          bounds.compute_peak, bounds.no_compute_peak,
          std::format("computing {:.3g} billion operations per second", bounds.compute_peak / 1e9),
          "compute peak"));
}

double above_bound(const RooflineRow& row) {
  return std::max(0.0, row.cost.ns - row.verdict.bound_ns.value_or(0));
}

std::optional<double> per_second(std::optional<double> amount, double ns) {
  return amount && ns > 0 ? std::optional(std::round(*amount * 1e9 / ns)) : std::nullopt;
}

std::optional<double> positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

const char* to_text(OpLimit limit) {
  constexpr std::array kWords = {"memory_bound", "compute_bound", "overhead", "waiting", "unknown"};
  return kWords[std::to_underlying(limit)];
}

const char* to_text(RooflineBy by) {
  constexpr std::array kWords = {"op", "op_kind"};
  return kWords[std::to_underlying(by)];
}

OpVerdict limit_of(const OpCost& cost, const MachineBounds& bounds) {
  OpVerdict verdict;
  if (cost.other_device) {
    verdict.text = "unknown: the rates of its device are not measured";
    return verdict;
  }
  if (bounds.read_bandwidth > 0) verdict.read_ns = ns_at(cost.memory_bytes, bounds.read_bandwidth);
  verdict.from_cache = cost.memory_bytes > 0 && (bounds.no_read_bandwidth == "small_model" ||
                                                 verdict.read_ns > kFasterThanMemory * cost.ns);
  if (verdict.from_cache) verdict.read_ns.reset();
  if (bounds.compute_peak > 0 && cost.operations)
    verdict.compute_ns = ns_at(*cost.operations, bounds.compute_peak);
  verdict.bound_ns = std::max(verdict.read_ns, verdict.compute_ns);  // nullopt is less
  const double near = kNearBound * cost.ns;
  const bool reads = verdict.read_ns >= near, computes = verdict.compute_ns >= near;
  const std::string why = why_not(cost, bounds, verdict.from_cache);
  verdict.limit = computes && verdict.compute_ns >= verdict.read_ns ? OpLimit::ComputeBound
                  : reads                                           ? OpLimit::MemoryBound
                  : cost.disturbed                                  ? OpLimit::Waiting
                  : why.empty()                                     ? OpLimit::Overhead
                                                                    : OpLimit::Unknown;
  verdict.text = limit_text(cost, verdict, why);
  return verdict;
}

std::expected<Roofline, TraceError> roofline(const SessionReader& reader, const SessionIndex& index,
                                             const RooflineQuery& query,
                                             const ContinueCheck& keep_going) {
  if (auto known = needs_recorded_graphs(index.info(), "how much an op computes"); !known)
    return std::unexpected(known.error());
  TraceFilter filter = query.filter;
  filter.phase = ranked_phase(index, filter);
  Roofline out{
      .by = query.by, .times = timed_steps(index, filter), .bounds = {}, .rows = {}, .text = {}};
  out.threads = threads_of(reader, index, out.times);
  out.bounds = session_bounds(index, out.threads);
  out.text = bounds_text(out);

  RoofGroups groups(reader, index, filter, query.by);
  if (auto added = groups.add_ops(); !added) return std::unexpected(added.error());
  if (const double steps = counted_share(index, filter, *filter.phase); steps > 0)
    StepShares(index, filter.phase, StepShares::Times::No)
        .visit(window_of(index, filter),
               [&](const SeriesShare& share) { groups.add(share, steps); });
  if (auto added = add_times(index, filter, out.times, groups, keep_going); !added)
    return std::unexpected(added.error());

  const bool is_disturbed =
      out.times.uses_disturbed && out.times.verdict && *out.times.verdict != Verdict::Clean;
  for (RoofGroup& group : groups.all()) {
    RooflineRow& row = group.row;
    if (row.times.steps == 0) continue;
    row.cost.ns = static_cast<double>(row.times.spread.median.v);
    if (group.other_bytes > row.executions * static_cast<double>(out.bounds.last_cache))
      row.cost.memory_bytes += group.other_bytes;
    if (is_disturbed) row.cost.disturbed = out.times.verdict;
    row.verdict = limit_of(row.cost, out.bounds);
    out.rows.push_back(std::move(row));
  }
  out.row_count = out.rows.size();
  std::ranges::stable_sort(out.rows, std::ranges::greater(), above_bound);
  const auto first = static_cast<std::size_t>(std::min(query.page.from, out.row_count));
  out.rows.erase(out.rows.begin(), out.rows.begin() + static_cast<std::ptrdiff_t>(first));
  if (out.rows.size() > query.page.limit)
    out.rows.resize(static_cast<std::size_t>(query.page.limit));
  return out;
}

static consteval columns::Enumeration words_of(OpLimit) {
  return columns::words_to("", OpLimit::Unknown);
}

Fields<RooflineRow> fields_of(const RooflineRow*) {
  return Fields<RooflineRow>("RooflineRow")
      .add("name",
           "of an op: its output without the number of the layer. An op of all layers is one "
           "row",
           &RooflineRow::name)
      .add("op_kind", "", &RooflineRow::op_kind)
      .add("component", "", &RooflineRow::component, {.null = "the row is an op type"})
      .add("limit",
           "what limits it. memory_bound, compute_bound: this bound explains at least `near` "
           "of the time. overhead: neither does. waiting: neither does, and the machine "
           "disturbed all steps",
           [](const RooflineRow& row) { return row.verdict.limit; })
      .add("text", "the same as a sentence, with the reason",
           [](const RooflineRow& row) { return row.verdict.text; })
      .add("above_bound_ns", "time above the bound: at most this can be saved",
           [](const RooflineRow& row) -> std::optional<Ns> {
             if (!row.verdict.bound_ns) return std::nullopt;
             return Ns{std::llround(above_bound(row))};
           },
           {.null = "no bound is known"})
      .add("step_ns", "time in one step", [](const RooflineRow& row) { return row.times.spread; })
      .add("steps", "number of normal steps in which it has time",
           [](const RooflineRow& row) { return row.times.steps; })
      .add("share", "the median as a part of the median of everything that passes the filter",
           [](const RooflineRow& row) { return row.times.share; })
      .add("bound_ns", "the larger one of the bounds that are known",
           [](const RooflineRow& row) { return row.verdict.bound_ns; },
           {.unit = "ns", .null = "no bound is known"})
      .add("read_bound_ns", "time in which the machine reads `memory_bytes`",
           [](const RooflineRow& row) { return row.verdict.read_ns; },
           {.unit = "ns",
            .null = "not known, or no bound: the bytes come from caches of the processor"})
      .add("compute_bound_ns", "time in which the machine computes `operations`",
           [](const RooflineRow& row) { return row.verdict.compute_ns; },
           {.unit = "ns", .null = "not known"})
      .add("executions", "in one step; this and the following are of the mean step",
           &RooflineRow::executions)
      .add("bytes", "read and written", &RooflineRow::bytes, {.unit = "bytes"})
      .add("memory_bytes",
           "of weights and caches, and of other values if one execution has more of them than "
           "fit into the last cache of the processor",
           [](const RooflineRow& row) { return row.cost.memory_bytes; }, {.unit = "bytes"})
      .add("operations", "arithmetic operations, from the shapes",
           [](const RooflineRow& row) { return row.cost.operations; },
           {.null = "not known for this op type"})
      .add("operations_per_byte", "of `memory_bytes`",
           [](const RooflineRow& row) -> std::optional<double> {
             if (!row.cost.operations || row.cost.memory_bytes <= 0) return std::nullopt;
             return *row.cost.operations / row.cost.memory_bytes;
           },
           {.null = "the operations are not known, or no bytes come from memory"})
      .add("operations_per_second", "operations by the median of the time",
           [](const RooflineRow& row) { return per_second(row.cost.operations, row.cost.ns); },
           {.null = "not known for this op type"})
      .add("bytes_per_second", "bytes by the median of the time",
           [](const RooflineRow& row) { return per_second(row.bytes, row.cost.ns); },
           {.unit = "bytes", .null = "there is no time"});
}

Fields<Roofline> fields_of(const Roofline*) {
  return Fields<Roofline>("Roofline")
      .add("by", "", &Roofline::by)
      .add("text", "the bounds as a sentence", &Roofline::text)
      .add("read_bandwidth", "bytes per second that the machine reads with these threads",
           [](const Roofline& of) { return positive(of.bounds.read_bandwidth); },
           {.unit = "bytes", .null = "not known"})
      .add("compute_peak",
           "operations per second of the fastest matrix multiplication with these threads",
           [](const Roofline& of) { return positive(of.bounds.compute_peak); },
           {.null = "not known"})
      .add("threads", "that evaluated the steps; 0: not recorded", &Roofline::threads)
      .add("near", "the part of the time from which on a bound limits an op",
           [](const Roofline&) { return kNearBound; })
      .add("times", "the steps that the times are of", &Roofline::times)
      .add("total", kTotalRows, &Roofline::row_count)
      .add("rows",
           "of one phase; what can be saved first: the most time above the bound, or "
           "all time without a bound",
           &Roofline::rows);
}

}  // namespace tt
