#include "analysis/accesses/access_filter.h"

#include <compare>
#include <tuple>
#include <utility>

#include "analysis/common/op_info.h"

namespace tt {

std::weak_ordering compare_values(const AccessKey& left, const AccessKey& right,
                                  Order<AccessSort> order) {
  if (left.missing != right.missing)
    return right.missing ? std::weak_ordering::less : std::weak_ordering::greater;
  const auto& [first, second] = order.descending ? std::tie(right, left) : std::tie(left, right);
  return std::tie(first.a, first.b, first.name) <=> std::tie(second.a, second.b, second.name);
}

bool comes_before(const AccessKey& left, const AccessKey& right, Order<AccessSort> order) {
  if (order.by == AccessSort::ByTime)
    return order.descending ? right.place < left.place : left.place < right.place;
  const std::weak_ordering values = compare_values(left, right, order);
  return std::is_neq(values) ? std::is_lt(values) : left.place < right.place;
}

MatchingAccesses::MatchingAccesses(std::shared_ptr<const DerivedGraph> derived,
                                   const AccessFilter& filter)
    : derived_(std::move(derived)), expert_(filter.expert) {
  const GraphTemplate& graph = *derived_->graph;
  std::vector<bool> passing_ops;
  for (const Op& op : graph.ops)
    passing_ops.push_back(
        filter.op_name.empty() || matches_pattern(op_name(graph, op), filter.op_name) ||
        matches_pattern(graph.tensor(graph.node(op.last()).output).name, filter.op_name));
  for (std::uint32_t i = 0; i < derived_->accesses.size(); ++i) {
    const Access& access = derived_->accesses[i];
    if (filter.op && access.op != *filter.op) continue;
    if (!passing_ops[access.op.v]) continue;
    if (filter.write && access.write != *filter.write) continue;
    if (expert_ && access.extent != Extent::Experts) continue;
    if (!filter.tensor.passes(derived_->graph->tensor(access.tensor))) continue;
    accesses_.push_back(access);
    indices_.push_back(i);
  }
}

void MatchingAccesses::for_each(
    const Step& step, const std::function<void(const StepAccess&, const AccessId&)>& row) const {
  AccessId place{.step = step.id, .access = kNone, .part = 0};
  for_each_access(*derived_->graph, accesses_, step, [&](StepAccess access) {
    access.access = indices_[access.access];
    place.part = access.access == place.access ? place.part + 1 : 0;
    place.access = access.access;
    if (!expert_ || access.expert == *expert_) row(access, place);
  });
}

AccessKey MatchingAccesses::key_of(const StepAccess& access, const AccessId& place,
                                   AccessSort by) const {
  AccessKey key;
  key.place = place;
  switch (by) {
    case AccessSort::ByTime:
      break;
    case AccessSort::ByBytes:
      key.a = access.touched.v;
      break;
    case AccessSort::ByOffset:
      key.missing = access.range.empty();
      if (key.missing) break;
      key.a = access.range.file;
      key.b = access.range.offset;
      break;
    case AccessSort::ByTensor:
      key.name = derived_->graph->tensor(access.tensor).name;
      break;
  }
  return key;
}

}  // namespace tt
