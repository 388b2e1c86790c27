#include "analysis/aggregate/breakdown.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/axis_words.h"
#include "analysis/aggregate/fault_walk.h"
#include "analysis/aggregate/series_layout.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

constexpr std::array kParts = {std::pair{Value::BytesRead, &TraceSums::bytes_read},
                               std::pair{Value::BytesWritten, &TraceSums::bytes_written},
                               std::pair{Value::Reads, &TraceSums::reads},
                               std::pair{Value::Writes, &TraceSums::writes},
                               std::pair{Value::Executions, &TraceSums::executions},
                               std::pair{Value::Time, &TraceSums::time_ns},
                               std::pair{Value::Faults, &TraceSums::faults}};

// A longer session must be queried by ranges of tokens.
constexpr std::size_t kMaxRows = std::size_t{1} << 20;

constexpr std::size_t kFaults = kParts.size() - 1;  // not handled by SeriesLayout
constexpr std::size_t kTime = kFaults - 1;

using Amounts = std::array<double, kFaults>;  // per value, in the order of kParts

void add(BreakdownRow& row, Phase phase, std::size_t value, double amount) {
  const auto part = kParts[value].second;
  row.all.*part += amount;
  if (phase == Phase::Prompt) row.prompt.*part += amount;
  if (phase == Phase::Generate) row.generate.*part += amount;
}

// Sums what passes a filter per row of an axis that is not temporal; without an axis, only
// the total.
class RowSummer {
 public:
  RowSummer(const SessionIndex& index, const TraceMatcher& matcher, const AxisRows* rows = nullptr)
      : matcher_(matcher), layouts_(index.series().size()), cells_(1) {
    if (rows == nullptr) return;
    const auto size = static_cast<std::uint32_t>(std::min<std::int64_t>(rows->size(), kMaxRows));
    axis_ = {rows, AxisScale({0, rows->size()}, size)};
    cells_.resize(axis_.scale.pixels());
  }

  // Returns the total of one value; cells() has the sum per row until the next call.
  double sum(const SeriesShare& share, std::size_t value) {
    std::ranges::fill(cells_, 0);
    double total = 0;
    layout_of(share, value).add(share, cells_, total);
    return total;
  }
  std::span<const double> cells() const { return cells_; }

  SeriesLayout& layout_of(const SeriesShare& share, std::size_t value) {
    auto& layout = layouts_[share.number][value];
    if (!layout)
      layout = std::make_unique<SeriesLayout>(share.series, axis_, PlacedAxis{},
                                              kParts[value].first, matcher_, tally_);
    return *layout;
  }

 private:
  const TraceMatcher& matcher_;
  PartTally tally_;
  PlacedAxis axis_;
  std::vector<std::array<std::unique_ptr<SeriesLayout>, kFaults>> layouts_;
  std::vector<double> cells_;
};

// The values of one step of a series, except time, as a function of the number of parts of
// its rules. The fixed terms are computed once per series.
class StepProfile {
 public:
  StepProfile(RowSummer& summer, const SeriesShare& share) {
    for (std::size_t v = 0; v < kTime; ++v) {
      for (const SeriesLayout::Merged& of : summer.layout_of(share, v).merged()) {
        if (of.rule == kNone) {
          fixed_[v] += of.unit;
          continue;
        }
        auto rule = std::ranges::find(rules_, of.rule, &OfRule::rule);
        if (rule == rules_.end()) rule = rules_.insert(rule, {.rule = of.rule});
        (of.parts ? rule->per_part : rule->if_any)[v] += of.unit;
      }
    }
  }
  // For complete steps, or for the same share of all ops of the steps.
  Amounts of(const SeriesShare& share) const {
    Amounts amounts{};
    for (std::size_t v = 0; v < kTime; ++v) amounts[v] = fixed_[v] * share.steps();
    for (const OfRule& of : rules_) {
      const double parts = share.parts(of.rule), hits = share.hits(of.rule);
      if (parts == 0) continue;
      for (std::size_t v = 0; v < kTime; ++v)
        amounts[v] += parts * of.per_part[v] + hits * of.if_any[v];
    }
    for (std::size_t v = 0; v < kTime; ++v) amounts[v] *= share.share;
    return amounts;
  }

