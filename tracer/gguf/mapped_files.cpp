#include "tracer/gguf/mapped_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace tt {

MappedFiles MappedFiles::of_this_process(std::span<const ModelFile> files) {
  std::ifstream maps("/proc/self/maps");
  return of_maps(maps, files);
}

MappedFiles MappedFiles::of_maps(std::istream& maps, std::span<const ModelFile> files) {
  std::vector<std::string> paths;
  for (const ModelFile& file : files) {
    std::error_code ignored;
    auto resolved = std::filesystem::canonical(file.path, ignored);
    paths.push_back(ignored ? file.path : resolved.string());
  }

  MappedFiles result;
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping{};
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n",
                    &mapping.begin, &mapping.end, &mapping.offset, &name_at) < 3 ||
        name_at == 0) {
      continue;
    }
    const auto found = std::ranges::find(paths, line.substr(static_cast<std::size_t>(name_at)));
    if (found == paths.end()) continue;
    mapping.file = static_cast<std::uint32_t>(found - paths.begin());
    // Merge adjacent parts of one mapping, which mlock and madvise split.
    if (!result.mappings_.empty()) {
      Mapping& last = result.mappings_.back();
      if (last.end == mapping.begin && last.file == mapping.file &&
          last.offset + (last.end - last.begin) == mapping.offset) {
        last.end = mapping.end;
        continue;
      }
    }
    result.mappings_.push_back(mapping);
  }
  return result;
}

std::vector<MappedRange> MappedFiles::ranges() const {
  std::vector<MappedRange> ranges;
  for (const Mapping& mapping : mappings_)
    ranges.push_back({.begin = mapping.begin, .end = mapping.end});
  return ranges;
}

std::optional<FileRange> MappedFiles::locate(std::uint64_t at, std::uint64_t length) const {
  const auto after = std::ranges::upper_bound(mappings_, at, {}, &Mapping::begin);
  if (after == mappings_.begin()) return std::nullopt;
  const Mapping& mapping = *std::prev(after);
  if (at + length > mapping.end) return std::nullopt;
  return FileRange{
      .file = mapping.file, .offset = mapping.offset + (at - mapping.begin), .length = length};
}

std::optional<std::uint64_t> MappedFiles::address_of(const FileRange& range) const {
  for (const Mapping& mapping : mappings_) {
    const std::uint64_t end = mapping.offset + (mapping.end - mapping.begin);
    if (mapping.file == range.file && mapping.offset <= range.offset &&
        range.offset + range.length <= end)
      return mapping.begin + (range.offset - mapping.offset);
  }
  return std::nullopt;
}

}  // namespace tt
