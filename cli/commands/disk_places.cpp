#include "cli/commands/disk_places.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>

#include "tracer/format/file/input_file.h"

namespace tt::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kGiveExtents =
    "Give its extents with --extents: filefrag -v MODEL > extents.txt";

std::expected<std::vector<FileExtent>, std::string> extents_of(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    return std::unexpected(
        std::format("{}: {}. {}", path.string(), std::strerror(errno), kGiveExtents));
  }
  // The kernel writes the extents behind the head.
  constexpr std::uint32_t kBatch = 256;
  std::vector<std::uint64_t> memory(
      (sizeof(fiemap) + kBatch * sizeof(fiemap_extent)) / sizeof(std::uint64_t) + 1);
  auto* query = reinterpret_cast<fiemap*>(memory.data());  // NOLINT: interface of the kernel
  std::vector<FileExtent> found;
  std::uint64_t at = 0;
  for (bool last = false; !last;) {
    std::ranges::fill(memory, 0);
    query->fm_start = at;
    query->fm_length = FIEMAP_MAX_OFFSET - at;
    query->fm_flags = FIEMAP_FLAG_SYNC;
    query->fm_extent_count = kBatch;
    if (::ioctl(file, FS_IOC_FIEMAP, query) != 0) {
      const int error = errno;
      ::close(file);
      return std::unexpected(
          std::format("{}: the file system does not say where the file is on the disk ({}). {}",
                      path.string(), std::strerror(error), kGiveExtents));
    }
    const std::uint32_t count = std::min(query->fm_mapped_extents, kBatch);
    last = count == 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const fiemap_extent& extent = query->fm_extents[i];
      constexpr std::uint32_t kNoPlace = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
                                         FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_INLINE |
                                         FIEMAP_EXTENT_UNWRITTEN;
      if ((extent.fe_flags & kNoPlace) == 0) {
        found.push_back(
            {.offset = extent.fe_logical, .disk = extent.fe_physical, .length = extent.fe_length});
      }
      at = extent.fe_logical + extent.fe_length;
      last = last || (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
    }
  }
  ::close(file);
  return found;
}

// What /sys says about the block device of a file.
struct Device {
  std::uint64_t start = 0;  // of a partition on its disk, sectors
  std::vector<DiskId> ids;  // the whole disk first; empty: not known
};

std::optional<DiskId> id_in(const fs::path& file) {
  std::ifstream in(file);
  DiskId id;
  char colon = 0;
  if (!(in >> id.major >> colon >> id.minor)) return std::nullopt;
  return id;
}

Device device_of(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  const DiskId own{.major = major(status.st_dev), .minor = minor(status.st_dev)};
  std::error_code failed;
  const fs::path folder =
      fs::canonical(std::format("/sys/dev/block/{}:{}", own.major, own.minor), failed);
  if (failed) return {};  // an overlay, network or stacked file system
  Device device;
  if (fs::exists(folder / "partition", failed)) {
    std::ifstream(folder / "start") >> device.start;
    if (const auto disk = id_in(folder.parent_path() / "dev")) device.ids.push_back(*disk);
  }
  device.ids.push_back(own);
  return device;
}

// The list of a model file: of the same path, else the same name, else the only one.
const ListedFile* listed(const std::vector<ListedFile>& lists, const std::string& path,
                         std::size_t files) {
  for (const ListedFile& list : lists)
    if (list.path == path) return &list;
  for (const ListedFile& list : lists)
    if (fs::path(list.path).filename() == fs::path(path).filename()) return &list;
  return files == 1 && lists.size() == 1 ? lists.data() : nullptr;
}

}  // namespace

std::expected<DiskPlaces, std::string> find_disk_places(std::span<const ModelFile> files,
                                                        const DiskPlaceOptions& options) {
  std::vector<ListedFile> lists;
  if (!options.extents.empty()) {
    auto in = InputFile::open(options.extents, InputKind::RegularOrPipe);
    if (!in) return std::unexpected(in.error().message);
    auto parsed = parse_filefrag(in->stream());
    if (const Status read = in->finished(); !read) return std::unexpected(read.error().message);
    if (!parsed)
      return std::unexpected(std::format("{}: {}", options.extents, parsed.error().message));
    lists = *std::move(parsed);
  }
  DiskPlaces places;
  for (std::uint32_t number = 0; number < files.size(); ++number) {
    const std::string& path = files[number].path;
    const Device device = device_of(path);
    if (places.disks.empty()) places.disks = device.ids;
    std::vector<FileExtent> extents;
    if (!options.extents.empty()) {
      const ListedFile* list = listed(lists, path, files.size());
      if (list == nullptr)
        return std::unexpected(std::format("{}: has no extents of {}", options.extents, path));
      extents = list->extents;
    } else {
      auto found = extents_of(path);
      if (!found) return std::unexpected(found.error());
      extents = *std::move(found);
      if (device.ids.empty() && !options.partition_start) {
        return std::unexpected(std::format(
            "{}: its disk is unknown, because the file system is not directly on one (overlay, "
            "network). Give the first sector of the file system with --partition-start; 0 for a "
            "whole disk.",
            path));
      }
    }
    const std::uint64_t start = options.partition_start.value_or(device.start);
    places.extents.add(number, extents, start * kSectorBytes);
  }
  return places;
}

}  // namespace tt::cli