 private:
  struct OfRule {
    std::uint32_t rule = 0;
    Amounts per_part{}, if_any{};
  };
  Amounts fixed_{};
  std::vector<OfRule> rules_;
};

// Fills all rows of `rows`, or the single total row if it is null.
Status sum_up(const SessionIndex& index, const TraceFilter& filter, const AxisRows* rows,
              const TraceMatcher& matcher, std::span<BreakdownRow> out,
              const ContinueCheck& keep_going) {
  RowSummer summer(index, matcher, rows);
  StepShares shares(index, filter.phase, StepShares::Times::Yes);
  shares.visit(window_of(index, filter), [&](const SeriesShare& share) {
    for (std::size_t v = 0; v < kFaults; ++v) {
      const double all = summer.sum(share, v);
      if (rows == nullptr) {
        add(out[0], share.series.phase, v, all);
        continue;
      }
      for (std::size_t i = 0; i < out.size(); ++i)
        if (summer.cells()[i] != 0) add(out[i], share.series.phase, v, summer.cells()[i]);
    }
  });
  return for_each_fault(
      index, window_of(index, filter), filter.phase, matcher, keep_going,
      [&](const FaultShare& share) {
        const Range<std::int64_t> row =
            rows == nullptr ? Range<std::int64_t>{0, 1} : rows->rows_of(share.series, share.entry);
        const double part = share.count / static_cast<double>(row.to - row.from);
        for (std::int64_t i = row.from; i < row.to && std::cmp_less(i, out.size()); ++i)
          add(out[static_cast<std::size_t>(i)], share.step.phase, kFaults, part);
      });
}

// Rows of a temporal axis: steps, or tokens with equal shares of their step.
class TemporalRows {
 public:
  TemporalRows(const SessionIndex& index, const BreakdownQuery& query)
      : index_(index),
        query_(query),
        matcher_(index, query.filter),
        summer_(index, matcher_),
        profiles_(index.series().size()),
        // The index has the total op time of each step.
        uses_step_times_(!query.filter.about_ops() && !query.filter.about_accesses()),
        shares_(index, query.filter.phase,
                uses_step_times_ ? StepShares::Times::No : StepShares::Times::Yes) {}

  std::expected<std::vector<BreakdownRow>, TraceError> rows(const ContinueCheck& keep_going) {
    StepWindow window = window_of(index_, query_.filter);
    const Range<std::uint64_t> steps = window.steps;
    if (steps.from < steps.to) rows_.reserve(static_cast<std::size_t>(steps.to - steps.from));
    for (std::uint64_t i = steps.from; i < steps.to; ++i) {
      if (i % 1024 == 0 && !keep_going()) return std::unexpected(cancelled_error());
      window.steps = {i, i + 1};
      shares_.visit(window, [&](const SeriesShare& share) { add_step(i, share); });
      if (rows_.size() >= kMaxRows) return too_many();
    }
    if (auto added = add_faults(keep_going); !added) return std::unexpected(added.error());
    if (rows_.size() >= kMaxRows) return too_many();
    return in_order();
  }

