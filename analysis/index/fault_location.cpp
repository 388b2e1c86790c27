#include "analysis/index/fault_location.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tt {

FaultLocator::FaultLocator(std::shared_ptr<const TemplateOutline> outline,
                           std::span<const std::uint64_t> addresses)
    : outline_(std::move(outline)), addresses_(addresses) {
  std::set<TensorId> seen;
  for (std::uint32_t i = 0; i < outline_->accesses.size(); ++i) {
    const OutlineAccess& access = outline_->accesses[i];
    if (!access.file.empty() && seen.insert(access.view).second) weights_.push_back(i);
  }
}

void FaultLocator::begin_step(Ns first_op, std::span<const Ns> op_ends) {
  first_op_ = first_op;
  latest_.assign(op_ends.begin(), op_ends.end());
  for (std::size_t i = 1; i < latest_.size(); ++i)
    latest_[i] = std::max(latest_[i], latest_[i - 1]);
}

bool FaultLocator::contains(const OutlineAccess& access, std::uint64_t address) const {
  if (access.view.v >= addresses_.size() || addresses_[access.view.v] == 0) return false;
  const std::uint64_t begin = addresses_[access.view.v];
  return address >= begin && address - begin < access.span;
}

std::uint32_t FaultLocator::access_of(std::uint32_t op, std::uint64_t address) const {
  const OutlineOp& of = outline_->ops[op];
  for (std::uint32_t a = of.first_access; a < of.first_access + of.accesses; ++a)
    if (contains(outline_->accesses[a], address)) return a;
  return kNone;
}

// An op's end time is taken when the first thread finishes it; other threads may still be
// working on it, so a fault at the begin of an op may belong to the previous op. No thread
// begins the next op before all have finished.
FaultLocation FaultLocator::of(const PageFault& fault) const {
  FaultLocation place;
  const auto ran = static_cast<std::uint32_t>(std::min(latest_.size(), outline_->ops.size()));
  if (ran > 0 && fault.at >= first_op_) {
    const auto end = std::ranges::upper_bound(latest_, fault.at);
    const auto at = static_cast<std::uint32_t>(end - latest_.begin());
    if (at < ran) {
      place.op = at;
      place.access = access_of(at, fault.address);
    }
    if (place.access == kNone && at > 0 && at <= ran) {
      if (const std::uint32_t late = access_of(at - 1, fault.address); late != kNone)
        place = {.op = at - 1, .access = late};
    }
  }
  if (place.access == kNone) {
    const auto weight = std::ranges::find_if(weights_, [&](std::uint32_t access) {
      return contains(outline_->accesses[access], fault.address);
    });
    if (weight != weights_.end()) place.access = *weight;
  }
  if (place.access == kNone) return place;
  const OutlineAccess& access = outline_->accesses[place.access];
  if (access.rule != kNone && outline_->rules[access.rule].rule.separate && access.stride > 0) {
    const std::uint64_t part = (fault.address - addresses_[access.view.v]) / access.stride;
    if (std::cmp_less(part, outline_->rules[access.rule].rule.limit))
      place.part = static_cast<std::uint32_t>(part);
  }
  return place;
}

FileRange in_file(const OutlineAccess& access, std::span<const std::uint64_t> addresses,
                  std::uint64_t address) {
  if (access.file.empty() || access.source != Source::Disk) return {};
  return {access.file.file, access.file.offset + (address - addresses[access.view.v]), 1};
}

}  // namespace tt
