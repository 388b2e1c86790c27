// Totals over all steps of a session. Each step is read once and added; memory use is a few
// numbers per template, independent of the session length.
//
// SessionIndex (session_index.h) has these totals and those of any range of steps. It stores
// the times and part counts of every step, so it takes longer to build and its memory grows with
// the session, which SQL's totals, also in the loadable extension, should not pay for.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/index/set_tally.h"
#include "analysis/index/step_decoder.h"
#include "analysis/index/template_outline.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Totals of the steps with the same template, phase and number of executed ops; their
// accesses differ only in the number of parts.
struct SeriesTotals {
  std::shared_ptr<const TemplateOutline> outline;
  std::uint64_t steps = 0;
  std::uint64_t timed = 0;                 // steps with times
  std::vector<std::uint64_t> op_ns;        // per op that ran; 0: Times::Skip
  std::vector<std::uint64_t> parts, hits;  // per rule; hits: steps with any part
  // For an expert rule: (expert, count) of each expert that was used, ascending.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> experts(std::uint32_t rule) const;

  SetTally sets;
  std::vector<std::map<std::uint32_t, std::uint64_t>> listed;  // per expert rule
};

class SessionTotals {
 public:
  struct Key {
    Phase phase = Phase::Other;
    TemplateId graph{};
    std::uint32_t ran = 0;  // executed ops
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  enum class Times : bool { Skip, Sum };
  explicit SessionTotals(Times times) : times_(times) {}

  // Adds the steps that were appended to the file since the last call; every call must use
  // the same session. After an error, including an unreadable step, the totals contain the
  // steps before it.
  std::expected<void, TraceError> extend(const SessionReader& reader,
                                         const ContinueCheck& keep_going);
  const std::map<Key, SeriesTotals>& series() const { return series_; }

 private:
  // false: the step is damaged.
  std::expected<bool, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row);
  SeriesTotals& series_of(const Key& key);
  void add_parts(SeriesTotals& series);

  Times times_;
  std::uint32_t next_ = 0;  // next step to add
  std::map<Key, SeriesTotals> series_;
  StepDecoder row_;                  // the step being added
  std::vector<std::uint64_t> sets_;  // of the same step
};

// Returns up-to-date totals of the reader's session from a cache that outlives the query.
// Release the pointer as soon as possible: the cache cannot update the totals while it is
// held.
using TotalsProvider =
    std::function<std::expected<std::shared_ptr<const SessionTotals>, TraceError>(
        SessionTotals::Times, const SessionReader&, const ContinueCheck&)>;

}  // namespace tt
