// Reference lookup of the op and access of each page fault (analysis/index/fault_location.h,
// fault_walk.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/analysis/aggregate/naive_raster.h"
#include "tracer/format/access/access.h"

namespace tt::test {

struct NaiveFault {
  Step step;
  std::uint64_t count = 1;
  bool has_fault = true;
  PageFault fault{};
  std::shared_ptr<const GraphTemplate> graph;  // null: the step has no template
  std::optional<std::uint32_t> op{};
  std::optional<std::uint32_t> access{};  // index in accesses_of()
  Access of_access{};                     // the access at that index
  std::int32_t expert = -1;
  FileRange file{};  // the faulting byte, if file-backed
};
std::vector<NaiveFault> naive_faults(const SessionReader& reader,
                                     FaultKind kind = FaultKind::Major);

NaiveRaster naive_fault_raster(const SessionReader& reader, const SessionIndex& index,
                               const RasterQuery& query, const Raster& like);

}  // namespace tt::test