 private:
  static std::unexpected<TraceError> too_many() {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        "The session has too many steps or tokens for one row each. Select a smaller range."});
  }

  // The row keys of a step.
  Range<std::uint64_t> keys_of(std::uint64_t id) const {
    if (query_.by != Axis::Token) return {id, id + 1};
    const IndexedStep& step = index_.steps()[static_cast<std::size_t>(id)];
    Range<std::uint64_t> keys{token_begin(step), token_end(step)};
    if (const auto& asked = query_.filter.tokens)
      keys = {std::max(keys.from, asked->from), std::min(keys.to, asked->to)};
    return keys;
  }

  // Adds the faults of each step as a separate row; in_order() merges rows with equal keys.
  Status add_faults(const ContinueCheck& keep_going) {
    std::map<std::uint32_t, double> counts;
    const auto walked = for_each_fault(
        index_, window_of(index_, query_.filter), query_.filter.phase, matcher_, keep_going,
        [&](const FaultShare& share) { counts[share.entry.step] += share.count; });
    if (!walked) return walked;
    for (const auto& [id, count] : counts) {
      const Range<std::uint64_t> keys = keys_of(id);
      const double part = count / static_cast<double>(keys.to - keys.from);
      for (std::uint64_t key = keys.from; key < keys.to && rows_.size() < kMaxRows; ++key) {
        rows_.emplace_back().key = static_cast<std::int64_t>(key);
        add(rows_.back(), index_.steps()[id].phase, kFaults, part);
      }
    }
    return {};
  }

  void add_step(std::uint64_t id, const SeriesShare& share) {
    const IndexedStep& step = index_.steps()[static_cast<std::size_t>(id)];
    const Amounts amounts = amounts_of(share, step);
    const Range<std::uint64_t> keys = keys_of(id);
    const double part = 1.0 / static_cast<double>(keys.to - keys.from);
    for (std::uint64_t key = keys.from; key < keys.to && rows_.size() < kMaxRows; ++key) {
      if (rows_.empty() || rows_.back().key != static_cast<std::int64_t>(key))
        rows_.emplace_back().key = static_cast<std::int64_t>(key);
      for (std::size_t v = 0; v < kFaults; ++v) add(rows_.back(), step.phase, v, amounts[v] * part);
    }
  }

  Amounts amounts_of(const SeriesShare& share, const IndexedStep& step) {
    Amounts amounts{};
    if (share.op_shares.empty()) {
      auto& profile = profiles_[share.number];
      if (!profile) profile.emplace(summer_, share);
      amounts = profile->of(share);
    } else {
      for (std::size_t v = 0; v < kTime; ++v) amounts[v] = summer_.sum(share, v);
    }
    amounts[kTime] = share.op_ns.empty()
                         ? share.share * static_cast<double>(static_cast<std::int64_t>(step.op_ns))
                         : summer_.sum(share, kTime);
    return amounts;
  }

  // Tokens may be out of order, and a token may be evaluated in several steps.
  std::vector<BreakdownRow> in_order() {
    if (!std::ranges::is_sorted(rows_, std::less_equal{}, &BreakdownRow::key)) rows_ = merged();
    return std::move(rows_);
  }
  std::vector<BreakdownRow> merged() {
    std::ranges::stable_sort(rows_, {}, &BreakdownRow::key);
    std::vector<BreakdownRow> out;
    for (const BreakdownRow& row : rows_) {
      if (out.empty() || out.back().key != row.key) {
        out.push_back(row);
        continue;
      }
      out.back().all += row.all;
      out.back().prompt += row.prompt;
      out.back().generate += row.generate;
    }
    return out;
  }

  const SessionIndex& index_;
  const BreakdownQuery& query_;
  const TraceMatcher matcher_;
  RowSummer summer_;
  std::vector<std::optional<StepProfile>> profiles_;  // per series
  const bool uses_step_times_;
  StepShares shares_;
  std::vector<BreakdownRow> rows_;  // in the order of the steps
};

// Rows of an axis that is not temporal.
std::expected<std::vector<BreakdownRow>, TraceError> places(const SessionIndex& index,
                                                            const BreakdownQuery& query,
                                                            const ContinueCheck& keep_going) {
  const TraceMatcher matcher(index, query.filter);
  const AxisRows axis(index, query.by, matcher, query.filter.phase);
  std::vector<BreakdownRow> rows(axis.names().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].key = axis.keys()[i];
    rows[i].name = axis.names()[i];
  }
  return sum_up(index, query.filter, &axis, matcher, rows, keep_going).transform([&] {
    return std::move(rows);
  });
}

std::expected<BreakdownRow, TraceError> total(const SessionIndex& index, const TraceFilter& filter,
                                              const ContinueCheck& keep_going) {
  BreakdownRow row;
  row.name = "total";
  return sum_up(index, filter, nullptr, TraceMatcher(index, filter), std::span(&row, 1), keep_going)
      .transform([&] { return std::move(row); });
}

// The indices of the rows in sorted order; a stable sort. Sorts indices because rows are
// large.
template <class ValueOf>
std::vector<std::size_t> sorted_indices(const std::vector<BreakdownRow>& rows, Order<Value> order,
                                        ValueOf value_of) {
  std::vector<std::pair<double, std::size_t>> sort_keys;
  sort_keys.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double sort_key = value_of(rows[i]);
    sort_keys.emplace_back(order.descending ? -sort_key : sort_key, i);
  }
  std::ranges::sort(sort_keys);
  return {std::from_range, sort_keys | std::views::values};
}

