#include "analysis/index/step_decoder.h"

#include <algorithm>
#include <cstddef>

namespace tt {

namespace {

// Whether the numbers of a list are strictly ascending, and so distinct and sorted.
bool is_ascending(std::span<const StepOutline::Run> runs) {
  // Nothing below overflows: a list has at most kMaxStepValues numbers.
  constexpr std::int64_t kMax = std::int64_t{1} << 48, kMaxDelta = std::int64_t{1} << 24;
  std::int64_t before = -kMax;
  for (const StepOutline::Run& run : runs) {
    if (run.count > 1 && run.delta <= 0) return false;
    if (run.first <= before || run.first > kMax || (run.count > 1 && run.delta > kMaxDelta))
      return false;
    before = run.first + static_cast<std::int64_t>(run.count - 1) * (run.count > 1 ? run.delta : 0);
  }
  return true;
}

// How many numbers of a run are less than `limit`.
std::uint64_t below(const StepOutline::Run& run, std::int64_t limit) {
  if (run.first >= limit) return 0;
  if (run.count == 1) return 1;
  const auto room = static_cast<std::uint64_t>(limit) - 1 - static_cast<std::uint64_t>(run.first);
  const std::uint64_t fit = room / static_cast<std::uint64_t>(run.delta) + 1;
  return std::min(fit, run.count);
}

void list(std::span<const StepOutline::Run> runs, std::vector<std::int64_t>& out) {
  out.clear();
  for (const StepOutline::Run& run : runs) {
    auto value = static_cast<std::uint64_t>(run.first);
    for (std::uint64_t i = 0; i < run.count; ++i) {
      out.push_back(static_cast<std::int64_t>(value));
      value += static_cast<std::uint64_t>(run.delta);
    }
  }
}

// Sorts the numbers and removes duplicates and numbers outside of [0, limit).
void keep_parts(std::vector<std::int64_t>& numbers, std::int64_t limit) {
  std::erase_if(numbers, [&](std::int64_t n) { return n < 0 || n >= limit; });
  if (!std::ranges::is_sorted(numbers)) std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
}

}  // namespace

std::expected<void, TraceError> StepDecoder::find_outline(const SessionReader& reader,
                                                          TemplateId id) {
  const auto known = outlines_.find(id);
  if (known != outlines_.end() && !known->second->batched) {
    outline_ = known->second;
    return {};
  }
  auto graph = reader.graph(id);
  if (!graph) return std::unexpected(graph.error());
  graph_ = *std::move(graph);
  if (known != outlines_.end()) {
    outline_ = known->second;
    return {};
  }
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  outline_ = std::make_shared<const TemplateOutline>(
      outline_of(*graph_, names_, {info->n_heads, info->n_heads_kv}, kernel_rules_of(*info)));
  outlines_[id] = outline_;
  return {};
}

std::expected<bool, TraceError> StepDecoder::take(const SessionReader& reader,
                                                  const SessionReader::StepRow& row,
                                                  OutlineTimes times) {
  if (const auto found = find_outline(reader, row.head.graph); !found) {
    if (found.error().kind == TraceError::Kind::Damaged ||
        found.error().kind == TraceError::Kind::NotFound)
      return false;
    return std::unexpected(found.error());
  }
  if (!unpack_outline(row.packed, step_, times, outline_->limits) || step_.ops != row.ops ||
      step_.ops > outline_->ops.size() ||
      (!step_.slots.empty() && step_.slots.size() != outline_->slots))
    return false;
  ran_ = static_cast<std::uint32_t>(step_.ops == 0 && !row.head.aborted ? outline_->ops.size()
                                                                        : step_.ops);
  return true;
}

StepDecoder::Parts StepDecoder::parts_of(const OutlineRule& of) {
  const PartRule& rule = of.rule;
  if (rule.slot.v >= step_.slots.size()) return {};
  const StepOutline::Slot& slot = step_.slots[rule.slot.v];
  const auto runs = step_.runs_of(slot);
  if (of.batched()) {
    if (slot.values == 0) return {};
    list(runs, listed_);
    return {.count = tt::parts_of(*graph_, of.example, listed_), .listed = slot.values};
  }
  if (slot.words != 0)
    return {
        .count = slot.distinct, .listed = slot.values, .set = step_.words_of(slot).first(of.words)};
  if (!rule.separate && is_ascending(runs)) {
    std::uint64_t count = 0;
    for (const StepOutline::Run& run : runs) count += below(run, rule.limit) - below(run, 0);
    return {.count = count, .listed = slot.values};
  }
  list(runs, listed_);
  keep_parts(listed_, rule.limit);
  return {.count = listed_.size(),
          .listed = slot.values,
          .numbers = rule.separate ? std::span<const std::int64_t>(listed_)
                                   : std::span<const std::int64_t>()};
}

}  // namespace tt
