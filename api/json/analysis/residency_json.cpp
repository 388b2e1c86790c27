#include "api/json/analysis/residency_json.h"

#include <utility>

#include "tracer/text/utf8.h"

namespace tt {

Json ranges_json(std::span<const FileRange> ranges) {
  Json list = Json::array();
  for (const FileRange& range : ranges)
    list.push_back(
        {{"file", range.file}, {"file_offset", range.offset}, {"size_bytes", range.length}});
  return list;
}

Json to_json(const ResidencyTable& table) {
  const auto& [step, at, unit, resident] = table.snapshot;
  Json tensors = Json::array();
  for (const WeightTensor& weight : table.weights)
    tensors.push_back({{"tensor_name", to_valid_utf8(weight.name)},
                       {"file", weight.file.file},
                       {"file_offset", weight.file.offset},
                       {"size_bytes", weight.file.length},
                       {"mapped", weight.mapped},
                       {"resident_bytes", optional_json(resident_bytes(weight, resident))}});
  return {{"step", step.v},
          {"timestamp_ns", at.v},
          {"resident_unit_bytes", unit},
          {"resident_ranges", ranges_json(resident)},
          {"tensors", std::move(tensors)}};
}

}  // namespace tt