template <class T>
std::span<T> on_page(std::vector<T>& whole, PageRange page) {
  const auto from = std::min<std::uint64_t>(page.from, whole.size());
  return std::span(whole).subspan(from, std::min<std::uint64_t>(page.limit, whole.size() - from));
}

// Tolerance for rounding a share of the rows: 0.07 is not exactly 7 %, and the error must not
// change the number of rows.
constexpr double kRoundingTolerance = 4 * std::numeric_limits<double>::epsilon();
std::size_t rounded_up(double rows) {
  return static_cast<std::size_t>(std::ceil(rows * (1 - kRoundingTolerance)));
}
std::size_t rounded_down(double rows) {
  return static_cast<std::size_t>(std::floor(rows * (1 + kRoundingTolerance)));
}

// All rows that are not zero, in natural order. Rows of a temporal axis have no name yet.
std::expected<std::vector<BreakdownRow>, TraceError> rows_of(const SessionIndex& index,
                                                             const BreakdownQuery& query,
                                                             const ContinueCheck& keep_going) {
  auto rows = is_temporal(query.by) ? TemporalRows(index, query).rows(keep_going)
                                    : places(index, query, keep_going);
  if (rows) std::erase_if(*rows, [](const BreakdownRow& row) { return row.all == TraceSums{}; });
  return rows;
}

// What rows are ranked by. `by_step`: times are those of a step; a row without one is last.
auto ranked_by(Value value, bool by_step) {
  return [=](const BreakdownRow& row) {
    if (!by_step) return row.all.of(value);
    return row.step ? static_cast<double>(row.step->spread.median.v) : 0.0;
  };
}

void name(std::span<BreakdownRow> rows, Axis by) {
  if (!is_temporal(by)) return;
  for (BreakdownRow& row : rows) row.name = std::to_string(row.key);
}

}  // namespace

double TraceSums::of(Value value) const {
  if (value == Value::Touched) return bytes();
  if (value == Value::Accesses) return accesses();
  for (const auto& [of, part] : kParts)
    if (of == value) return this->*part;
  return 0;
}

TraceSums& TraceSums::operator+=(const TraceSums& other) {
  for (const auto& [value, part] : kParts) this->*part += other.*part;
  return *this;
}

std::vector<std::int64_t> keys_of(std::span<const BreakdownRow> rows) {
  return {std::from_range, rows | std::views::transform(&BreakdownRow::key)};
}

double counted_share(const SessionIndex& index, TraceFilter filter, Phase phase) {
  filter.phase = phase;
  double steps = 0;
  StepShares(index, phase, StepShares::Times::No)
      .visit(window_of(index, filter),
             [&](const SeriesShare& share) { steps += share.steps() * share.share; });
  return steps;
}

namespace {

// Sets the rates of rows whose times are set.
void set_rates(const SessionIndex& index, const TraceFilter& filter, std::span<BreakdownRow> rows) {
  const Phase phase = ranked_phase(index, filter);
  const double steps = counted_share(index, filter, phase);
  for (BreakdownRow& row : rows) {
    if (!row.step || row.step->spread.median.v <= 0 || steps <= 0) continue;
    const TraceSums& sums = phase == Phase::Generate ? row.generate
                            : phase == Phase::Prompt ? row.prompt
                                                     : row.all;
    row.step->bytes_per_second =
        sums.bytes() / steps * 1e9 / static_cast<double>(row.step->spread.median.v);
  }
}

}  // namespace

std::expected<std::optional<StepTimes>, TraceError> add_step_times(
    const SessionIndex& index, Axis by, const TraceFilter& filter, std::span<BreakdownRow> rows,
    const ContinueCheck& keep_going) {
  const std::array asked = {KeysOfAxis{.by = by, .keys = keys_of(rows)}};
  const auto times = step_times(index, asked, filter, keep_going);
  if (!times) return std::unexpected(times.error());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].step = times->rows.front()[i];
  set_rates(index, filter, rows);
  return times->total;
}

TraceSums TraceSums::operator/(double by) const {
  TraceSums out;
  for (const auto& [value, part] : kParts) out.*part = this->*part / by;
  return out;
}

