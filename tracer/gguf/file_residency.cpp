#include "tracer/gguf/file_residency.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "tracer/gguf/mapped_files.h"

namespace tt {

namespace {

constexpr std::uint64_t kPagesAtOnce = 1U << 16;
constexpr std::uint64_t kUnits = 4096;  // of the model: bounds the number of ranges

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

}  // namespace

FileResidency::FileResidency(const GgufIndex& index) {
  const MappedFiles mapped = MappedFiles::of_this_process(index.files());
  std::uint64_t total = 0;
  bool some_mapped = false;
  for (const GgufTensor& tensor : index.tensors()) {
    total += tensor.file.length;
    weights_.push_back(
        {.name = tensor.name, .file = tensor.file, .address = mapped.address_of(tensor.file)});
    some_mapped = some_mapped || weights_.back().address.has_value();
  }
  std::ranges::sort(weights_, {},
                    [](const Weight& one) { return std::tie(one.file.file, one.file.offset); });
  unit_ = std::max(total / kUnits, std::uint64_t{1});
  if (!std::ranges::all_of(index.files(), reports_residency))
    unavailable_ = kNotTold;
  else if (!some_mapped)
    unavailable_ = "the weights were copied when the model was loaded";
}

FileResidency::Parts FileResidency::read() const {
  Parts parts;
  for (const Weight& of : weights_)
    parts.bytes.push_back(of.address.transform([&](std::uint64_t address) {
      return find_resident(of.file, address, unit_, parts.resident);
    }));
  return parts;
}

}  // namespace tt
