#include "analysis/disk/file_extents.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "analysis/disk/text_line.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<std::uint64_t> block_number(std::string_view text) {
  return parse_number<std::uint64_t>(trimmed(text));
}

// "File size of /a b is 668788096 (163279 blocks of 4096 bytes)"
struct Heading {
  std::string path;
  std::uint64_t block = 0;
};
std::optional<Heading> parse_heading(std::string_view line) {
  constexpr std::string_view kBegin = "File size of ", kOf = " of ", kBytes = " bytes)";
  const std::size_t size = line.rfind(" is ");
  const std::size_t of = line.rfind(kOf);
  if (!line.starts_with(kBegin) || size == std::string_view::npos || size < kBegin.size() ||
      of == std::string_view::npos || of < size || !line.ends_with(kBytes))
    return std::nullopt;
  const auto block =
      block_number(line.substr(of + kOf.size(), line.size() - kBytes.size() - of - kOf.size()));
  if (!block || *block == 0) return std::nullopt;
  return Heading{.path = std::string(line.substr(kBegin.size(), size - kBegin.size())),
                 .block = *block};
}

// "   1:    32768..   63487:      69632..    100351:  30720:      67584: last,eof"
std::optional<FileExtent> parse_extent(std::string_view line, std::uint64_t block) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(':', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() < 4 || !block_number(fields[0])) return std::nullopt;
  const auto first = [](std::string_view range) {
    const std::size_t dots = range.find("..");
    return dots == std::string_view::npos ? std::nullopt : block_number(range.substr(0, dots));
  };
  const auto offset = first(fields[1]), disk = first(fields[2]), length = block_number(fields[3]);
  if (!offset || !disk || !length || *length == 0) return std::nullopt;
  for (const char* flag : {"inline", "unwritten", "encoded", "delalloc", "unknown"})
    if (fields.back().contains(flag)) return std::nullopt;
  if (std::max({*offset, *disk, *length}) > kMax / block / 2) return std::nullopt;
  return FileExtent{.offset = *offset * block, .disk = *disk * block, .length = *length * block};
}

}  // namespace

std::expected<std::vector<ListedFile>, TraceError> parse_filefrag(std::istream& in) {
  std::vector<ListedFile> files;
  std::uint64_t block = 0;
  for (std::string text; read_line(in, text);) {
    const std::string_view line = trimmed(text);
    if (auto heading = parse_heading(line)) {
      block = heading->block;
      files.push_back({.path = std::move(heading->path), .extents = {}});
    } else if (!files.empty()) {
      if (const auto extent = parse_extent(line, block)) files.back().extents.push_back(*extent);
    }
  }
  if (files.empty() || is_too_long(in)) {
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound,
                   "no extents of a file. Write the list with: filefrag -v MODEL > extents.txt"});
  }
  return files;
}

void ExtentMap::add(std::uint32_t file, const std::vector<FileExtent>& extents,
                    std::uint64_t start) {
  for (const FileExtent& extent : extents)
    places_.push_back({.disk = start + extent.disk, .range = {file, extent.offset, extent.length}});
  std::ranges::stable_sort(places_, {}, &Place::disk);
  std::vector<Place> apart;
  for (Place place : places_) {
    if (!apart.empty()) {
      const std::uint64_t end = apart.back().disk + apart.back().range.length;
      const std::uint64_t shared = end > place.disk ? end - place.disk : 0;
      if (shared >= place.range.length) continue;
      place.disk += shared;
      place.range.offset += shared;
      place.range.length -= shared;
    }
    apart.push_back(place);
  }
  places_ = std::move(apart);
}

void ExtentMap::for_each(std::uint64_t disk, std::uint64_t length,
                         const std::function<void(const FileRange&)>& part) const {
  auto place = std::ranges::upper_bound(places_, disk, {}, &Place::disk);
  if (place != places_.begin()) --place;
  for (; place != places_.end() && place->disk < disk + length; ++place) {
    const std::uint64_t begin = std::max(disk, place->disk);
    const std::uint64_t end = std::min(disk + length, place->disk + place->range.length);
    if (begin < end)
      part({place->range.file, place->range.offset + (begin - place->disk), end - begin});
  }
}

}  // namespace tt