std::expected<Breakdown, TraceError> breakdown(const SessionIndex& index,
                                               const BreakdownQuery& query,
                                               const ContinueCheck& keep_going) {
  Breakdown out{.by = query.by, .row_count = 0, .rows = {}, .total = {}, .disk = {}, .buffer = {}};
  out.damaged_steps = static_cast<std::uint32_t>(index.damaged().size());
  auto rows = rows_of(index, query, keep_going);
  if (!rows) return std::unexpected(rows.error());
  out.row_count = rows->size();
  const bool has_steps = query.step_times && !is_temporal(query.by);
  const bool by_step = has_steps && query.order && query.order->by == Value::Time;
  std::optional<StepTimes> total_step;
  if (by_step) {
    auto added = add_step_times(index, query.by, query.filter, *rows, keep_going);
    if (!added) return std::unexpected(added.error());
    total_step = *added;
  }
  if (query.order) {
    auto places = sorted_indices(*rows, *query.order, ranked_by(query.order->by, by_step));
    for (const std::size_t i : on_page(places, query.page))
      out.rows.push_back(std::move((*rows)[i]));
  } else if (on_page(*rows, query.page).size() == rows->size()) {
    out.rows = *std::move(rows);
  } else {
    std::ranges::move(on_page(*rows, query.page), std::back_inserter(out.rows));
  }
  name(out.rows, query.by);
  auto all = total(index, query.filter, keep_going);
  if (!all) return std::unexpected(all.error());
  out.total = *std::move(all);
  out.left_out_steps = index.left_out();
  if (query.step_times) {
    out.times = timed_steps(index, query.filter);
    if (!by_step) {
      auto added = has_steps ? add_step_times(index, query.by, query.filter, out.rows, keep_going)
                             : add_step_times(index, Axis::All, query.filter, {}, keep_going);
      if (!added) return std::unexpected(added.error());
      total_step = *added;
    }
    out.total.step = total_step;
    set_rates(index, query.filter, {&out.total, 1});
  }
  TraceFilter mapped = query.filter;
  if (!mapped.source || *mapped.source == Source::Disk) {
    mapped.source = Source::Disk;
    const auto disk = total(index, mapped, keep_going);
    if (!disk) return std::unexpected(disk.error());
    out.disk = disk->all;
  }
  for (const auto& [value, part] : kParts) out.buffer.*part = out.total.all.*part - out.disk.*part;
  return out;
}

