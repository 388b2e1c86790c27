// What all steps of a session did, summed up: for questions that want nothing but totals.
// Each step is read once and only added: in memory are a few numbers per template,
// however long the session is (analysis/index/session_index.h keeps what windows need).
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
#include "analysis/index/outlined_step.h"
#include "analysis/index/set_tally.h"
#include "analysis/index/template_outline.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Steps of the same template and phase that ran equally many ops: each of their accesses
// is the same in all of them but for how many parts it has.
struct SeriesTotals {
  std::shared_ptr<const TemplateOutline> outline;
  std::uint64_t steps = 0;
  std::uint64_t timed = 0;                 // steps with times
  std::vector<std::uint64_t> op_ns;        // per op that ran; 0: Times::Skip
  std::vector<std::uint64_t> parts, hits;  // per rule; hits: steps with any part
  // Of a rule of experts: each that was routed to, ascending, and how often.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> experts(std::uint32_t rule) const;

  SetTally sets;
  std::vector<std::map<std::uint32_t, std::uint64_t>> listed;  // per rule of experts
};

class SessionTotals {
 public:
  struct Key {
    Phase phase = Phase::Other;
    TemplateId graph{};
    std::uint32_t ran = 0;  // ops
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  enum class Times : bool { Skip, Sum };
  explicit SessionTotals(Times times) : times_(times) {}

  // Takes in the steps that the file has got since; `reader` reads one and the same
  // session in every call. After an error, that of a step which cannot be read
  // included, it stands at the last step before.
  std::expected<void, TraceError> extend(const SessionReader& reader, const KeepGoing& keep_going);
  const std::map<Key, SeriesTotals>& series() const { return series_; }
  std::size_t memory_bytes() const;  // about

 private:
  // false: the step is damaged.
  std::expected<bool, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row);
  SeriesTotals& series_of(const Key& key);
  void add_parts(SeriesTotals& series);

  Times times_;
  std::uint32_t next_ = 0;  // step
  std::map<Key, SeriesTotals> series_;
  OutlinedStep row_;                 // the one being taken in
  std::vector<std::uint64_t> sets_;  // of the same step
};

// Totals of the session that the reader reads, as it is now: from somebody who keeps them
// longer than one question takes. Held for a moment only, since nobody can bring them up to
// date meanwhile.
using LendTotals = std::function<std::expected<std::shared_ptr<const SessionTotals>, TraceError>(
    SessionTotals::Times, const SessionReader&, const KeepGoing&)>;

}  // namespace tt
