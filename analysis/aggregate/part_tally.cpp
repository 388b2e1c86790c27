#include "analysis/aggregate/part_tally.h"

#include <algorithm>
#include <array>
#include <bit>

#include "analysis/common/derived_graphs.h"

namespace tt {

namespace {

// What is kept of the parts of ops; a hostile file has a million parts and thousands of ops.
constexpr std::size_t kMaxCells = std::size_t{4} << 20;

// Appends a count for every n below `limit` with `times(n)` > 0.
template <class Times>
void add_counts(std::size_t limit, Times times, std::vector<PartTally::Count>& counts) {
  for (std::uint32_t n = 0; n < limit; ++n)
    if (const std::uint32_t count = times(n)) counts.push_back({n, count});
}

// The parts of a rule that a step touched, ascending.
template <class Each>
void for_each_number(const Series& series, std::uint32_t rule, std::size_t place, Each each) {
  const OutlineRule& of = series.outline->rules[rule];
  const auto set = series.set_of(of, place);
  for (std::uint32_t w = 0; w < set.size(); ++w)
    for (std::uint64_t word = set[w]; word != 0; word &= word - 1)
      each(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
  if (!of.listed()) return;
  series.for_each_listed(place, [&](std::uint32_t r, std::span<const std::uint32_t> listed) {
    if (r == rule) std::ranges::for_each(listed, each);
  });
}

}  // namespace

void PartTally::select(const Series& series, std::size_t from, std::size_t to) {
  if (series_ == &series && from_ == from && to_ == to) return;
  const std::size_t ops = series.outline->divided_ops.size();
  if (series_ != &series) {  // other ops: the memory of those before is released
    times_ = std::vector<Division>(ops);
    executions_ = std::vector<Division>(ops);
  }
  series_ = &series;
  from_ = from;
  to_ = to;
  counted_ = false;
  cells_ = 0;
  alone_of_.reset();
  listed_of_.reset();
  is_divided_.assign(ops, false);
}

std::span<const PartTally::Count> PartTally::of(std::uint32_t rule) {
  if (!counted_) count();
  counted_ = true;
  return counts_[rule];
}

const PartTally::Division& PartTally::divided(std::uint32_t op, bool time) {
  const std::vector<std::uint32_t>& ops = series_->outline->divided_ops;
  const auto rule_of = [&](std::uint32_t i) { return series_->outline->main_rule(i); };
  const std::uint32_t rule = rule_of(op);
  const auto same = std::ranges::equal_range(ops, rule, {}, rule_of);
  const auto first = static_cast<std::size_t>(same.begin() - ops.begin());
  const auto at = static_cast<std::size_t>(std::ranges::find(same, op) - same.begin());
  if (!is_divided_[first]) {
    const Columns all{.rule = rule, .first_op = first, .first = 0, .count = 1 + same.size()};
    const std::size_t cells = most_parts(rule) * all.count;
    if (cells > kMaxCells - cells_) {
      Columns one = all;
      one.first = time ? 1 + at : 0;
      one.count = 1;
      if (alone_of_ != one) divide(one, std::array{&alone_});
      alone_of_ = one;
      return alone_;
    }
    std::vector<Division*> out{&executions_[first]};
    for (std::size_t i = 0; i < same.size(); ++i) out.push_back(&times_[first + i]);
    divide(all, out);
    cells_ += cells;
    is_divided_[first] = true;
  }
  return time ? times_[first + at] : executions_[first];
}

// In any range of steps.
std::size_t PartTally::most_parts(std::uint32_t rule) const {
  const OutlineRule& of = series_->outline->rules[rule];
  if (of.words != 0) return std::size_t{of.words} * 64;
  return std::min(series_->numbers.size(),
                  static_cast<std::size_t>(std::max<std::int64_t>(0, of.rule.limit)));
}

// Lists the parts of a step and computes their shares.
void PartTally::divide_step(const Columns& columns, std::size_t place) {
  parts_.clear();
  for_each_number(*series_, columns.rule, place, [&](std::uint32_t n) { parts_.push_back(n); });
  const std::size_t count = std::max<std::size_t>(1, parts_.size());
  const auto ns = series_->divided_ns[place].subspan(columns.first_op);
  to_first_.clear();
  to_other_.clear();
  for (std::size_t c = columns.first; c < columns.first + columns.count; ++c) {
    const auto whole = static_cast<std::int64_t>(c == 0 ? 0 : ns[c - 1]);
    const double each = 1 / static_cast<double>(count);
    to_first_.push_back(c == 0 ? each : static_cast<double>(share_of(whole, count, 0)));
    to_other_.push_back(c == 0 ? each : static_cast<double>(share_of(whole, count, 1)));
  }
}

// The parts of a rule that is not stored as a set.
void PartTally::list_numbers(std::uint32_t rule) {
  if (listed_of_ == rule) return;
  listed_.clear();
  for (std::size_t place = from_; place < to_; ++place)
    for_each_number(*series_, rule, place, [&](std::uint32_t n) { listed_.push_back(n); });
  std::ranges::sort(listed_);
  const auto repeated = std::ranges::unique(listed_);
  listed_.erase(repeated.begin(), repeated.end());
  listed_of_ = rule;
}

// `out`: of each column.
void PartTally::divide(const Columns& columns, std::span<Division* const> out) {
  for (Division* division : out) {
    division->parts.clear();
    division->unknown = 0;
  }
  if (to_ == from_ + 1) {
    divide_step(columns, from_);
    for (std::size_t c = 0; c < out.size(); ++c) {
      if (parts_.empty()) out[c]->unknown = to_first_[c];
      for (std::size_t i = 0; i < parts_.size(); ++i)
        out[c]->parts.push_back({parts_[i], i == 0 ? to_first_[c] : to_other_[c]});
    }
    return;
  }
  // The rows of `sums_` are the numbers of a set, else those of `listed_`.
  const std::uint32_t words = series_->outline->rules[columns.rule].words;
  if (words == 0) list_numbers(columns.rule);
  const auto row_of = [&](std::uint32_t n) {
    if (words != 0) return std::size_t{n};
    return static_cast<std::size_t>(std::ranges::lower_bound(listed_, n) - listed_.begin());
  };
  const std::size_t rows = words != 0 ? std::size_t{words} * 64 : listed_.size();
  sums_.assign(rows * out.size(), 0);
  unknown_.assign(out.size(), 0);
  is_touched_.assign(rows, false);
  const auto add = [&](double* sum, const std::vector<double>& amounts) {
    for (std::size_t c = 0; c < out.size(); ++c) sum[c] += amounts[c];
  };
  for (std::size_t place = from_; place < to_; ++place) {
    divide_step(columns, place);
    if (parts_.empty()) add(unknown_.data(), to_first_);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t row = row_of(parts_[i]);
      is_touched_[row] = true;
      add(&sums_[row * out.size()], i == 0 ? to_first_ : to_other_);
    }
  }
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c]->unknown = unknown_[c];
    for (std::size_t row = 0; row < rows; ++row)
      if (is_touched_[row])
        out[c]->parts.push_back({words != 0 ? static_cast<std::uint32_t>(row) : listed_[row],
                                 sums_[row * out.size() + c]});
  }
}

