#include "analysis/index/session_totals.h"

#include <algorithm>
#include <format>

namespace tt {

namespace {}  // namespace

std::vector<std::pair<std::uint32_t, std::uint64_t>> SeriesTotals::experts(
    std::uint32_t rule) const {
  const OutlineRule& of = outline->rules[rule];
  if (of.listed()) return {listed[rule].begin(), listed[rule].end()};
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counts;
  for (std::uint32_t n = 0; n < of.words * 64; ++n)
    if (const std::uint32_t count = sets.total(std::size_t{of.first_word} * 64 + n))
      counts.emplace_back(n, count);
  return counts;
}

Status SessionTotals::extend(const SessionReader& reader, const ContinueCheck& keep_going) {
  std::expected<bool, TraceError> taken = true;
  const auto read = reader.for_each_step_row(StepId{next_}, UINT32_MAX, [&](const auto& row) {
    taken = keep_going() ? take(reader, row)
                         : std::expected<bool, TraceError>(std::unexpected(cancelled_error()));
    if (!taken || !*taken) return false;
    ++next_;
    return true;
  });
  if (!taken) return std::unexpected(taken.error());
  if (*taken) return read;
  const auto step = reader.step(StepId{next_});  // reports the specific error
  if (!step) return std::unexpected(step.error());
  return std::unexpected(
      TraceError{TraceError::Kind::Damaged, std::format("step {} is damaged", next_)});
}

std::expected<bool, TraceError> SessionTotals::take(const SessionReader& reader,
                                                    const SessionReader::StepRow& row) {
  const Step& head = row.head;
  if (head.graph.v == 0) return true;  // no accesses
  const auto fits =
      row_.take(reader, row, times_ == Times::Sum ? OutlineTimes::Unpack : OutlineTimes::Skip);
  if (!fits || !*fits) return fits;
  SeriesTotals& series = series_of({head.phase, head.graph, row_.ran()});
  add_parts(series);
  ++series.steps;
  series.timed += row_.timed();
  const auto op_ns = row_.op_ns();
  for (std::size_t i = 0; i < op_ns.size(); ++i) series.op_ns[i] += op_ns[i];
  return true;
}

SeriesTotals& SessionTotals::series_of(const Key& key) {
  const auto [known, fresh] = series_.try_emplace(key);
  if (fresh) {
    const std::shared_ptr<const TemplateOutline>& outline = row_.outline();
    const std::size_t rules = outline->rules.size();
    known->second = {.outline = outline,
                     .op_ns = std::vector<std::uint64_t>(key.ran),
                     .parts = std::vector<std::uint64_t>(rules),
                     .hits = std::vector<std::uint64_t>(rules),
                     .sets = SetTally(outline->words),
                     .listed = std::vector<std::map<std::uint32_t, std::uint64_t>>(rules)};
  }
  return known->second;
}

void SessionTotals::add_parts(SeriesTotals& series) {
  const std::vector<OutlineRule>& rules = series.outline->rules;
  sets_.assign(series.outline->words, 0);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const StepDecoder::Parts named = row_.parts_of(rules[r]);
    series.parts[r] += named.count;
    series.hits[r] += named.count > 0;
    if (!rules[r].experts()) continue;
    std::ranges::copy(named.set, sets_.begin() + rules[r].first_word);
    for (const std::int64_t n : named.numbers) ++series.listed[r][static_cast<std::uint32_t>(n)];
  }
  series.sets.add(sets_);
}

}  // namespace tt
