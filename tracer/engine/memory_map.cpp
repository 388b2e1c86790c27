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

// See `man mincore`: others are told that every page is resident.
bool reports_residency(const ModelFile& file) {
  struct stat info{};
  return stat(file.path.c_str(), &info) == 0 &&
         (info.st_uid == geteuid() || access(file.path.c_str(), W_OK) == 0);
}

// Bytes of [address, address + length) whose pages are in memory.
std::uint64_t resident_bytes(std::uint64_t address, std::uint64_t length) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present;
  std::uint64_t bytes = 0;
  const std::uint64_t end = address + length;
  for (std::uint64_t at = address / page * page; at < end; at += kPagesAtOnce * page) {
    const std::uint64_t pages = std::min(kPagesAtOnce, (end - at + page - 1) / page);
    present.resize(pages);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the mapping
    if (mincore(reinterpret_cast<void*>(at), pages * page, present.data()) != 0) return 0;
    for (std::uint64_t i = 0; i < pages; ++i) {
      if ((present[i] & 1U) == 0) continue;
      const std::uint64_t begin = at + i * page;
      bytes += std::min(end, begin + page) - std::max(address, begin);
    }
  }
  return bytes;
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
    TensorResidency one{.tensor = tensor.name,
                        .file = tensor.file.file,
                        .offset = tensor.file.offset,
                        .length = tensor.file.length};
    if (const auto address = mapped.address_of(tensor.file)) {
      one.mapped = true;
      one.resident = resident_bytes(*address, tensor.file.length);
    }
    total += one.length;
    map.tensors.push_back(std::move(one));
  }
  std::ranges::sort(map.tensors, {},
                    [](const TensorResidency& one) { return std::tie(one.file, one.offset); });
  if (const auto plan = manager.ranges()) add_plan(*plan, map.tensors);

  std::vector<std::uint64_t> budgets;
  for (std::uint64_t i = 1; i <= kCurvePoints; ++i) budgets.push_back(total / kCurvePoints * i);
  map.curve = manager.predict(budgets, map.disk_measured);
  return map;
}

}  // namespace tt
