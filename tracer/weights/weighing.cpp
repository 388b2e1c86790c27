#include "tracer/weights/weighing.h"

#include <algorithm>
#include <iterator>

namespace tt {

std::span<const float> ColumnImportance::of_row(const GgufTensor& tensor, std::uint64_t row) const {
  const auto columns = static_cast<std::size_t>(tensor.ne[0]);
  const auto matrices = values.size() / std::max<std::size_t>(columns, 1);
  if (matrices == 0) return {};
  const std::uint64_t matrix =
      row / static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.ne[1], 1));
  return std::span(values).subspan(std::min<std::uint64_t>(matrix, matrices - 1) * columns,
                                   columns);
}

RowUses::RowUses(std::span<const Use> uses) {
  // First what is added where a range begins, less what ends there; then the sums.
  for (const Use& use : uses) {
    from_[use.rows.first] += use.reads;
    from_[use.rows.first + use.rows.count] -= use.reads;  // wraps around; the sums do not
  }
  std::uint64_t reads = 0;
  for (auto at = from_.begin(); at != from_.end();) {
    const bool changes = at->second != 0;
    reads += at->second;
    at->second = reads;
    at = changes ? std::next(at) : from_.erase(at);
  }
}

std::uint64_t RowUses::of(std::uint64_t row) const {
  const auto after = from_.upper_bound(row);
  return after == from_.begin() ? 0 : std::prev(after)->second;
}

std::vector<RowUses::Use> RowUses::read_rows() const {
  std::vector<Use> out;
  for (auto at = from_.begin(); at != from_.end(); ++at) {
    // Nothing is read behind the last entry.
    if (const auto next = std::next(at); at->second > 0 && next != from_.end())
      out.push_back(
          {.rows = {.first = at->first, .count = next->first - at->first}, .reads = at->second});
  }
  return out;
}

std::span<const float> TensorWeighing::columns(const GgufTensor& tensor, std::uint64_t row) const {
  return importance == nullptr ? std::span<const float>() : importance->of_row(tensor, row);
}

std::vector<RowUses::Use> TensorWeighing::rows(const GgufTensor& tensor) const {
  if (uses == nullptr) return {{.rows = all_rows(tensor), .reads = 1}};
  return uses->read_rows();
}

std::uint64_t TensorWeighing::all_reads(const GgufTensor& tensor) const {
  std::uint64_t sum = 0;
  for (const RowUses::Use& use : rows(tensor)) sum += use.rows.count * use.reads;
  return sum;
}

TensorWeighing Weighing::of(const std::string& tensor) const {
  static const RowUses kNotRead;
  TensorWeighing out;
  if (const auto found = importances.find(tensor); found != importances.end())
    out.importance = &found->second;
  if (uses) {
    const auto found = uses->find(tensor);
    out.uses = found == uses->end() ? &kNotRead : &found->second;
  }
  return out;
}

}  // namespace tt