namespace {

// The rows' values, descending, and the rows that are hot (at the start) and cold (at the end).
struct HeatLimits {
  std::size_t hot = 0, cold = 0;
  std::size_t hot_tie = 0, cold_tie = 0;  // rows of the group that the limit would divide; 0: none
};

// The group of equal values around the boundary before `at`; empty if the boundary divides none.
std::pair<std::size_t, std::size_t> tie_at(std::span<const double> values, std::size_t at) {
  if (at == 0 || at >= values.size() || values[at - 1] != values[at]) return {at, at};
  const auto [first, last] = std::ranges::equal_range(values, values[at], std::greater());
  return {static_cast<std::size_t>(first - values.begin()),
          static_cast<std::size_t>(last - values.begin())};
}

HeatLimits heat_limits(std::span<const double> values, const HotQuery& query) {
  const auto count = static_cast<double>(values.size());
  const std::size_t hot = rounded_up(count * query.hot_share);
  const std::size_t cold = rounded_down(count * query.cold_share);
  const auto hot_tie = tie_at(values, hot), cold_tie = tie_at(values, values.size() - cold);
  return {.hot = hot_tie.first,
          .cold = values.size() - cold_tie.second,
          .hot_tie = hot_tie.second - hot_tie.first,
          .cold_tie = cold_tie.second - cold_tie.first};
}

template <class ValueOf>
std::vector<double> descending_values(const std::vector<BreakdownRow>& rows, ValueOf value_of) {
  std::vector<double> values;
  for (const BreakdownRow& row : rows) values.push_back(value_of(row));
  std::ranges::sort(values, std::greater());
  return values;
}

std::size_t largest_group(std::span<const double> sorted) {
  std::size_t largest = 0;
  for (std::size_t from = 0, to = 0; from < sorted.size(); from = to) {
    while (to < sorted.size() && sorted[to] == sorted[from]) ++to;
    largest = std::max(largest, to - from);
  }
  return largest;
}

// The value to sort by if the query has none, and why.
std::pair<Value, std::string> value_that_differs(const std::vector<BreakdownRow>& rows) {
  std::string note;
  for (const Value value : {Value::Accesses, Value::Touched}) {
    const std::size_t equal = largest_group(
        descending_values(rows, [&](const BreakdownRow& row) { return row.all.of(value); }));
    if (rows.size() < 2 || 2 * equal <= rows.size()) {
      if (!note.empty()) note += std::format(": sorted by {}.", to_text(value));
      return {value, std::move(note)};
    }
    note += note.empty() ? std::format("{} of {} rows have equally many {}", equal, rows.size(),
                                       to_text(value))
                         : std::format(", {} equally many {}", equal, to_text(value));
  }
  return {Value::Time, note + ": sorted by time."};
}

void add_ties(const HeatLimits& limits, const HotQuery& query, Value value, std::size_t rows,
              std::string& note) {
  const auto add = [&](Heat heat, double share, std::size_t tie) {
    if (tie == 0) return;
    note += std::format(
        "{}The limit of {} ({:.3g} %) would divide {} rows with equal {}: they are "
        "warm.",
        note.empty() ? "" : " ", to_text(heat), 100 * share, tie, to_text(value));
  };
  if (rows > 0 && (limits.hot_tie == rows || limits.cold_tie == rows)) {
    note += std::format("{}All {} rows have equal {}: none is hot or cold.",
                        note.empty() ? "" : " ", rows, to_text(value));
    return;
  }
  add(Heat::Hot, query.hot_share, limits.hot_tie);
  add(Heat::Cold, query.cold_share, limits.cold_tie);
}

}  // namespace

const char* to_text(Heat heat) {
  constexpr std::array kWords = {"hot", "warm", "cold"};
  return kWords[std::to_underlying(heat)];
}

// Sums of the tensors that are not weights.
std::expected<std::map<TensorKind, TraceSums>, TraceError> other_kinds(
    const SessionIndex& index, TraceFilter filter, const ContinueCheck& keep_going) {
  std::map<TensorKind, TraceSums> others;
  for (const TensorKind kind : {TensorKind::Input, TensorKind::Kv, TensorKind::Intermediate}) {
    filter.kind = kind;
    const auto sums =
        breakdown(index, {.by = Axis::All, .filter = filter, .order = {}}, keep_going);
    if (!sums) return std::unexpected(sums.error());
    if (sums->total.all != TraceSums{}) others[kind] = sums->total.all;
  }
  return others;
}