// Counts the parts of a single step: each occurs once.
void PartTally::list_one(std::size_t place) {
  for (std::uint32_t r = 0; r < series_->outline->rules.size(); ++r)
    for_each_number(*series_, r, place, [&](std::uint32_t n) { counts_[r].push_back({n, 1}); });
}

void PartTally::count() {
  const Series& series = *series_;
  const std::vector<OutlineRule>& rules = series.outline->rules;
  numbers_.resize(std::max(numbers_.size(), rules.size()));
  counts_.resize(numbers_.size());
  for (auto& numbers : numbers_) numbers.clear();
  for (auto& counts : counts_) counts.clear();
  if (to_ == from_ + 1) return list_one(from_);

  sets_.restart(series.outline->words);
  for (std::size_t place = from_; place < to_; ++place) sets_.add(series.sets[place]);
  if (series.number_ends[from_] != series.number_ends[to_]) {
    for (std::size_t place = from_; place < to_; ++place)
      series.for_each_listed(place, [&](std::uint32_t rule, std::span<const std::uint32_t> listed) {
        numbers_[rule].insert(numbers_[rule].end(), listed.begin(), listed.end());
      });
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    auto& counts = counts_[r];
    const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, rules[r].rule.limit));
    if (rules[r].words != 0) {
      const std::size_t first = std::size_t{rules[r].first_word} * 64;
      add_counts(limit, [&](std::uint32_t n) { return sets_.total(first + n); }, counts);
    } else if (numbers_[r].size() > limit / 8) {
      std::vector<std::uint32_t> table(limit);
      for (const std::uint32_t n : numbers_[r]) ++table[n];
      add_counts(limit, [&](std::uint32_t n) { return table[n]; }, counts);
    } else {
      std::ranges::sort(numbers_[r]);
      for (const std::uint32_t n : numbers_[r]) {
        if (counts.empty() || counts.back().number != n) counts.push_back({n, 0});
        ++counts.back().count;
      }
    }
  }
}

}  // namespace tt
