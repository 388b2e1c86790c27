#include "tracer/weights/importance_file.h"

#include <format>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/gguf/gguf_index.h"

namespace tt {

std::expected<std::map<std::string, ColumnImportance>, std::string> read_importance(
    const std::filesystem::path& path) {
  constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
  auto index = GgufIndex::open(path);
  if (!index)
    return std::unexpected(
        std::format("{}{} Give a file that llama-imatrix wrote with --output-format gguf.",
                    index.error(), index.error().ends_with('.') ? "" : "."));
  auto reader = WeightReader::open(*index);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const auto values_of =
      [&](const GgufTensor& tensor) -> std::expected<std::vector<float>, std::string> {
    std::vector<float> values;
    auto read = reader->read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
      values.insert(values.end(), rows.values.begin(), rows.values.end());
      return true;
    });
    if (!read) return std::unexpected(std::move(read.error()));
    return values;
  };
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : index->tensors()) {
    if (!tensor.name.ends_with(kSums) && !tensor.name.ends_with(kCounts)) continue;
    bytes += row_count(tensor) * static_cast<std::uint64_t>(tensor.ne[0]) * sizeof(float);
    if (bytes > kMaxImportanceBytes) {
      return std::unexpected(std::format("{} has more than {} MiB of importances, the maximum.",
                                         path.string(), kMaxImportanceBytes >> 20));
    }
  }
  std::map<std::string, ColumnImportance> out;
  for (const GgufTensor& tensor : index->tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
    const GgufTensor* const of_counts = index->find(name + std::string(kCounts));
    if (of_counts == nullptr) continue;
    auto sums = values_of(tensor), counts = values_of(*of_counts);
    if (!sums) return std::unexpected(std::move(sums.error()));
    if (!counts) return std::unexpected(std::move(counts.error()));
    const auto columns = static_cast<std::size_t>(tensor.ne[0]);
    for (std::size_t i = 0; i < sums->size(); ++i) {
      const std::size_t matrix = i / columns;
      const float count = matrix < counts->size() ? (*counts)[matrix] : 0;
      // An expert that was never used: all of its columns count the same.
      (*sums)[i] = count > 0 ? (*sums)[i] / count : 1;
    }
    out[name].values = *std::move(sums);
  }
  if (out.empty())
    return std::unexpected(
        std::format("{} has no importances. Give a file that llama-imatrix wrote.", path.string()));
  return out;
}

}  // namespace tt
