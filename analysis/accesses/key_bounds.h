// What the first row of a step can be in the order of a page that is not by time, by what
// an index knows: a step whose first row would come too late need not be read. Lives as
// long as one question.
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
  // Of the rows behind `after`, where there is one.
  KeyBounds(const SessionIndex& index, const AccessFilter& filter, Order<AccessSort> order,
            const std::optional<AccessKey>& after);

  // Whether `step` can have a row behind `after`, and before `last` if there is that.
  bool can_hold(StepId step, const AccessKey* last) const;

 private:
  // Keys that differ from step to step: of bytes by how many parts there are; of places in
  // a file by which rows are read.
  struct Varying {
    std::uint32_t rule = kNone;
    const OutlineAccess* access = nullptr;
  };
  // A key that a step has if its list has parts, or that part; without a place.
  struct Possible {
    AccessKey key;
    std::uint32_t rule = kNone;    // kNone: always
    std::uint32_t number = kNone;  // of the part
  };
  struct OfSeries {
    std::vector<Possible> keys;  // in order
    std::vector<Varying> varying;
  };
  void add(const Series& series, const OutlineAccess& access, OfSeries& of) const;
  AccessKey in_file(const FileRange& range) const;
  bool is_ahead(const AccessKey& key, StepId step) const;
  bool is_there(const Series& series, const Possible& possible, std::size_t place) const;
  bool is_early(const AccessKey& key, StepId step, const AccessKey* last) const;
  bool has_early_part(const Series& series, const Varying& of, StepId step, std::size_t place,
                      const AccessKey* last) const;

  const SessionIndex& index_;
  const std::optional<std::int32_t> expert_;
  const Order<AccessSort> order_;
  const std::optional<AccessKey> after_;
  std::vector<OfSeries> series_;
};

}  // namespace tt
