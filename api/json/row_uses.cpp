#include "api/json/row_uses.h"

#include <vector>

#include "analysis/weights/compression.h"

namespace tt {

std::expected<Uses, std::string> row_uses(const std::map<std::string, WeightReads>& read,
                                          const GgufIndex& index) {
  Uses out;
  for (const GgufTensor& tensor : index.tensors()) {
    const auto found = read.find(tensor.name);
    const std::uint64_t rows = row_count(tensor);
    if (found == read.end() || rows == 0 || found->second.elements != elements_of(tensor.ne))
      continue;
    const WeightReads& use = found->second;
    const std::uint64_t row_bytes = use.bytes / rows;
    if (row_bytes == 0 || use.parts.empty()) continue;
    std::vector<RowUses::Use> uses;
    for (const PartUse& part : use.parts) {
      const std::uint64_t first = part.offset / row_bytes;
      const std::uint64_t end = (part.offset + part.length + row_bytes - 1) / row_bytes;
      uses.push_back({.rows = {.first = first, .count = end - first}, .reads = part.reads});
    }
    out.emplace(tensor.name, RowUses(uses));
  }
  if (out.empty())
    return std::unexpected(
        "The session reads no weight of this model. Give a session of the same model.");
  return out;
}

}  // namespace tt
