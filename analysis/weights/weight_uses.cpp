#include "analysis/weights/weight_uses.h"

#include "analysis/common/cancel.h"
#include "analysis/weights/compression.h"
#include "analysis/weights/weight_reads.h"

namespace tt {

std::expected<std::map<std::string, WeightReads>, TraceError> weight_uses(
    const SessionReader& reader, const ContinueCheck& keep_going) {
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  std::map<std::string, WeightReads> uses;
  std::map<std::string, FileRange> places;
  for (const TemplateId id : *ids) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors) {
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor || tensor.file.empty() ||
          !places.emplace(tensor.name, tensor.file).second)
        continue;
      uses[tensor.name] = {.elements = elements_of(tensor.ne), .bytes = tensor.file.length};
    }
  }
  const auto reads = weight_reads(reader, kAllRows, Grain::Part, keep_going);
  if (!reads) return std::unexpected(reads.error());
  for (const ReuseItem& item : reads->items) {
    const auto found = places.find(item.tensor);
    if (found == places.end() || item.reads == 0) continue;
    const FileRange& whole = found->second;
    // Another weight of this name, such as that of a second model.
    if (item.file.file != whole.file || item.file.offset < whole.offset ||
        item.file.offset - whole.offset > whole.length ||
        item.file.length > whole.length - (item.file.offset - whole.offset))
      continue;
    uses[item.tensor].parts.push_back({.offset = item.file.offset - whole.offset,
                                       .length = item.file.length,
                                       .reads = item.reads});
  }
  return uses;
}

}  // namespace tt
