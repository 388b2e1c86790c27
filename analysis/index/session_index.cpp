#include "analysis/index/session_index.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <tuple>
#include <utility>

#include "analysis/tables/tensor_table.h"

namespace tt {

namespace {

void add_range(SessionIndex::BufferRanges& ranges, const std::string& buffer, std::uint64_t begin,
               std::uint64_t end) {
  // Ranges with a smaller gap are merged: padding between tensors, unused tensors.
  constexpr std::uint64_t kGap = std::uint64_t{1} << 20;
  auto at = ranges.upper_bound({buffer, begin});
  if (at != ranges.begin()) {
    const auto before = std::prev(at);
    if (before->first.first == buffer &&
        (before->second >= begin || begin - before->second <= kGap)) {
      if (end <= before->second) return;
      begin = before->first.second;
      at = ranges.erase(before);
    }
  }
  while (at != ranges.end() && at->first.first == buffer &&
         (at->first.second <= end || at->first.second - end <= kGap)) {
    end = std::max(end, at->second);
    at = ranges.erase(at);
  }
  ranges[{buffer, begin}] = end;
}

}  // namespace

std::expected<SessionIndex, TraceError> SessionIndex::build(const SessionReader& reader,
                                                            const ContinueCheck& keep_going,
                                                            LeaveOut leave_out) {
  SessionIndex index(leave_out);
  if (auto done = index.extend(reader, keep_going); !done) return std::unexpected(done.error());
  return index;
}

Status SessionIndex::extend(const SessionReader& reader, const ContinueCheck& keep_going) {
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  info_ = *std::move(info);
  constexpr std::uint32_t kMaxReserved = 1U << 18;  // the file's count is untrusted
  if (const auto count = reader.step_count(); count && steps_.empty())
    steps_.reserve(std::min(*count, kMaxReserved));
  if (auto taken = take_steps(reader, keep_going); !taken) return taken;
  return take_faults(reader, keep_going);
}

Status SessionIndex::take_steps(const SessionReader& reader, const ContinueCheck& keep_going) {
  while (true) {
    const std::size_t before = steps_.size();
    Status taken;
    const auto read = reader.for_each_step_row(StepId{static_cast<std::uint32_t>(before)},
                                               UINT32_MAX, [&](const SessionReader::StepRow& row) {
                                                 if (!keep_going()) {
                                                   taken = std::unexpected(cancelled_error());
                                                   return false;
                                                 }
                                                 taken = take(reader, row);
                                                 return taken.has_value();
                                               });
    if (!taken) return taken;
    if (read) return {};
    if (read.error().kind != TraceError::Kind::Damaged) return read;
    if (!keep_going()) return std::unexpected(cancelled_error());
    // Skip the damaged row; valid rows may follow. After the last row, all further steps up to
    // the file's step count are missing, limited to kMaxLost.
    constexpr std::uint64_t kMaxLost = 1U << 20;
    const auto count = reader.step_count(), rows = reader.step_rows();
    if (!count) return std::unexpected(count.error());
    const bool after_last_row = rows && *rows <= steps_.size();
    const std::uint64_t end =
        std::min<std::uint64_t>(*count, after_last_row ? *rows + kMaxLost : steps_.size() + 1);
    if (steps_.size() >= end) return {};
    while (steps_.size() < end) add_damaged(StepId{static_cast<std::uint32_t>(steps_.size())});
  }
}

// Adds the faults of the steps added so far: the recorder commits both together.
Status SessionIndex::take_faults(const SessionReader& reader, const ContinueCheck& keep_going) {
  std::map<std::uint32_t, FaultLocator> places;  // per series
  std::vector<std::uint64_t> op_ns;
  std::vector<Ns> ends;
  const auto first = static_cast<std::uint32_t>(faults_taken_);
  const auto count = static_cast<std::uint32_t>(steps_.size() - faults_taken_);
  const std::size_t before = faults_.size();
  bool wanted = true;
  auto read = reader.for_each_faults(StepId{first}, count, [&](const StepFaults& of) {
    if (wanted = keep_going(); !wanted) return false;
    const IndexedStep& step = steps_[of.step.v];
    if (step.left_out) return true;
    if (of.faults.empty()) {
      faults_.push_back({.step = of.step.v, .has_details = false, .count = of.count});
      return true;
    }
    FaultLocator* finds = nullptr;
    if (step.series != kNone) {
      const Series& series = series_[step.series];
      finds = &places.try_emplace(step.series, series.outline, addresses(series.allocation))
                   .first->second;
      (void)unpack_times(series.packed_times[step.place],
                         op_ns);  // was unpacked successfully before
      ends.clear();
      auto end = static_cast<std::uint64_t>(step.first_op.v);
      for (const std::uint64_t ns : op_ns) ends.push_back(Ns{static_cast<std::int64_t>(end += ns)});
      finds->begin_step(step.first_op, ends);
    }
    for (const PageFault& fault : of.faults)
      faults_.push_back({.step = of.step.v,
                         .fault = fault,
                         .place = finds == nullptr ? FaultLocation{} : finds->of(fault)});
    return true;
  });
  if (read && !wanted) read = std::unexpected(cancelled_error());
  if (!read) {
    faults_.resize(before);
    return read;
  }
  faults_taken_ = steps_.size();
  return {};
}

void SessionIndex::add_damaged(StepId step) {
  damaged_.push_back(step);
  IndexedStep lost;
  if (!steps_.empty()) {  // placed at the end of the previous step
    lost.begin = lost.end = lost.first_op = steps_.back().end;
    lost.first_token = steps_.back().first_token + steps_.back().n_tokens;
  }
  add_step(lost);
}

void SessionIndex::add_step(const IndexedStep& step) {
  extent_.begin = std::min(extent_.begin, step.begin);
  extent_.end = std::max({extent_.end, step.begin, step.end});
  extent_.tokens = std::max(extent_.tokens, token_end(step));
  steps_.push_back(step);
}

Status SessionIndex::take(const SessionReader& reader, const SessionReader::StepRow& row) {
  const Step& head = row.head;
  IndexedStep step{.begin = head.begin,
                   .end = head.end,
                   .first_op = head.first_op,
                   .first_token = head.first_token,
                   .n_tokens = head.n_tokens,
                   .phase = head.phase,
                   .learned = head.timing == Timing::Learned,
                   .interrupted = head.dropped || head.aborted,
                   .left_out = is_left_out(leave_out_, head.conditions, head.threads),
                   .verdict = verdict_of(head.conditions, head.threads),
                   .totals = {}};
  if (!steps_.empty()) {
    const IndexedStep& last = steps_.back();
    if (step.begin < last.begin || step.end < last.end) in_time_order_ = false;
    if (token_begin(step) < token_begin(last) || token_end(step) < token_end(last))
      in_token_order_ = false;
  }
  if (step.end < step.begin) in_time_order_ = false;
  left_out_ += step.left_out;
  if (head.graph.v == 0 || step.left_out) {
    add_step(step);
    return {};
  }

  const auto fits = row_.take(reader, row, OutlineTimes::Unpack);
  if (!fits) return std::unexpected(fits.error());
  if (!*fits) {
    add_damaged(head.id);
    return {};
  }
  Series& series = series_of({head.graph, head.allocation, head.phase, row_.ran()});
  if (series.steps.empty()) add_allocation(reader, head.allocation);
  step.series = static_cast<std::uint32_t>(&series - series_.data());
  step.place = static_cast<std::uint32_t>(series.steps.size());
  step.timed = row_.timed();
  add_parts(series, step);
  step.op_ns = add_times(series, row.packed.first(row_.times_bytes()));
  series.timed += step.timed;
  series.steps.push_back(head.id.v);
  add_step(step);
  return {};
}

Series& SessionIndex::series_of(const Key& key) {
  const auto [known, fresh] =
      series_ids_.try_emplace(key, static_cast<std::uint32_t>(series_.size()));
  if (fresh) {
    const auto& [graph, allocation, phase, ran] = key;
    const std::shared_ptr<const TemplateOutline>& outline = row_.outline();
    Series series{.graph = graph,
                  .allocation = allocation,
                  .phase = phase,
                  .ran = ran,
                  .outline = outline,
                  .steps = {},
                  .timed = 0,
                  .parts = NumberTable<std::uint64_t>(outline->rules.size()),
                  .hits = NumberTable<std::uint32_t>(outline->rules.size()),
                  .sets = NumberTable<std::uint64_t>(outline->words),
                  .number_ends = {0},
                  .numbers = {},
                  .packed_times = {},
                  .divided_ns = NumberTable<std::uint64_t>(outline->divided_ops.size()),
                  .times = NumberTable<std::uint64_t>(ran),
                  .time_sum = std::vector<std::uint64_t>(ran),
                  .fixed = {},
                  .per_part = std::vector<Series::PerPart>(outline->rules.size())};
    series.parts.add_zeros();
    series.hits.add_zeros();
    for (const OutlineOp& op : std::span(outline->ops).first(ran)) {
      for (const OutlineAccess& access :
           std::span(outline->accesses).subspan(op.first_access, op.accesses)) {
        if (access.rule == kNone) {
          ++series.fixed.accesses;
          (access.write ? series.fixed.written : series.fixed.read) += access.unit;
        } else {
          Series::PerPart& per = series.per_part[access.rule];
          (series.outline->rules[access.rule].rule.separate ? per.accesses : per.accesses_if_any) +=
              1;
          (access.write ? per.written : per.read) += access.unit;
        }
      }
    }
    series_.push_back(std::move(series));
  }
  return series_[known->second];
}

// Returns the total time of the ops of the step.
std::uint64_t SessionIndex::add_times(Series& series, std::span<const std::byte> packed) {
  series.packed_times.add(packed);
  if (series.steps.size() % kStride == 0)
    std::ranges::copy(series.time_sum, series.times.add_zeros().begin());
  std::uint64_t all = 0;
  const auto op_ns = row_.op_ns();
  for (std::size_t i = 0; i < op_ns.size(); ++i) {
    series.time_sum[i] += op_ns[i];
    all += op_ns[i];
  }
  const auto divided = series.divided_ns.add_zeros();
  for (std::size_t i = 0; i < divided.size(); ++i)
    if (const std::uint32_t op = series.outline->divided_ops[i]; op < op_ns.size())
      divided[i] = op_ns[op];
  return all;
}

void SessionIndex::add_parts(Series& series, IndexedStep& step) {
  const std::vector<OutlineRule>& rules = series.outline->rules;
  const auto parts = series.parts.add_copy_of_last();
  const auto hits = series.hits.add_copy_of_last();
  const auto sets = series.sets.add_zeros();
  step.totals = series.fixed;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const StepDecoder::Parts named = row_.parts_of(rules[r]);
    std::ranges::copy(named.set, sets.begin() + rules[r].first_word);
    for (const std::int64_t n : named.numbers)
      series.numbers.push_back(static_cast<std::uint32_t>(n));
    const std::uint64_t count = named.count;
    parts[r] += count;
    hits[r] += count > 0;
    const Series::PerPart& per = series.per_part[r];
    step.totals.accesses += per.accesses * count + (count > 0 ? per.accesses_if_any : 0);
    step.totals.read.v += per.read.v * count;
    step.totals.written.v += per.written.v * count;
  }
  series.number_ends.push_back(series.numbers.size());
}