std::expected<HotCold, TraceError> hot_cold(const SessionIndex& index, const HotQuery& question,
                                            const ContinueCheck& keep_going) {
  HotQuery query = question;
  std::map<TensorKind, TraceSums> others;
  if (query.by == Axis::Tensor && !query.filter.kind && !query.filter.source &&
      query.filter.tensor.empty()) {
    auto sums = other_kinds(index, query.filter, keep_going);
    if (!sums) return std::unexpected(sums.error());
    others = *std::move(sums);
    query.filter.kind = TensorKind::Weight;
  }
  const BreakdownQuery all{.by = query.by, .filter = query.filter};
  auto rows = rows_of(index, all, keep_going);
  if (!rows) return std::unexpected(rows.error());
  HotCold out{.by = query.by,
              .value = Value::Accesses,
              .row_count = rows->size(),
              .rows = {},
              .classes = {},
              .left_out_steps = index.left_out(),
              .kind = query.filter.kind,
              .other_kinds = std::move(others),
              .note = {},
              .times = std::nullopt};
  if (query.value) {
    out.value = *query.value;
  } else {
    std::tie(out.value, out.note) = value_that_differs(*rows);
  }
  if (rows->empty() && question.filter != TraceFilter{}) {
    out.note = kNothingMatches;
    return out;
  }
  const bool by_step = out.value == Value::Time && !is_temporal(query.by);
  if (by_step || query.step_times) out.times = timed_steps(index, query.filter);
  if (by_step) {
    if (auto added = add_step_times(index, query.by, query.filter, *rows, keep_going); !added)
      return std::unexpected(added.error());
  }
  const auto value_of = ranked_by(out.value, by_step);
  const HeatLimits limits = heat_limits(descending_values(*rows, value_of), query);
  add_ties(limits, query, out.value, rows->size(), out.note);
  const auto heat_of = [&](std::size_t rank) {
    return rank < limits.hot                    ? Heat::Hot
           : rank >= rows->size() - limits.cold ? Heat::Cold
                                                : Heat::Warm;
  };
  const auto size_of = [&](const BreakdownRow& row) {
    return query.by == Axis::Tensor
               ? index.names().tensors()[static_cast<std::size_t>(row.key)].size
               : Bytes{};
  };
  auto places = sorted_indices(*rows, Order<Value>{.by = out.value, .descending = true}, value_of);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const BreakdownRow& row = (*rows)[places[rank]];
    HotCold::Class& of = out.classes[std::to_underlying(heat_of(rank))];
    ++of.rows;
    of.size += size_of(row);
    of.sums += row.all;
    if (by_step) of.step = of.step + Ns{static_cast<std::int64_t>(value_of(row))};
  }
  std::vector<BreakdownRow> shown;
  for (const std::size_t i : on_page(places, query.page)) shown.push_back(std::move((*rows)[i]));
  name(shown, query.by);
  if (query.step_times && !by_step && !is_temporal(query.by)) {
    if (auto added = add_step_times(index, query.by, query.filter, shown, keep_going); !added)
      return std::unexpected(added.error());
  }
  for (std::size_t rank = query.page.from; BreakdownRow& row : shown) {
    const Bytes size = size_of(row);
    out.rows.push_back({.row = std::move(row), .heat = heat_of(rank++), .size = size});
  }
  return out;
}

static constexpr const char
    *kTimesMeaning =
        "the steps that the times per step are of. Rows that are ranked by time are "
        "ranked by their median",
    *kNoStepTimes = "the rows have no times per step";

Fields<TraceSums> fields_of(const TraceSums*) {
  return Fields<TraceSums>("TraceSums")
      .add("bytes_read", "", &TraceSums::bytes_read, {.unit = "bytes"})
      .add("bytes_written", "", &TraceSums::bytes_written, {.unit = "bytes"})
      .add("reads", "", &TraceSums::reads)
      .add("writes", "", &TraceSums::writes)
      .add("executions", "number of executed ops", &TraceSums::executions)
      .add("time_ns", "duration of the ops", &TraceSums::time_ns, {.unit = "ns"})
      .add("faults", "major page faults", &TraceSums::faults)
      .add("bytes_per_second", "bytes read and written per second",
           [](const TraceSums& sums) -> std::optional<double> {
             if (sums.time_ns <= 0) return std::nullopt;
             return std::round(sums.bytes_per_second());
           },
           {.unit = "bytes", .null = "no times were recorded"});
}

static consteval columns::Enumeration words_of(Heat) { return columns::words_to("", Heat::Cold); }

static Fields<StepTimes> fields_of(const StepTimes*) {
  return Fields<StepTimes>()
      .include(&StepTimes::spread)
      .add("steps", "number of normal steps in which the row has time", &StepTimes::steps)
      .add("per_token",
           "time per token: the median divided by the tokens of a step, if all timed steps have "
           "equally many tokens (`times.same_tokens`); else the sum over these steps divided by "
           "their tokens",
           &StepTimes::per_token)
      .add("share",
           "the median as a part of the median of everything that passes the filter "
           "(`sums.step_ns`). The shares of all rows need not add up to 1",
           &StepTimes::share)
      .add("bytes_per_second",
           "bytes read and written in the mean step of the phase, divided by the median",
           [](const StepTimes& of) { return std::round(of.bytes_per_second); }, {.unit = "bytes"});
}

