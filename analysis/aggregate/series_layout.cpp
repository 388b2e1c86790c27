#include "analysis/aggregate/series_layout.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace tt {

namespace {

// The cells of parts are cached only for rules with at most this number of parts.
constexpr std::int64_t kMaxCachedParts = 1 << 12;

bool counts(Value value, const OutlineAccess& access) {
  switch (value) {
    case Value::BytesRead:
    case Value::Reads:
      return !access.write;
    case Value::BytesWritten:
    case Value::Writes:
      return access.write;
    default:
      return true;
  }
}

// The factor of an item for complete steps: parts, hits or steps.
double times_of(const SeriesShare& share, std::uint32_t rule, bool parts) {
  if (rule == kNone) return share.steps();
  return parts ? share.parts(rule) : share.hits(rule);
}

bool is_byte_value(Value value) { return value <= Value::BytesWritten; }
bool is_op_value(Value value) { return value >= Value::Executions; }

}  // namespace

SeriesLayout::SeriesLayout(const Series& series, const PlacedAxis& x, const PlacedAxis& y,
                           Value value, const TraceMatcher& matcher, PartTally& tally)
    : series_(series), x_(x), y_(y), value_(value), tally_(tally) {
  const TemplateOutline& outline = *series.outline;
  const auto of_ops = [](const PlacedAxis& axis) {
    return axis.rows == nullptr || is_op_axis(axis.rows->axis());
  };
  for (std::uint32_t i = 0; i < series.ran; ++i) {
    const OutlineOp& op = outline.ops[i];
    if (!matcher.op(op)) continue;
    if (is_op_value(value)) {
      if (!matcher.time(outline, op)) continue;
      const bool as_op = of_ops(x) && of_ops(y);
      add_item({.op = i, .access = as_op ? kNone : op.main, .unit = 1});
      continue;
    }
    for (std::uint32_t a = op.first_access; a < op.first_access + op.accesses; ++a) {
      const OutlineAccess& access = outline.accesses[a];
      if (!matcher.access(access) || !counts(value, access)) continue;
      const bool separate = access.rule != kNone && outline.rules[access.rule].rule.separate;
      add_item({.op = i,
                .access = a,
                .rule = access.rule,
                .parts = separate || is_byte_value(value),
                .unit = is_byte_value(value) ? static_cast<double>(access.unit.v) : 1});
    }
  }
}

void SeriesLayout::add_item(Item item) {
  const TemplateOutline& outline = *series_.outline;
  const OutlineAccess* access = item.access == kNone ? nullptr : &outline.accesses[item.access];
  item.divided =
      access != nullptr && ((x_.rows != nullptr && x_.rows->has_row_per_part(outline, *access)) ||
                            (y_.rows != nullptr && y_.rows->has_row_per_part(outline, *access)));
  if (item.divided) {
    any_divided_ = true;
    part_cell_shares_.resize(outline.accesses.size());
  }
  scratch_.clear();
  cell_shares_of(outline.ops[item.op], access, kNone, scratch_);
  const auto same = [](const CellShare& a, const CellShare& b) {
    return a.cell == b.cell && a.share == b.share;
  };
  if (!items_.empty() && !item.divided) {
    Item& last = items_.back();
    if (!last.divided && last.op == item.op && last.rule == item.rule && last.parts == item.parts &&
        std::ranges::equal(std::span(cell_shares_).subspan(last.first_cell_share, last.cell_shares),
                           scratch_, same)) {
      last.unit += item.unit;
      return;
    }
  }
  item.first_cell_share = static_cast<std::uint32_t>(cell_shares_.size());
  item.cell_shares = static_cast<std::uint32_t>(scratch_.size());
  cell_shares_.insert(cell_shares_.end(), scratch_.begin(), scratch_.end());
  items_.push_back(item);
}

void SeriesLayout::cell_shares_of(const OutlineOp& op, const OutlineAccess* access,
                                  std::uint32_t part, std::vector<CellShare>& out) const {
  const auto each = [&](const PlacedAxis& axis, auto visit) {
    if (axis.rows == nullptr) return visit(0U, 1.0);
    const auto rows = axis.rows->rows_of(series_, op, access, part);
    axis.scale.spread(rows.from, rows.to, visit);
  };
  const std::uint32_t width = x_.rows == nullptr ? 1 : x_.scale.pixels();
  each(y_, [&](std::uint32_t y, double of_y) {
    each(x_, [&](std::uint32_t x, double of_x) { out.push_back({x + y * width, of_x * of_y}); });
  });
}

void SeriesLayout::add_divided(const Item& item, double amount, std::span<double> cells) {
  const OutlineAccess& access = series_.outline->accesses[item.access];
  const auto counts = tally_.of(access.rule);
  double all = 0;
  for (const PartTally::Count& part : counts) all += part.count;
  if (all == 0) return add_undivided(item, amount, cells);
  const auto share_of = [&](const PartTally::Count& part) {
    return PartTally::Share{.number = part.number, .amount = amount * part.count / all};
  };
  add_parts(item, counts | std::views::transform(share_of), cells);
}

// The value of an op: PartTally divides it step by step.
void SeriesLayout::add_divided_op(const Item& item, double share, std::span<double> cells) {
  const PartTally::Division& division =
      value_ == Value::Time ? tally_.time_of(item.op) : tally_.executions_of(item.op);
  const auto share_of = [&](const PartTally::Share& part) {
    return PartTally::Share{.number = part.number, .amount = share * part.amount};
  };
  add_parts(item, division.parts | std::views::transform(share_of), cells);
  add_undivided(item, share * division.unknown, cells);
}

