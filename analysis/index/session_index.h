// In-memory index for aggregates over many steps: built once from a session file and
// extended while the session grows. For totals over all steps SessionTotals (session_totals.h)
// needs no memory per step and is built faster; it cannot answer for a range of steps.
//
// Motivation. A session of 100 million accesses has 85,000 steps of 400 ops. A raster of it
// has 1400 columns, each with the time of every op and the bytes of every access of its
// steps. Iterating over all accesses takes seconds, and decoding all times takes a quarter of
// a second. But a step is a template plus a few numbers, so sums over steps reduce to sums
// over few items:
//
//   - Series. A series is all steps with the same template, phase, allocation and number of
//     executed ops (a cancelled step ran fewer); they need not be consecutive. Within a
//     series, an access differs from step to step only in its number of parts.
//   - Parts. An access that depends on a list (rows, experts, cells) touches as many parts as
//     the list has distinct numbers. Accesses with an equal PartRule touch the same number of
//     parts; a template has a few rules, a template with experts one or two per layer. Per
//     step and rule, the index stores the prefix sum over the steps of the series (12 bytes):
//     the bytes of an access in a range of steps are a difference times its unit. If parts
//     are separate accesses, the list is stored, too: for experts a bit per expert, for
//     embedding rows 4 bytes per touched row.
//   - Times. The times of each step are stored packed as in the file (1 to 2 bytes per op).
//     Per op, the prefix sum over the steps of the series is stored at every kStride-th step
//     (total ops / kStride * 8 bytes). For a step between two of these, the steps from the
//     nearer one are added, at most kStride / 2. So the time of every op in any range of steps
//     costs a difference of two vectors and a few microseconds. The few ops whose time is divided
//     among the parts of an access (experts, rows) are also stored unpacked: their parts differ
//     from step to step.
//
// So the cost of a raster column depends on the accesses of a template, not on the number of
// steps. The index is not stored in the file. bench/analysis/raster_bench measures its cost.
//
// A step that is damaged, or whose lists do not match its template, is in no series and in
// damaged(); sums exclude it. A step without a template (level MINIMAL) is in no series,
// because it has no accesses.
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
#include "analysis/common/verdict.h"
#include "analysis/index/blob_list.h"
#include "analysis/index/fault_location.h"
#include "analysis/index/number_table.h"
#include "analysis/index/step_decoder.h"
#include "analysis/index/template_outline.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct IndexedStep {
  Ns begin{}, end{}, first_op{};
  std::uint32_t first_token = 0, n_tokens = 0;
  std::uint32_t series = kNone;  // kNone: no accesses
  std::uint32_t place = 0;       // index in Series::steps
  Phase phase = Phase::Other;
  bool timed = false;  // whether its ops have times
  bool learned = false;
  bool interrupted = false;  // dropped or aborted
  bool left_out = false;
  std::optional<Verdict> verdict{};  // nullopt: not recorded
  // Sums over all ops and accesses of the step.
  std::uint64_t op_ns = 0;
  AccessTotals totals;

  // Its duration is that of the model (analysis/tables/session_conditions.h).
  bool is_normal() const { return !learned && !interrupted && !left_out; }
};
// The range of tokens that a step covers on the token axis; a step without tokens covers the
// next token.
constexpr std::uint64_t token_begin(const IndexedStep& s) { return s.first_token; }
constexpr std::uint64_t token_end(const IndexedStep& s) {
  return std::uint64_t{s.first_token} + (s.n_tokens == 0 ? 1 : s.n_tokens);
}

// A page fault of a step, or `count` faults without further information.
struct IndexedFault {
  std::uint32_t step = 0;
  bool has_details = true;  // whether `fault` is set; else only `count` is known
  std::uint64_t count = 1;
  PageFault fault{};
  FaultLocation place{};  // indices in the outline of the step's series
};

// Access the per-step data of a series through its member functions.
struct Series {
  TemplateId graph;
  AllocationId allocation;
  Phase phase = Phase::Other;
  std::uint32_t ran = 0;  // ops that ran
  std::shared_ptr<const TemplateOutline> outline;
  std::vector<std::uint32_t> steps;  // ascending

  // Sums over the first `place` steps; `place` <= steps.size().
  std::span<const std::uint64_t> parts_before(std::size_t place) const { return parts[place]; }
  std::span<const std::uint32_t> hits_before(std::size_t place) const { return hits[place]; }
  // The parts of one step that are separate accesses. set_of(): the bit set of one rule.
  // numbers_of(): the lists of all listed rules, in rule order, each ascending.
  std::span<const std::uint64_t> set_of(const OutlineRule& rule, std::size_t place) const {
    return sets[place].subspan(rule.first_word, rule.words);
  }
  std::span<const std::uint32_t> numbers_of(std::size_t place) const {
    const auto from = static_cast<std::size_t>(number_ends[place]);
    return std::span(numbers).subspan(from,
                                      static_cast<std::size_t>(number_ends[place + 1]) - from);
  }
  // Calls `each(rule, numbers)` for every listed rule.
  template <class Each>
  void for_each_listed(std::size_t place, Each each) const;

