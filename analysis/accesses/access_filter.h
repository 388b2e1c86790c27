// Filter and sort order of accesses, and the part of filtering that depends only on the
// template.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/page.h"
#include "analysis/common/tensor_filter.h"

namespace tt {

struct AccessFilter {
  TensorFilter tensor{};
  std::optional<OpId> op{};
  std::string op_name{};  // pattern (matches_pattern()) on the op kind or the output's name
  std::optional<bool> write{};
  std::optional<std::int32_t> expert{};
  friend bool operator==(const AccessFilter&, const AccessFilter&) = default;
};

// Permanent identifier of one access of a session: step, index of the access in its template
// (accesses_of()), and index of the part of that access (an expert, a matrix row).
struct AccessId {
  StepId step;
  std::uint32_t access = 0, part = 0;
  friend constexpr auto operator<=>(const AccessId&, const AccessId&) = default;
};

// ByTime: execution order; within an op, reads in source order, then the write. ByOffset:
// offset in the model files; accesses without one come last. ByTensor: by name.
enum class AccessSort { ByTime, ByBytes, ByOffset, ByTensor };

// The sort key of an access.
struct AccessKey {
  AccessId place;
  bool missing = false;        // the access has no value of this kind
  std::uint64_t a = 0, b = 0;  // ByBytes: bytes; ByOffset: file, offset
  std::string name;            // ByTensor
};
// Compares the keys without the `place` tie-breaker. Not for ByTime.
std::weak_ordering compare_values(const AccessKey& left, const AccessKey& right,
                                  Order<AccessSort> order);
// Strict total order: of two different places, one always comes before the other.
bool comes_before(const AccessKey& left, const AccessKey& right, Order<AccessSort> order);

// The accesses of one template that can pass a filter in some step.
class MatchingAccesses {
 public:
  MatchingAccesses(std::shared_ptr<const DerivedGraph> derived, const AccessFilter& filter);
  const DerivedGraph& derived() const { return *derived_; }
  bool empty() const { return accesses_.empty(); }

  // Calls `row` for the accesses of `step` that pass, in time order. StepAccess::access is an
  // index into derived().accesses.
  void for_each(const Step& step,
                const std::function<void(const StepAccess&, const AccessId&)>& row) const;
  AccessKey key_of(const StepAccess& access, const AccessId& place, AccessSort by) const;

 private:
  std::shared_ptr<const DerivedGraph> derived_;
  std::optional<std::int32_t> expert_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> indices_;  // indices of picked_ in derived().accesses
};

}  // namespace tt
