// Finds the file offset of a tensor by its address, from the mappings of a process
// (/proc/self/maps). Independent of tensor names and of the GGUF header.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include "tracer/format/file/mapping_guard.h"
#include "tracer/format/model/ids.h"
#include "tracer/format/model/session.h"

namespace tt {

class MappedFiles {
 public:
  // Current mappings of `files` in this process. FileRange::file is an index into `files`.
  static MappedFiles of_this_process(std::span<const ModelFile> files);
  // The same for another process, from the text of its /proc/PID/maps.
  static MappedFiles of_maps(std::istream& maps, std::span<const ModelFile> files);

  // File range mapped at [address, address + length); nullopt if it is not mapped.
  std::optional<FileRange> locate(std::uint64_t address, std::uint64_t length) const;
  // Address at which the range is mapped; nullopt if it is not, or not completely.
  std::optional<std::uint64_t> address_of(const FileRange& range) const;

  // Addresses of the mappings.
  std::vector<MappedRange> ranges() const;

 private:
  struct Mapping {
    std::uint64_t begin, end;  // addresses
    std::uint64_t offset;      // file offset of `begin`
    std::uint32_t file;
  };
  std::vector<Mapping> mappings_;  // sorted by address, not overlapping
};

}  // namespace tt
