// What questions that sum over many steps stand on: built once from a session's
// file, extended while the session grows, kept in memory as long as it is asked.
//
// The problem. A session of 100 million accesses is 85,000 steps of 400 ops. A
// picture of it has 1400 columns, and wants in each the time of every op and the
// bytes of every access of the steps that fall into it: walking all accesses takes
// seconds, decoding all times a quarter of one. But a step is a template and a few
// numbers, so that sums over steps are sums over few things:
//
//   - Series. Steps of the same template, phase and allocation that ran equally
//     many ops (a cancelled step ran fewer) are a series, whether or not others lie
//     between them. Every access of a series is the same in every one of its
//     steps but for how many parts it has.
//   - Parts. An access that a list decides (rows, experts, cells) touches as many
//     parts as the list has distinct numbers. Accesses with an equal PartRule touch
//     equally many; a template has a handful of rules, one with experts one or two
//     per layer. Per step and rule the sum over all steps of the series before it
//     is kept (12 bytes): the bytes of an access between two steps are a difference
//     times its unit. Where parts are accesses of their own the list is kept, too: of
//     experts a bit for each there is, of rows of an embedding 4 bytes for each touched.
//   - Times. Each step's are kept as they are packed in the file (1 to 2 bytes an
//     op), and per op the sum over all steps of the series before it at every
//     kStride-th step (total ops / kStride * 8 bytes). At a step between two of
//     these the steps from the nearer one are added: kStride / 2 at most, so that
//     the time of every op between any two steps costs a difference of two vectors
//     and a few microseconds.
//
// So a picture's column costs what a template's accesses cost, not what its
// steps' do. Nothing of it is stored in the file. bench/analysis/raster_bench says
// what it costs.
//
// A damaged step, or one whose lists do not fit its template, is in no series
// and listed: sums say what is there. So is a step without a template (level
// MINIMAL): it has no accesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/index/byte_pieces.h"
#include "analysis/index/fault_places.h"
#include "analysis/index/number_rows.h"
#include "analysis/index/outlined_step.h"
#include "analysis/index/template_outline.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct IndexedStep {
  Ns begin{}, end{}, first_op{};
  std::uint32_t first_token = 0, n_tokens = 0;
  std::uint32_t series = kNone;  // kNone: it has no accesses
  std::uint32_t place = 0;       // in its series
  Phase phase = Phase::Other;
  bool timed = false;  // its ops have times
  // Of all its ops and accesses.
  std::uint64_t op_ns = 0;
  AccessTotals totals;
};
// The tokens that a step stands for where tokens are an axis; one without tokens
// stands for the next.
constexpr std::uint64_t token_begin(const IndexedStep& s) { return s.first_token; }
constexpr std::uint64_t token_end(const IndexedStep& s) {
  return std::uint64_t{s.first_token} + (s.n_tokens == 0 ? 1 : s.n_tokens);
}

// A page fault of a step, or what is known of `count` of them: only that.
struct IndexedFault {
  std::uint32_t step = 0;
  bool told = true;  // when and where it happened; else they were only counted
  std::uint64_t count = 1;
  PageFault fault{};
  FaultPlace place{};  // in the outline of the step's series
};

// What a series keeps per step is reached through the functions below it.
struct Series {
  TemplateId graph;
  AllocationId allocation;
  Phase phase = Phase::Other;
  std::uint32_t ran = 0;  // ops that ran
  std::shared_ptr<const TemplateOutline> outline;
  std::vector<std::uint32_t> steps;  // ascending

  // Sums over the first `place` steps, place up to steps.size().
  std::span<const std::uint64_t> parts_before(std::size_t place) const { return parts[place]; }
  std::span<const std::uint32_t> hits_before(std::size_t place) const { return hits[place]; }
  // The parts of one step that are accesses of their own: of a rule that keeps sets, as
  // one; of all rules whose parts are listed, in the order of the rules, each ascending.
  std::span<const std::uint64_t> set_of(const OutlineRule& rule, std::size_t place) const {
    return sets[place].subspan(rule.first_word, rule.words);
  }
  std::span<const std::uint32_t> numbers_of(std::size_t place) const {
    const auto from = static_cast<std::size_t>(number_ends[place]);
    return std::span(numbers).subspan(from,
                                      static_cast<std::size_t>(number_ends[place + 1]) - from);
  }
  // Calls `each(rule, numbers)` for the rules whose parts are listed.
  template <class Each>
  void for_each_listed(std::size_t place, Each each) const;

  std::uint32_t timed = 0;                 // steps with times
  NumberRows<std::uint64_t> parts;         // per rule; of steps + 1
  NumberRows<std::uint32_t> hits;          // steps with any part; the same
  NumberRows<std::uint64_t> sets;          // TemplateOutline::words; of steps
  std::vector<std::uint64_t> number_ends;  // steps + 1
  std::vector<std::uint32_t> numbers;
  BytePieces packed_times;              // per step, as unpack_times() takes them
  NumberRows<std::uint64_t> times;      // per op that ran: before step 0, kStride, 2 * kStride...
  std::vector<std::uint64_t> time_sum;  // before the next step
  // What one of its steps makes: always, and by the parts of each rule.
  AccessTotals fixed;
  struct PerPart {
    std::uint64_t accesses = 0, accesses_if_any = 0;
    Bytes read{}, written{};
  };
  std::vector<PerPart> per_part;  // per rule
};

