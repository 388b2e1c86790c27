#include "attach/collector/cache_sequences.h"

#include <algorithm>
#include <cstddef>

namespace tt::attach {

namespace {

// A damaged record can have any numbers of cells.
constexpr std::size_t kMaxCells = std::size_t{1} << 22U;
constexpr std::int64_t kMaxStreams = 1 << 16;

// A cell beside its own that the token attends to; -1: none, it begins a sequence.
std::int64_t other_cell(const StepCells& cells, std::size_t token) {
  const auto [first, second] = cells.attended[token];
  return first == cells.own[token] ? second : first;
}

}  // namespace

std::vector<std::uint32_t> CacheSequences::of(const StepCells& cells) const {
  std::vector<std::uint32_t> out;
  if (cells.own.empty() || cells.per_stream <= 0) return out;
  if (cells.streams > 1) {
    for (const std::int64_t own : cells.own)
      out.push_back(static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(own / cells.per_stream, 0, kMaxStreams)));
    return out;
  }
  if (cells.attended.size() != cells.own.size()) return out;
  std::unordered_map<std::int64_t, std::uint32_t> of_step;  // by cell
  std::uint32_t next = next_;
  for (std::size_t i = 0; i < cells.own.size(); ++i) {
    const std::int64_t other = other_cell(cells, i);
    const auto in_step = of_step.find(other);
    const auto before = by_cell_.find(other);
    if (in_step != of_step.end()) {
      out.push_back(in_step->second);
    } else if (other >= 0 && before != by_cell_.end()) {
      out.push_back(before->second);
    } else {
      out.push_back(next++);
      if (other >= 0) of_step.emplace(other, out.back());
    }
    of_step.insert_or_assign(cells.own[i], out.back());
  }
  return out;
}

void CacheSequences::add(const StepCells& cells, std::span<const std::uint32_t> sequences) {
  if (cells.streams > 1 || sequences.size() != cells.own.size()) return;
  if (by_cell_.size() > kMaxCells) by_cell_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    by_cell_.insert_or_assign(cells.own[i], sequences[i]);
    if (const std::int64_t other = other_cell(cells, i); other >= 0)
      by_cell_.insert_or_assign(other, sequences[i]);
    next_ = std::max(next_, sequences[i] + 1);
  }
}

}  // namespace tt::attach