  std::uint32_t timed = 0;                 // steps with times
  NumberTable<std::uint64_t> parts;        // steps + 1 rows; one column per rule
  NumberTable<std::uint32_t> hits;         // the same, counting steps with any part
  NumberTable<std::uint64_t> sets;         // one row per step; TemplateOutline::words columns
  std::vector<std::uint64_t> number_ends;  // steps + 1 offsets into `numbers`
  std::vector<std::uint32_t> numbers;
  BlobList packed_times;                  // per step, input of unpack_times()
  NumberTable<std::uint64_t> divided_ns;  // per step, of TemplateOutline::divided_ops
  NumberTable<std::uint64_t> times;       // per op, sums before step 0, kStride, 2 * kStride...
  std::vector<std::uint64_t> time_sum;    // per op, sums over all steps
  // Totals of one step: `fixed`, plus per_part * the number of parts of each rule.
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
  explicit SessionIndex(LeaveOut leave_out = LeaveOut::Nothing) : leave_out_(leave_out) {}
  // Every call on one object must use a reader of the same session.
  // Steps that are left out are in no series, as if they had no accesses.
  static std::expected<SessionIndex, TraceError> build(
      const SessionReader& reader, const ContinueCheck& keep_going = never_cancel,
      LeaveOut leave_out = LeaveOut::Nothing);
  // Adds the steps that were appended to the file since the last call. After an error or
  // Cancelled, the index contains the steps added so far.
  std::expected<void, TraceError> extend(const SessionReader& reader,
                                         const ContinueCheck& keep_going = never_cancel);

  const SessionInfo& info() const { return info_; }
  const SessionNames& names() const { return row_.names(); }
  const std::vector<IndexedStep>& steps() const { return steps_; }
  const std::vector<Series>& series() const { return series_; }
  const std::vector<StepId>& damaged() const { return damaged_; }
  LeaveOut leave_out() const { return leave_out_; }
  std::size_t left_out() const { return left_out_; }                   // number of steps
  const std::vector<IndexedFault>& faults() const { return faults_; }  // by step, then time
  // Whether begins and ends (or tokens) never decrease from step to step. True for recorded
  // sessions; otherwise queries check every step.
  bool in_time_order() const { return in_time_order_; }
  bool in_token_order() const { return in_token_order_; }
  // Of all steps; damaged steps are placed at the end of the previous step.
  struct Extent {
    Ns begin{INT64_MAX}, end{INT64_MIN};  // minimum begin, maximum end
    std::uint64_t tokens = 0;             // maximum token_end()
  };
  const Extent& extent() const { return extent_; }
  // The disjoint address ranges of the buffers that ops used:
  // (buffer name, first address) -> end address. Without tensors mapped from the file.
  using BufferRanges = std::map<std::pair<std::string, std::uint64_t>, std::uint64_t>;
  const BufferRanges& buffers() const { return buffers_; }
  // Addresses of the tensors of an allocation; empty: not recorded.
  std::span<const std::uint64_t> addresses(AllocationId id) const;

 private:
  using Key = std::tuple<TemplateId, AllocationId, Phase, std::uint32_t>;

  std::expected<void, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row);
  std::expected<void, TraceError> take_steps(const SessionReader& reader,
                                             const ContinueCheck& keep_going);
  std::expected<void, TraceError> take_faults(const SessionReader& reader,
                                              const ContinueCheck& keep_going);
  void add_damaged(StepId step);
  void add_step(const IndexedStep& step);
  Series& series_of(const Key& key);
  std::uint64_t add_times(Series& series, std::span<const std::byte> packed);
  void add_parts(Series& series, IndexedStep& step);
  void add_allocation(const SessionReader& reader, AllocationId id);

  LeaveOut leave_out_;
  std::size_t left_out_ = 0;
  SessionInfo info_;
  std::vector<IndexedStep> steps_;
  std::vector<Series> series_;
  std::map<Key, std::uint32_t> series_ids_;
  std::map<AllocationId, std::vector<std::uint64_t>> allocations_;
  BufferRanges buffers_;
  std::vector<StepId> damaged_;
  std::vector<IndexedFault> faults_;
  std::size_t faults_taken_ = 0;  // number of steps whose faults were added
  bool in_time_order_ = true, in_token_order_ = true;
  Extent extent_;
  StepDecoder row_;  // the step being added
};

// Op times summed over ranges of steps. Has the lifetime of one query.
class OpTimes {
 public:
  explicit OpTimes(const SessionIndex& index) : index_(index), last_(index.series().size()) {}

  // The time of each op that ran, summed over the steps [from, to) of a series. Cheapest if
  // `from` equals `to` of the previous call for this series. Valid until the next call.
  std::span<const std::uint64_t> between(std::uint32_t series, std::size_t from, std::size_t to);
  // The times of one step of the series; 0 for ops without a time. Valid until the next call.
  std::span<const std::uint64_t> of(std::uint32_t series, std::size_t place);

 private:
  struct Sum {
    std::size_t place = 0;
    std::vector<std::uint64_t> ns;  // sums over the steps before `place`; empty: not computed
  };
  void move_to(std::uint32_t series, std::size_t place, Sum& sum);

  const SessionIndex& index_;
  std::vector<Sum> last_;             // per series
  std::vector<std::uint64_t> op_ns_;  // of one step
  std::vector<std::uint64_t> answer_;
};

}  // namespace tt
