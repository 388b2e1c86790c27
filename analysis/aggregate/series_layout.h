// Maps the accesses of one series to the cells of a raster, with the share of each cell.
// Built once per series and query; a sum over any range of its steps then only iterates
// over a list of numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/axis_scale.h"
#include "analysis/aggregate/part_tally.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/aggregate/trace_axis.h"

namespace tt {

// An axis of the raster other than time, step or token.
struct PlacedAxis {
  const AxisRows* rows = nullptr;
  AxisScale scale;
};

class SeriesLayout {
 public:
  // Cells are numbered x + y * (pixels of x). An axis without rows has one pixel, which
  // contains everything. `tally` is shared by all series and values of the query.
  SeriesLayout(const Series& series, const PlacedAxis& x, const PlacedAxis& y, Value value,
               const TraceMatcher& matcher, PartTally& tally);

  // Adds the value of `share` to the cells, and its sum, including what maps to no cell,
  // to `total`.
  void add(const SeriesShare& share, std::span<double> cells, double& total);

  struct CellShare {
    std::uint32_t cell;
    double share;
  };
  // The contribution of one complete step, with the items of all ops merged by the counter
  // that they are multiplied with.
  struct Merged {
    std::uint32_t rule = kNone;          // rule whose parts or hits are the factor; kNone: steps
    bool parts = false;                  // the factor is parts; else hits, or steps
    double unit = 0;                     // including what maps to no cell
    std::vector<CellShare> cell_shares;  // share * unit, ordered by cell
  };
  // All items that are not divided. Not for Value::Time: times differ from step to step.
  std::span<const Merged> merged();

 private:
  // Accesses of one op that map to the same cells, or the op itself.
  struct Item {
    std::uint32_t op = 0;
    std::uint32_t access = kNone;  // one of the accesses; kNone: the op
    std::uint32_t rule = kNone;    // rule whose parts or hits are the factor
    bool parts = false;            // the factor is parts; else hits, or steps
    bool divided = false;          // each part maps to its own cells
    double unit = 0;
    std::uint32_t first_cell_share = 0, cell_shares = 0;
  };
  void add_item(Item item);
  void merge();
  void add_item(const Item& item, const SeriesShare& share, std::span<double> cells, double& total);
  void cell_shares_of(const OutlineOp& op, const OutlineAccess* access, std::uint32_t part,
                      std::vector<CellShare>& out) const;
  void add_divided(const Item& item, double amount, std::span<double> cells);
  void add_divided_op(const Item& item, double share, std::span<double> cells);
  void add_undivided(const Item& item, double amount, std::span<double> cells) const;
  void add_parts(const Item& item, const auto& parts, std::span<double> cells);

  const Series& series_;
  const PlacedAxis x_, y_;
  const Value value_;
  PartTally& tally_;
  std::vector<Item> items_;
  std::vector<CellShare> cell_shares_;
  // What is not divided, for the times of complete steps.
  struct TimedCell {
    std::uint32_t op, cell;
    double share;
  };
  std::vector<TimedCell> timed_cells_;
  std::vector<std::uint32_t> timed_ops_;  // of all items
  void add_times(const SeriesShare& share, std::span<double> cells, double& total);

  bool any_divided_ = false;
  bool added_whole_ = false;  // complete steps were added once; merging pays off from now on
  bool is_merged_ = false;
  std::vector<Merged> merged_;
  // Cached spots of a part of a divided item, computed on first use.
  struct Known {
    bool known = false;
    std::vector<CellShare> cell_shares;
  };
  std::vector<std::vector<Known>> part_cell_shares_;  // per access, by part
  std::vector<CellShare> scratch_;
};

// The layouts of all series for one value, each built when it is first needed. The arguments
// outlive the object.
class SeriesLayouts {
 public:
  SeriesLayouts(const SessionIndex& index, const PlacedAxis& x, const PlacedAxis& y, Value value,
                const TraceMatcher& matcher)
      : x_(x), y_(y), value_(value), matcher_(matcher), layouts_(index.series().size()) {}
  // SeriesLayout::add() of the layout of the series.
  void add(const SeriesShare& share, std::span<double> cells, double& total);

 private:
  const PlacedAxis &x_, &y_;
  const Value value_;
  const TraceMatcher& matcher_;
  PartTally tally_;
  std::vector<std::unique_ptr<SeriesLayout>> layouts_;
};

}  // namespace tt
