// The second way from a tensor to a file offset: where its address is mapped
// from (/proc/self/maps). Independent of names and of the GGUF header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tracer/format/model/ids.h"
#include "tracer/format/model/session.h"

namespace tt {

class MappedFiles {
 public:
  // The mappings of `files` in this process now. Ranges follow the order of `files`.
  static MappedFiles of_this_process(std::span<const ModelFile> files);

  // The file bytes behind [address, address + length); none when it is not mapped.
  std::optional<FileRange> locate(const void* address, std::uint64_t length) const;

 private:
  struct Stretch {
    std::uint64_t begin, end;  // addresses
    std::uint64_t offset;      // in the file, of `begin`
    std::uint32_t file;
  };
  std::vector<Stretch> stretches_;  // by address, not overlapping
};

}  // namespace tt
