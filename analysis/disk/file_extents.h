// Where the bytes of files are on a disk.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

struct FileExtent {
  std::uint64_t offset = 0;  // in the file, bytes
  std::uint64_t disk = 0;    // on the disk or partition of the file system, bytes
  std::uint64_t length = 0;
  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

struct ListedFile {
  std::string path;  // as printed
  std::vector<FileExtent> extents;
  friend bool operator==(const ListedFile&, const ListedFile&) = default;
};

// Reads what `filefrag -v FILE...` prints. Extents without a place on the disk (inline, not yet
// written, compressed) are left out. The error is NotFound if no file is listed.
std::expected<std::vector<ListedFile>, TraceError> parse_filefrag(std::istream& in);

// From bytes of a disk to bytes of files.
class ExtentMap {
 public:
  // `start`: where the file system begins on the disk, bytes.
  void add(std::uint32_t file, const std::vector<FileExtent>& extents, std::uint64_t start);
  // The parts of files in [disk, disk + length), by their place on the disk. Blocks that files
  // share are given for the first file only.
  void for_each(std::uint64_t disk, std::uint64_t length,
                const std::function<void(const FileRange&)>& part) const;

 private:
  struct Place {
    std::uint64_t disk = 0;
    FileRange range;
  };
  std::vector<Place> places_;  // by disk; do not overlap
};

}  // namespace tt
