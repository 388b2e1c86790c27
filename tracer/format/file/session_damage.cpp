// Truncates a damaged session, in memory, before the first step that cannot be read.
#include <algorithm>
#include <format>
#include <set>
#include <utility>

#include "tracer/format/file/session_reader_impl.h"

namespace tt {

std::optional<std::uint32_t> SessionReader::readable_steps() const {
  return impl_->readable.transform(
      [](const Impl::ReadablePart& readable) { return readable.steps; });
}

std::expected<std::optional<std::uint32_t>, TraceError> SessionReader::truncate_at_damage(
    const std::function<bool()>& keep_going) {
  constexpr std::uint32_t kTokenBatch = 4096;
  // SQLite checks a page's cells only when it loads the page into its cache. Drop the cache,
  // so that damage found earlier is found again.
  sqlite3_db_release_memory(impl_->db.get());
  Impl::ReadablePart readable;
  std::set<AllocationId> allocations;
  std::vector<Token> tokens;
  std::uint32_t tokens_read = 0;
  const std::uint64_t all_tokens = token_count().value_or(UINT32_MAX);
  // Whether the step's template, allocation and tokens can be read.
  const auto is_readable = [&](const Step& step) {
    if (step.graph.v != 0) readable.templates.insert(step.graph);  // checked by step()
    if (step.allocation.v != 0 && allocations.insert(step.allocation).second &&
        !allocation(step.allocation))
      return false;
    const auto end = std::min(std::uint64_t{step.first_token} + step.n_tokens, all_tokens);
    while (tokens_read < end) {
      tokens.clear();
      const bool all = impl_->read_tokens(tokens_read, kTokenBatch, tokens).has_value();
      tokens_read += static_cast<std::uint32_t>(tokens.size());
      if (!all) break;
    }
    if (tokens_read < end) return false;
    readable.tokens = std::max(readable.tokens, static_cast<std::uint32_t>(end));
    return true;
  };
  // Number of steps before the first unreadable list of faults, of ranges in memory, of values or
  // of splits.
  std::uint64_t readable_list_steps = UINT64_MAX;
  std::expected<void, TraceError> lists;
  bool some_unreadable = false;
  std::uint64_t steps = 0;
  const auto count = [&](const auto& of) {
    steps = std::uint64_t{of.step.v} + 1;
    return !keep_going || keep_going();
  };
  const auto read_list = [&](StepList list) {
    switch (list) {
      case StepList::MajorFaults:
        return for_each_faults(StepId{0}, UINT32_MAX, count, FaultKind::Major);
      case StepList::MinorFaults:
        return for_each_faults(StepId{0}, UINT32_MAX, count, FaultKind::Minor);
      case StepList::Residency:
        return for_each_residency(StepId{0}, UINT32_MAX, count);
      case StepList::Values:
        return for_each_values(StepId{0}, UINT32_MAX, count);
      case StepList::Splits:
        break;
    }
    return for_each_splits(StepId{0}, UINT32_MAX, count);
  };
  for (std::size_t i = 0; i < kStepLists.size(); ++i) {
    steps = 0;
    const auto read = read_list(static_cast<StepList>(i));
    // The lists of values and of splits have read steps, too.
    sqlite3_db_release_memory(impl_->db.get());
    if (read) continue;
    readable.unreadable[i] = steps == 0;
    some_unreadable = some_unreadable || steps == 0;
    if (steps == 0 || steps >= readable_list_steps) continue;
    readable_list_steps = steps;
    lists = read;
  }
  // Read each step by scan and by key: in a damaged B-tree the two may differ.
  std::expected<void, TraceError> all;
  const auto scanned = for_each_step_row(StepId{0}, UINT32_MAX, [&](const StepRow& row) {
    if (keep_going && !keep_going()) {
      all = std::unexpected(cancelled_error());
    } else if (const auto next = step(row.head.id); !next) {
      all = std::unexpected(next.error());
    } else if (!lists && row.head.id.v >= readable_list_steps) {
      all = lists;
    } else if (!is_readable(*next)) {
      all = std::unexpected(impl_->damage(std::format("step {}", row.head.id.v)));
    } else {
      ++readable.steps;
    }
    return all.has_value();
  });
  if (all) all = scanned;
  if (all && !some_unreadable) return std::nullopt;
  if (!all && (all.error().kind != TraceError::Kind::Damaged || readable.steps == 0))
    return std::unexpected(all.error());
  impl_->readable = std::move(readable);
  return impl_->readable->steps;
}

}  // namespace tt
