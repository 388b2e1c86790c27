#include "tracer/engine/memory_map.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tracer/gguf/file_residency.h"

namespace tt {

namespace {

constexpr std::uint64_t kCurvePoints = 40;

// By file and offset. Weights that share a page share its range.
std::vector<MemoryRange> disjoint(std::vector<MemoryRange> ranges) {
  std::ranges::sort(ranges, {},
                    [](const MemoryRange& one) { return std::tie(one.file, one.offset); });
  std::vector<MemoryRange> out;
  for (MemoryRange range : ranges) {
    const std::uint64_t before =
        out.empty() || out.back().file != range.file ? 0 : out.back().offset + out.back().length;
    const std::uint64_t end = range.offset + range.length;
    if (end <= before) continue;
    range.offset = std::max(range.offset, before);
    range.length = end - range.offset;
    if (range.offset == before && !out.empty() && out.back().file == range.file &&
        out.back().pinned == range.pinned)
      out.back().length += range.length;
    else
      out.push_back(range);
  }
  return out;
}

void add_plan(const std::vector<MemoryRange>& plan, std::vector<TensorResidency>& tensors) {
  for (const MemoryRange& range : plan) {
    const std::uint64_t end = range.offset + range.length;
    auto tensor = std::ranges::partition_point(tensors, [&](const TensorResidency& one) {
      return std::tie(one.file, one.offset) < std::tie(range.file, range.offset);
    });
    // The tensor before may reach into the range.
    if (tensor != tensors.begin()) --tensor;
    for (; tensor != tensors.end(); ++tensor) {
      if (tensor->file != range.file) {
        if (tensor->file > range.file) break;
        continue;
      }
      if (tensor->offset >= end) break;
      const std::uint64_t from = std::max(tensor->offset, range.offset);
      const std::uint64_t to = std::min(tensor->offset + tensor->length, end);
      if (from < to) (range.pinned ? tensor->pinned : tensor->streamed) += to - from;
    }
  }
}

}  // namespace

MemoryMap memory_map_of(const GgufIndex& index, const MemoryManager& manager) {
  MemoryMap map;
  const FileResidency residency(index);
  FileResidency::Parts parts = residency.read();
  map.residency_known = residency.unavailable() != FileResidency::kNotTold;
  map.resident_unit = residency.unit();
  if (map.residency_known) map.resident = std::move(parts.resident);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < parts.bytes.size(); ++i) {
    const auto& [name, file, address] = residency.weights()[i];
    total += file.length;
    map.tensors.push_back({.tensor = name,
                           .file = file.file,
                           .offset = file.offset,
                           .length = file.length,
                           .mapped = parts.bytes[i].has_value(),
                           .resident = parts.bytes[i].value_or(0)});
  }
  if (const auto plan = manager.ranges()) {
    map.planned = disjoint(*plan);
    add_plan(map.planned, map.tensors);
  }

  std::vector<std::uint64_t> budgets;
  for (std::uint64_t i = 1; i <= kCurvePoints; ++i) budgets.push_back(total / kCurvePoints * i);
  map.curve = manager.predict(budgets, map.disk_measured);
  return map;
}

}  // namespace tt