// To the cells of the whole item: it has no parts, or which of them were touched is unknown.
void SeriesLayout::add_undivided(const Item& item, double amount, std::span<double> cells) const {
  for (const CellShare& cell_share :
       std::span(cell_shares_).subspan(item.first_cell_share, item.cell_shares))
    cells[cell_share.cell] += amount * cell_share.share;
}

// `parts`: a range of PartTally::Share.
void SeriesLayout::add_parts(const Item& item, const auto& parts, std::span<double> cells) {
  const OutlineOp& op = series_.outline->ops[item.op];
  const OutlineAccess& access = series_.outline->accesses[item.access];
  const bool keep = series_.outline->rules[access.rule].rule.limit <= kMaxCachedParts;
  auto& known = part_cell_shares_[item.access];
  for (const PartTally::Share part : parts) {
    const std::vector<CellShare>* cell_shares = &scratch_;
    if (keep) {
      if (known.size() <= part.number) known.resize(std::size_t{part.number} + 1);
      Known& entry = known[part.number];
      if (!entry.known) cell_shares_of(op, &access, part.number, entry.cell_shares);
      entry.known = true;
      cell_shares = &entry.cell_shares;
    } else {
      scratch_.clear();
      cell_shares_of(op, &access, part.number, scratch_);
    }
    for (const CellShare& cell_share : *cell_shares)
      cells[cell_share.cell] += part.amount * cell_share.share;
  }
}

// Called once several ranges of complete steps are requested, as for every raster over time:
// the ranges differ only in the number of touched parts per rule.
void SeriesLayout::merge() {
  is_merged_ = true;
  const auto same_count = [](const Item& item) {
    return [&item](const Merged& m) { return m.rule == item.rule && m.parts == item.parts; };
  };
  for (const Item& item : items_) {
    if (item.divided) continue;
    auto of = std::ranges::find_if(merged_, same_count(item));
    if (of == merged_.end())
      of = merged_.insert(of,
                          {.rule = item.rule, .parts = item.parts, .unit = 0, .cell_shares = {}});
    of->unit += item.unit;
    for (const CellShare& cell_share :
         std::span(cell_shares_).subspan(item.first_cell_share, item.cell_shares))
      of->cell_shares.push_back({cell_share.cell, item.unit * cell_share.share});
  }
  for (Merged& of : merged_) {
    std::ranges::stable_sort(of.cell_shares, {}, &CellShare::cell);
    std::vector<CellShare> sums;
    for (const CellShare& cell_share : of.cell_shares) {
      if (sums.empty() || sums.back().cell != cell_share.cell) sums.push_back({cell_share.cell, 0});
      sums.back().share += cell_share.share;
    }
    of.cell_shares = std::move(sums);
  }
}

std::span<const SeriesLayout::Merged> SeriesLayout::merged() {
  if (!is_merged_) merge();
  return merged_;
}

void SeriesLayout::add_item(const Item& item, const SeriesShare& share, std::span<double> cells,
                            double& total) {
  const double times = value_ == Value::Time
                           ? static_cast<double>(static_cast<std::int64_t>(share.op_ns[item.op]))
                           : times_of(share, item.rule, item.parts);
  const double amount = share.share_of(item.op) * times * item.unit;
  if (amount == 0) return;
  total += amount;
  if (!item.divided) return add_undivided(item, amount, cells);
  if (is_op_value(value_)) return add_divided_op(item, share.share_of(item.op), cells);
  add_divided(item, amount, cells);
}

// Without a decision per item: medians need the times of every op of every step.
void SeriesLayout::add_times(const SeriesShare& share, std::span<double> cells, double& total) {
  if (timed_ops_.empty()) {
    for (const Item& item : items_) {
      timed_ops_.push_back(item.op);
      if (item.divided) continue;
      for (const CellShare& of :
           std::span(cell_shares_).subspan(item.first_cell_share, item.cell_shares))
        timed_cells_.push_back({item.op, of.cell, of.share * item.unit});
    }
  }
  // Signed: a damaged file may have negative durations.
  const auto ns_of = [&](std::uint32_t op) {
    return share.share * static_cast<double>(static_cast<std::int64_t>(share.op_ns[op]));
  };
  for (const std::uint32_t op : timed_ops_) total += ns_of(op);
  for (const TimedCell& of : timed_cells_) cells[of.cell] += ns_of(of.op) * of.share;
}

void SeriesLayout::add(const SeriesShare& share, std::span<double> cells, double& total) {
  if (any_divided_) tally_.select(series_, share.from, share.to);
  const bool whole = share.op_shares.empty() && std::exchange(added_whole_, true);
  if (whole && value_ == Value::Time) {
    add_times(share, cells, total);
    if (!any_divided_) return;
    double counted = 0;  // in `total` already
    for (const Item& item : items_)
      if (item.divided) add_item(item, share, cells, counted);
    return;
  }
  if (whole) {
    for (const Merged& of : merged()) {
      const double amount = share.share * times_of(share, of.rule, of.parts);
      total += amount * of.unit;
      for (const CellShare& cell_share : of.cell_shares)
        cells[cell_share.cell] += amount * cell_share.share;
    }
    if (!any_divided_) return;
    for (const Item& item : items_)
      if (item.divided) add_item(item, share, cells, total);
    return;
  }
  for (const Item& item : items_) {
    if (item.op < share.first_op) continue;
    if (item.op >= share.end_op) break;
    add_item(item, share, cells, total);
  }
}

void SeriesLayouts::add(const SeriesShare& share, std::span<double> cells, double& total) {
  auto& layout = layouts_[share.number];
  if (!layout)
    layout = std::make_unique<SeriesLayout>(share.series, x_, y_, value_, matcher_, tally_);
  layout->add(share, cells, total);
}

}  // namespace tt