template <class Each>
void Series::for_each_listed(std::size_t place, Each each) const {
  const auto before = parts_before(place), after = parts_before(place + 1);
  std::span<const std::uint32_t> left = numbers_of(place);
  for (std::uint32_t rule = 0; rule < before.size() && !left.empty(); ++rule) {
    if (!outline->rules[rule].listed()) continue;
    const auto n = static_cast<std::size_t>(after[rule] - before[rule]);
    each(rule, left.first(n));
    left = left.subspan(n);
  }
}

class SessionIndex {
 public:
  static constexpr std::size_t kStride = 16;
  // `reader` reads one and the same session in every call of this object.
  static std::expected<SessionIndex, TraceError> build(const SessionReader& reader,
                                                       const KeepGoing& keep_going = always);
  // Takes in the steps that the file has got since. After an error, and after
  // Cancelled, it stands at the last step that was taken in.
  std::expected<void, TraceError> extend(const SessionReader& reader,
                                         const KeepGoing& keep_going = always);

  const SessionInfo& info() const { return info_; }
  const SessionNames& names() const { return row_.names(); }
  const std::vector<IndexedStep>& steps() const { return steps_; }
  const std::vector<Series>& series() const { return series_; }
  const std::vector<StepId>& damaged() const { return damaged_; }
  const std::vector<IndexedFault>& faults() const { return faults_; }  // by step, then time
  // Whether steps follow one another: begins and ends, or tokens, never go back.
  // They do in what a recorder wrote; where they do not, questions look at each step.
  bool in_time_order() const { return in_time_order_; }
  bool in_token_order() const { return in_token_order_; }
  // Of all steps, damaged ones where they must have been.
  struct Extent {
    Ns begin{INT64_MAX}, end{INT64_MIN};  // of the first to begin, of the last to end
    std::uint64_t tokens = 0;             // token_end() of the last
  };
  const Extent& extent() const { return extent_; }
  // What of a model's memory the ops used, by name of the buffer, each stretch
  // disjoint from the others, by address: (buffer, first address) -> end. Tensors
  // that are mapped from the file are not in it.
  using Stretches = std::map<std::pair<std::string, std::uint64_t>, std::uint64_t>;
  const Stretches& buffers() const { return buffers_; }
  // Per tensor of an allocation; empty: not recorded.
  std::span<const std::uint64_t> addresses(AllocationId id) const;

  std::size_t memory_bytes() const;  // about

 private:
  using Key = std::tuple<TemplateId, AllocationId, Phase, std::uint32_t>;

  std::expected<void, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row);
  std::expected<void, TraceError> take_steps(const SessionReader& reader,
                                             const KeepGoing& keep_going);
  std::expected<void, TraceError> take_faults(const SessionReader& reader,
                                              const KeepGoing& keep_going);
  void add_damaged(StepId step);
  void add_step(const IndexedStep& step);
  Series& series_of(const Key& key);
  std::uint64_t add_times(Series& series, std::span<const std::byte> packed);
  void add_parts(Series& series, IndexedStep& step);
  void add_allocation(const SessionReader& reader, AllocationId id);

  SessionInfo info_;
  std::vector<IndexedStep> steps_;
  std::vector<Series> series_;
  std::map<Key, std::uint32_t> series_ids_;
  std::map<AllocationId, std::vector<std::uint64_t>> allocations_;
  Stretches buffers_;
  std::vector<StepId> damaged_;
  std::vector<IndexedFault> faults_;
  std::size_t faults_taken_ = 0;  // of so many steps
  bool in_time_order_ = true, in_token_order_ = true;
  Extent extent_;
  OutlinedStep row_;  // the one being taken in
};

// The times of ops, summed over steps of an index: lives as long as one question.
class OpTimes {
 public:
  explicit OpTimes(const SessionIndex& index) : index_(index), last_(index.series().size()) {}

  // Per op that ran, in the steps [from, to) of a series. Cheapest when `from` is
  // where the last question about this series ended. Valid until the next call.
  std::span<const std::uint64_t> between(std::uint32_t series, std::size_t from, std::size_t to);
  // Of the step at that place of the series; ops without a time have 0. Valid until
  // the next call.
  std::span<const std::uint64_t> of(std::uint32_t series, std::size_t place);

 private:
  struct Sum {
    std::size_t place = 0;
    std::vector<std::uint64_t> ns;  // of all steps before `place`; empty: not asked for yet
  };
  void move_to(std::uint32_t series, std::size_t place, Sum& sum);

  const SessionIndex& index_;
  std::vector<Sum> last_;             // per series
  std::vector<std::uint64_t> op_ns_;  // of one step
  std::vector<std::uint64_t> answer_;
};

}  // namespace tt
