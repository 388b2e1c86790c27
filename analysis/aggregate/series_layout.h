// Where the accesses of one series fall in a picture: which cells, with what share.
// Made once per series and question; then a sum over any of its steps is a walk
// over a list of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/axis_scale.h"
#include "analysis/aggregate/part_tally.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/aggregate/trace_axis.h"

namespace tt {

// One of the axes of a picture that say where.
struct PlacedAxis {
  const AxisRows* rows = nullptr;
  AxisScale scale;
};

class SeriesLayout {
 public:
  // Cells are numbered x + y * x's pixels. An axis without rows has one pixel, for
  // everything. `tally` is that of all series and values of the question.
  SeriesLayout(const Series& series, const PlacedAxis& x, const PlacedAxis& y, Value value,
               const TracePicks& picks, PartTally& tally);

  // Adds what `share` has of the value to the cells; the sum of all of it, on a
  // cell or not, to `total`.
  void add(const SeriesShare& share, std::span<double> cells, double& total);

  struct Spot {
    std::uint32_t cell;
    double share;
  };
  // What a whole step adds, by what it is counted with: items of all ops in one.
  struct Merged {
    std::uint32_t rule = kNone;  // whose parts or hits count; kNone: steps do
    bool parts = false;          // times parts; else times hits, or steps
    double unit = 0;             // on a cell or not
    std::vector<Spot> spots;     // of one unit times its share, by cell
  };
  // Of all that is not divided. Not of times: they differ from step to step.
  std::span<const Merged> merged();

 private:
  // Accesses of one op that fall into the same cells, or the op itself.
  struct Item {
    std::uint32_t op = 0;
    std::uint32_t access = kNone;  // one of them; kNone: the op
    std::uint32_t rule = kNone;    // whose parts or hits count
    bool parts = false;            // times parts; else times hits, or steps
    bool divided = false;          // its parts fall into cells of their own
    double unit = 0;
    std::uint32_t first_spot = 0, spots = 0;
  };
  void add_item(Item item);
  void merge();
  void add_item(const Item& item, const SeriesShare& share, std::span<double> cells, double& total);
  void spots_of(const OutlineOp& op, const OutlineAccess* access, std::uint32_t part,
                std::vector<Spot>& out) const;
  void add_divided(const Item& item, double amount, std::span<double> cells);

  const Series& series_;
  const PlacedAxis x_, y_;
  const Value value_;
  PartTally& tally_;
  std::vector<Item> items_;
  std::vector<Spot> spots_;
  bool any_divided_ = false;
  bool added_whole_ = false;  // once; the next time it is worth the while to merge
  bool is_merged_ = false;
  std::vector<Merged> merged_;
  // Of a divided item and part the spots, once they were needed.
  struct Known {
    bool known = false;
    std::vector<Spot> spots;
  };
  std::vector<std::vector<Known>> part_spots_;  // per access, by part
  std::vector<Spot> scratch_;
};

}  // namespace tt