// An allocation that cannot be read is skipped and is missing on the buffer axis.
void SessionIndex::add_allocation(const SessionReader& reader, AllocationId id) {
  if (id.v == 0 || allocations_.contains(id)) return;
  const auto allocation = reader.allocation(id);
  if (!allocation) return;
  const auto graph = reader.graph(allocation->graph);
  if (!graph) return;
  for (std::size_t i = 0; i < allocation->addresses.size(); ++i) {
    const Tensor& tensor = (*graph)->tensors[i];
    const std::uint64_t begin = allocation->addresses[i], size = size_of(tensor).v;
    if (begin == 0 || size == 0 || tensor.source == Source::Disk || begin + size < begin) continue;
    add_range(buffers_, tensor.buffer, begin, begin + size);
  }
  allocations_[id] = allocation->addresses;
}

std::span<const std::uint64_t> SessionIndex::addresses(AllocationId id) const {
  const auto known = allocations_.find(id);
  return known == allocations_.end() ? std::span<const std::uint64_t>() : known->second;
}

void OpTimes::move_to(std::uint32_t series, std::size_t place, Sum& sum) {
  constexpr std::size_t kStride = SessionIndex::kStride;
  const Series& of_series = index_.series()[series];
  const std::size_t steps = of_series.steps.size();
  // Start from the nearest known sum: the current one, a stored one, or the end.
  assert(steps != 0);
  const std::size_t kept =
      std::min((place + kStride / 2) / kStride, (steps - 1) / kStride) * kStride;
  const auto distance = [&](std::size_t from) {
    return from > place ? from - place : place - from;
  };
  const bool has_sum = !sum.ns.empty();
  if (distance(steps) < distance(kept) && (!has_sum || distance(steps) < distance(sum.place))) {
    sum.ns = of_series.time_sum;
    sum.place = steps;
  } else if (!has_sum || distance(kept) < distance(sum.place)) {
    const auto at = of_series.times[kept / kStride];
    sum.ns.assign(at.begin(), at.end());
    sum.place = kept;
  }
  for (; sum.place < place; ++sum.place)
    std::ranges::transform(sum.ns, of(series, sum.place), sum.ns.begin(), std::plus{});
  for (; sum.place > place; --sum.place)
    std::ranges::transform(sum.ns, of(series, sum.place - 1), sum.ns.begin(), std::minus{});
}

std::span<const std::uint64_t> OpTimes::between(std::uint32_t series, std::size_t from,
                                                std::size_t to) {
  if (from + 1 == to) return of(series, from);
  Sum& sum = last_[series];
  if (sum.ns.empty() || sum.place != from) move_to(series, from, sum);
  answer_ = sum.ns;
  move_to(series, to, sum);
  std::ranges::transform(sum.ns, answer_, answer_.begin(), std::minus{});
  return answer_;
}

std::span<const std::uint64_t> OpTimes::of(std::uint32_t series, std::size_t place) {
  const Series& of_series = index_.series()[series];
  (void)unpack_times(of_series.packed_times[place], op_ns_);  // was unpacked successfully before
  op_ns_.resize(of_series.ran);
  return op_ns_;
}

}  // namespace tt
