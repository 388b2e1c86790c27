#include "analysis/speed/speed_rounds.h"

#include <algorithm>

namespace tt {

void add_block_ops(SpeedTest& test, const StepsTime& block, std::uint32_t runs) {
  const std::size_t before = test.ops.empty() ? 0 : test.ops.front().ns.size();
  for (const OpKindTime& kind : block.ops) {
    auto op = std::ranges::find(test.ops, kind.op, &SpeedOp::op);
    if (op == test.ops.end()) {
      const std::vector<double> none(before, 0.0);
      test.ops.push_back({.op = kind.op, .count = 0, .ns = none, .quiet_ns = none});
      op = test.ops.end() - 1;
    }
    op->count = static_cast<double>(kind.count) / runs;
    op->ns.push_back(kind.ns / runs);
    op->quiet_ns.push_back(kind.quiet_ns / runs);
  }
  for (SpeedOp& op : test.ops) {
    op.ns.resize(before + 1, 0.0);
    op.quiet_ns.resize(before + 1, 0.0);
  }
}

}  // namespace tt
