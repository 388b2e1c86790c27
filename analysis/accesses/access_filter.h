// Which accesses a question is about, the order they come in, and the part of
// both that no step changes.
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
  std::string op_name{};  // has_part() of its kind or its output's name
  std::optional<bool> write{};
  std::optional<std::int32_t> expert{};
  friend bool operator==(const AccessFilter&, const AccessFilter&) = default;
};

// Names one access of a session, for good: the step, which of its template's
// accesses (accesses_of()), and which row of that one (an expert, a row of a matrix).
struct AccessPlace {
  StepId step;
  std::uint32_t access = 0, part = 0;
  friend constexpr auto operator<=>(const AccessPlace&, const AccessPlace&) = default;
};

// ByTime: as they happened, by op, reads in source order before the write. ByOffset:
// in the model's files, which an access may lack. ByTensor: by name.
enum class AccessSort { ByTime, ByBytes, ByOffset, ByTensor };

// What an access is sorted by.
struct AccessKey {
  AccessPlace place;
  bool lacking = false;        // it has no such value
  std::uint64_t a = 0, b = 0;  // ByBytes: bytes; ByOffset: file, offset
  std::string name;            // ByTensor
};
// By what they are sorted by, without their places; not for ByTime.
std::weak_ordering compare_values(const AccessKey& left, const AccessKey& right,
                                  Order<AccessSort> order);
// Whether `left` comes first; of two different places one always does.
bool comes_before(const AccessKey& left, const AccessKey& right, Order<AccessSort> order);

// The accesses of one template that can pass a filter, whatever the step.
class PickedAccesses {
 public:
  PickedAccesses(std::shared_ptr<const DerivedGraph> derived, const AccessFilter& filter);
  const DerivedGraph& derived() const { return *derived_; }
  bool empty() const { return picked_.empty(); }

  // Those of `step` that pass, in time order. StepAccess::access counts in derived().
  void for_each(const Step& step,
                const std::function<void(const StepAccess&, const AccessPlace&)>& row) const;
  AccessKey key_of(const StepAccess& access, const AccessPlace& place, AccessSort by) const;

 private:
  std::shared_ptr<const DerivedGraph> derived_;
  std::optional<std::int32_t> expert_;
  std::vector<Access> picked_;
  std::vector<std::uint32_t> places_;  // of the picked ones in derived().accesses
};

}  // namespace tt
