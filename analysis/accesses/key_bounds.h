// For pages that are not sorted by time: uses the index to bound the sort keys of a step, so
// that a step whose rows cannot be on the page is not read. Has the lifetime of one query.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/accesses/access_filter.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"

namespace tt {

class KeyBounds {
 public:
  // Considers only rows after `after`, if given.
  KeyBounds(const SessionIndex& index, const AccessFilter& filter, Order<AccessSort> order,
            const std::optional<AccessKey>& after);

  // Whether `step` can have a row after `after`, and before `last` if that is not null.
  bool can_hold(StepId step, const AccessKey* last) const;

 private:
  // Keys that differ from step to step: bytes depend on the number of parts, file offsets on
  // the rows that are read.
  struct Varying {
    std::uint32_t rule = kNone;
    const OutlineAccess* access = nullptr;
  };
  // A key that occurs in a step if the rule's list is not empty, or contains `number`. Its
  // `place` is not set.
  struct PossibleKey {
    AccessKey key;
    std::uint32_t rule = kNone;    // kNone: always
    std::uint32_t number = kNone;  // of the part
  };
  struct SeriesKeys {
    std::vector<PossibleKey> keys;  // sorted
    std::vector<Varying> varying;
  };
  void add(const Series& series, const OutlineAccess& access, SeriesKeys& of) const;
  AccessKey in_file(const FileRange& range) const;
  bool is_after_cursor(const AccessKey& key, StepId step) const;
  bool occurs_in(const Series& series, const PossibleKey& possible, std::size_t place) const;
  bool is_before_last(const AccessKey& key, StepId step, const AccessKey* last) const;
  bool can_have_part_in_range(const Series& series, const Varying& of, StepId step,
                              std::size_t place, const AccessKey* last) const;

  const SessionIndex& index_;
  const std::optional<std::int32_t> expert_;
  const Order<AccessSort> order_;
  const std::optional<AccessKey> after_;
  std::vector<SeriesKeys> series_;
};

}  // namespace tt
