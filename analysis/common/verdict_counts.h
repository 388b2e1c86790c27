// Counts of steps by their verdict (analysis/common/verdict.h): what a set of steps is worth.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>

#include "analysis/common/verdict.h"

namespace tt {

// Known, and not clean.
inline bool is_disturbed(const std::optional<Verdict>& verdict) {
  return verdict && *verdict != Verdict::Clean;
}

class VerdictCounts {
 public:
  void add(const std::optional<Verdict>& verdict) {
    if (is_disturbed(verdict)) {
      ++disturbed_[static_cast<std::size_t>(*verdict)];
    } else {
      ++others_;
      is_known_ = is_known_ || verdict;
    }
  }

  // Clean, or without a verdict.
  std::uint32_t undisturbed() const { return others_; }
  std::uint32_t disturbed() const { return std::reduce(disturbed_.begin(), disturbed_.end()); }

  // Of the undisturbed steps; nullopt: none of them has a verdict.
  std::optional<Verdict> of_undisturbed() const {
    return is_known_ ? std::optional(Verdict::Clean) : std::nullopt;
  }
  // The most frequent verdict of the disturbed steps; nullopt: there are none.
  std::optional<Verdict> of_disturbed() const {
    const auto most = std::ranges::max_element(disturbed_);
    if (*most == 0) return std::nullopt;
    return static_cast<Verdict>(most - disturbed_.begin());
  }

 private:
  std::uint32_t others_ = 0;
  std::array<std::uint32_t, 4> disturbed_{};  // by Verdict
  bool is_known_ = false;
};

}  // namespace tt
