// Which bytes of the model files were used: a set of file ranges. Value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tracer/format/access/access.h"

namespace tt {

class FileBytes {
 public:
  void add(const FileRange& range);
  // What a step reads of mapped model files. Repacked and copied weights are not read from them.
  void add_reads(const GraphTemplate& graph, const StepAccess& access);
  Bytes size();  // each byte counts once

 private:
  void merge();

  std::vector<FileRange> ranges_;
  std::size_t merged_ = 0;  // after the last merge()
};

// The bytes of mapped model files that a step reads, each counted once. `accesses`:
// accesses_of(graph).
Bytes mapped_bytes_of(const GraphTemplate& graph, std::span<const Access> accesses,
                      const Step& step);

}  // namespace tt
