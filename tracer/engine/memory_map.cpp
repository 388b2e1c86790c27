#include "tracer/engine/memory_map.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tracer/gguf/mapped_files.h"

namespace tt {

namespace {

constexpr std::uint64_t kCurvePoints = 40;
constexpr std::uint64_t kPagesAtOnce = 1U << 16;
constexpr std::uint64_t kResidentUnits = 4096;  // of the model: bounds the number of ranges

// See `man mincore`: others are told that every page is resident.
bool reports_residency(const ModelFile& file) {
  struct stat info{};
  return stat(file.path.c_str(), &info) == 0 &&
         (info.st_uid == geteuid() || access(file.path.c_str(), W_OK) == 0);
}

void append(const FileRange& range, std::vector<FileRange>& ranges) {
  if (!ranges.empty() && ranges.back().file == range.file &&
      ranges.back().offset + ranges.back().length == range.offset)
    ranges.back().length += range.length;
  else
    ranges.push_back(range);
}

// The bytes of `range`, which is mapped at `address`, whose pages are in memory. Appends the units
// of it that are.
std::uint64_t find_resident(const FileRange& range, std::uint64_t address, std::uint64_t unit,
                            std::vector<FileRange>& ranges) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present;
  std::uint64_t bytes = 0, unit_begin = address, unit_bytes = 0;
  const std::uint64_t end = address + range.length;
  for (std::uint64_t at = address / page * page; at < end; at += kPagesAtOnce * page) {
    const std::uint64_t pages = std::min(kPagesAtOnce, (end - at + page - 1) / page);
    present.resize(pages);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the mapping
    if (mincore(reinterpret_cast<void*>(at), pages * page, present.data()) != 0) return 0;
    for (std::uint64_t i = 0; i < pages; ++i) {
      const std::uint64_t page_begin = std::max(address, at + i * page);
      const std::uint64_t page_end = std::min(end, at + (i + 1) * page);
      if ((present[i] & 1U) != 0) {
        bytes += page_end - page_begin;
        unit_bytes += page_end - page_begin;
      }
      const std::uint64_t length = page_end - unit_begin;
      if (length < unit && page_end < end) continue;
      if (2 * unit_bytes >= length)
        append(
            {.file = range.file, .offset = range.offset + unit_begin - address, .length = length},
            ranges);
      unit_begin = page_end;
      unit_bytes = 0;
    }
  }
  return bytes;
}

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
  map.residency_known = std::ranges::all_of(index.files(), reports_residency);
  const MappedFiles mapped = MappedFiles::of_this_process(index.files());
  std::uint64_t total = 0;
  for (const GgufTensor& tensor : index.tensors()) {
    total += tensor.file.length;
    map.tensors.push_back({.tensor = tensor.name,
                           .file = tensor.file.file,
                           .offset = tensor.file.offset,
                           .length = tensor.file.length});
  }
  std::ranges::sort(map.tensors, {},
                    [](const TensorResidency& one) { return std::tie(one.file, one.offset); });
  map.resident_unit = std::max(total / kResidentUnits, std::uint64_t{1});
  for (TensorResidency& one : map.tensors) {
    const FileRange range{.file = one.file, .offset = one.offset, .length = one.length};
    const auto address = mapped.address_of(range);
    if (!address) continue;
    one.mapped = true;
    one.resident = find_resident(range, *address, map.resident_unit, map.resident);
  }
  if (!map.residency_known) map.resident.clear();
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
