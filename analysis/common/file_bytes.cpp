#include "analysis/common/file_bytes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tt {

void FileBytes::add(const FileRange& range) {
  constexpr std::size_t kUnmerged = 4096;  // limits memory
  if (range.empty()) return;
  ranges_.push_back(range);
  if (ranges_.size() > 2 * merged_ + kUnmerged) merge();
}

void FileBytes::add_reads(const GraphTemplate& graph, const StepAccess& access) {
  if (access.write || graph.tensor(graph.root(access.tensor)).source != Source::Disk) return;
  add(access.range);
}

Bytes FileBytes::size() {
  merge();
  Bytes sum{};
  for (const FileRange& range : ranges_) sum += Bytes{range.length};
  return sum;
}

void FileBytes::merge() {
  std::ranges::sort(ranges_, {}, [](const FileRange& range) {
    return std::tuple(range.file, range.offset, range.length);
  });
  std::vector<FileRange> merged;
  for (const FileRange& range : ranges_) {
    if (merged.empty() || merged.back().file != range.file ||
        range.offset - merged.back().offset > merged.back().length) {
      merged.push_back(range);
      continue;
    }
    FileRange& last = merged.back();
    last.length = std::max(last.length, range.offset - last.offset + range.length);
  }
  ranges_ = std::move(merged);
  merged_ = ranges_.size();
}

Bytes mapped_bytes_of(const GraphTemplate& graph, std::span<const Access> accesses,
                      const Step& step) {
  FileBytes bytes;
  for_each_access(graph, accesses, step,
                  [&](const StepAccess& access) { bytes.add_reads(graph, access); });
  return bytes.size();
}

}  // namespace tt
