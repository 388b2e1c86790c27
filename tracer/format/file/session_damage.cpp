// Where a damaged session ends: before the first step that cannot be read whole.
#include <algorithm>
#include <format>
#include <set>
#include <utility>

#include "tracer/format/file/session_reader_impl.h"

namespace tt {

std::optional<std::uint32_t> SessionReader::whole_steps() const {
  return impl_->whole.transform([](const Impl::Whole& whole) { return whole.steps; });
}

std::expected<std::optional<std::uint32_t>, TraceError> SessionReader::end_at_damage(
    const std::function<bool()>& keep_going) {
  constexpr std::uint32_t kTokensAtOnce = 4096;
  // SQLite looks at a page's cells when it comes into its cache, and not again while it is
  // there: what was found damaged once has to be found now.
  sqlite3_db_release_memory(impl_->db.get());
  Impl::Whole whole;
  std::set<AllocationId> allocations;
  std::vector<Token> tokens;
  std::uint32_t tokens_read = 0;
  const std::uint64_t all_tokens = token_count().value_or(UINT32_MAX);
  // Whether what the step stands on can be read.
  const auto stands = [&](const Step& step) {
    if (step.graph.v != 0) whole.templates.insert(step.graph);  // step() has held it against it
    if (step.allocation.v != 0 && allocations.insert(step.allocation).second &&
        !allocation(step.allocation))
      return false;
    const auto end = std::min(std::uint64_t{step.first_token} + step.n_tokens, all_tokens);
    while (tokens_read < end) {
      tokens.clear();
      const bool all = impl_->read_tokens(tokens_read, kTokensAtOnce, tokens).has_value();
      tokens_read += static_cast<std::uint32_t>(tokens.size());
      if (!all) break;
    }
    if (tokens_read < end) return false;
    whole.tokens = std::max(whole.tokens, static_cast<std::uint32_t>(end));
    return true;
  };
  std::uint64_t faults_whole = 0;  // steps before the first whose faults cannot be read
  const auto faults = for_each_faults(StepId{0}, UINT32_MAX, [&](const StepFaults& of) {
    faults_whole = std::uint64_t{of.step.v} + 1;
    return !keep_going || keep_going();
  });
  whole.no_faults = !faults && faults_whole == 0;
  // Both ways to a step: in a damaged tree one may find what the other does not.
  std::expected<void, TraceError> all;
  const auto walked = for_each_step_row(StepId{0}, UINT32_MAX, [&](const StepRow& row) {
    if (keep_going && !keep_going()) {
      all = std::unexpected(cancelled_error());
    } else if (const auto next = step(row.head.id); !next) {
      all = std::unexpected(next.error());
    } else if (!faults && !whole.no_faults && row.head.id.v >= faults_whole) {
      all = faults;
    } else if (!stands(*next)) {
      all = std::unexpected(impl_->damage(std::format("step {}", row.head.id.v)));
    } else {
      ++whole.steps;
    }
    return all.has_value();
  });
  if (all) all = walked;
  if (all && !whole.no_faults) return std::nullopt;
  if (!all && (all.error().kind != TraceError::Kind::Damaged || whole.steps == 0))
    return std::unexpected(all.error());
  impl_->whole = std::move(whole);
  return impl_->whole->steps;
}

}  // namespace tt