Fields<TimedSteps> fields_of(const TimedSteps*) {
  return Fields<TimedSteps>("TimedSteps")
      .add("phase", "", &TimedSteps::phase)
      .add("steps", "number of these steps", &TimedSteps::used)
      .add("tokens", "that these steps evaluate", &TimedSteps::tokens)
      .add("same_tokens", "whether each of these steps evaluates equally many tokens",
           &TimedSteps::same_tokens)
      .add("learned", "steps that are left out: their graph was new", &TimedSteps::learned)
      .add("interrupted", "steps that are left out: dropped, aborted, or not clean with clean=true",
           &TimedSteps::interrupted)
      .add("first", "steps that are left out: the first of the session", &TimedSteps::first)
      .add("disturbed", "steps that are left out: their verdict is not clean",
           &TimedSteps::disturbed)
      .add("verdict", "of these steps", &TimedSteps::verdict, {.null = "not recorded"})
      .add("text", "the same as a sentence", [](const TimedSteps& of) { return to_text(of); });
}

static Fields<HotCold::Class> fields_of(const HotCold::Class*) {
  return Fields<HotCold::Class>("HeatClass")
      .add("rows", "", &HotCold::Class::rows)
      .add("size_bytes", "size of the tensors; 0 if the rows are not tensors",
           &HotCold::Class::size)
      .add("sums", "", &HotCold::Class::sums)
      .add("step_ns", "sum of the medians of the rows, if they are ranked by time per step; else 0",
           &HotCold::Class::step);
}

static Fields<HotCold::Row> fields_of(const HotCold::Row*) {
  return Fields<HotCold::Row>()
      .include(&HotCold::Row::row)
      .add("heat", "", &HotCold::Row::heat)
      .add("size_bytes", "", &HotCold::Row::size);
}

Fields<BreakdownRow> fields_of(const BreakdownRow*) {
  return Fields<BreakdownRow>("BreakdownRow")
      .add("name", "", &BreakdownRow::name)
      .add("all", "", &BreakdownRow::all)
      .add("prompt", "", &BreakdownRow::prompt)
      .add("generate", "", &BreakdownRow::generate)
      .add_optional("step_ns",
                    "time of the row in one step; only with step_times=true, and only if the "
                    "row has time in a normal step",
                    &BreakdownRow::step);
}

Fields<Breakdown> fields_of(const Breakdown*) {
  return Fields<Breakdown>("Breakdown")
      .add("by", "", &Breakdown::by, {.words = &kRowAxes})
      .add("total", kTotalRows, &Breakdown::row_count)
      .add("rows", "", &Breakdown::rows)
      .add("sums", "sums of all rows", &Breakdown::total)
      .add("disk", "accesses with the memory source disk", &Breakdown::disk)
      .add("buffer", "accesses with any other memory source", &Breakdown::buffer)
      .add("damaged_steps", kDamagedSteps, &Breakdown::damaged_steps)
      .add("left_out_steps", kLeftOutSteps, &Breakdown::left_out_steps)
      .add("times", kTimesMeaning, &Breakdown::times, {.null = kNoStepTimes});
}

Fields<HotCold> fields_of(const HotCold*) {
  return Fields<HotCold>("HotCold")
      .add("by", "", &HotCold::by, {.words = &kRowAxes})
      .add("value", "", &HotCold::value)
      .add("kind",
           "of the tensors that are rows. With by=tensor and no condition on kind, source or "
           "name of tensors: weight",
           &HotCold::kind, {.null = "any"})
      .add("other_kinds",
           "sums by kind of the tensors that are not rows, if the rows are weights because no "
           "condition says otherwise",
           &HotCold::other_kinds)
      .add("note",
           "which equal values decided the value that rows are sorted by, and which groups of "
           "equal rows a limit would have divided",
           [](const HotCold& hot) {
             return hot.note.empty() ? std::nullopt : std::optional(hot.note);
           },
           {.null = "none"})
      .add("times", kTimesMeaning, &HotCold::times, {.null = kNoStepTimes})
      .add("total", kTotalRows, &HotCold::row_count)
      .add("classes", "",
           [](const HotCold& hot) {
             std::map<Heat, HotCold::Class> classes;
             for (std::size_t i = 0; i < hot.classes.size(); ++i)
               classes.emplace(static_cast<Heat>(i), hot.classes[i]);
             return classes;
           },
           {.names = fields::list_of(words_of(Heat{}))})
      .add("left_out_steps", kLeftOutSteps, &HotCold::left_out_steps)
      .add("rows", "", &HotCold::rows);
}

}  // namespace tt
