#include "tracer/gguf/mapped_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace tt {

MappedFiles MappedFiles::of_this_process(std::span<const ModelFile> files) {
  std::vector<std::string> paths;
  for (const ModelFile& file : files) {
    std::error_code ignored;
    auto resolved = std::filesystem::canonical(file.path, ignored);
    paths.push_back(ignored ? file.path : resolved.string());
  }

  MappedFiles result;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Stretch stretch{};
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n",
                    &stretch.begin, &stretch.end, &stretch.offset, &name_at) < 3 ||
        name_at == 0) {
      continue;
    }
    const auto found = std::ranges::find(paths, line.substr(static_cast<std::size_t>(name_at)));
    if (found == paths.end()) continue;
    stretch.file = static_cast<std::uint32_t>(found - paths.begin());
    // Adjacent pieces of one mapping (mlock and madvise split them) are one stretch.
    if (!result.stretches_.empty()) {
      Stretch& last = result.stretches_.back();
      if (last.end == stretch.begin && last.file == stretch.file &&
          last.offset + (last.end - last.begin) == stretch.offset) {
        last.end = stretch.end;
        continue;
      }
    }
    result.stretches_.push_back(stretch);
  }
  return result;
}

std::optional<FileRange> MappedFiles::locate(const void* address, std::uint64_t length) const {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const auto after = std::ranges::upper_bound(stretches_, at, {}, &Stretch::begin);
  if (after == stretches_.begin()) return std::nullopt;
  const Stretch& stretch = *std::prev(after);
  if (at + length > stretch.end) return std::nullopt;
  return FileRange{
      .file = stretch.file, .offset = stretch.offset + (at - stretch.begin), .length = length};
}

}  // namespace tt
