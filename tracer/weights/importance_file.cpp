#include "tracer/weights/importance_file.h"

#include <format>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/gguf/gguf_index.h"

namespace tt {

namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

struct Entry {
  std::string_view tensor;
  const GgufTensor *sums = nullptr, *counts = nullptr;
};

// Of one tensor, or if `tensor` is empty, of all.
std::vector<Entry> entries_of(const GgufIndex& index, std::string_view tensor) {
  std::vector<Entry> entries;
  for (const GgufTensor& sums : index.tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const auto name = std::string_view(sums.name).substr(0, sums.name.size() - kSums.size());
    if (!tensor.empty() && name != tensor) continue;
    if (const GgufTensor* counts = index.find(std::string(name) + std::string(kCounts)))
      entries.push_back({.tensor = name, .sums = &sums, .counts = counts});
  }
  return entries;
}

std::uint64_t values_in(const GgufTensor& tensor) {
  return row_count(tensor) * static_cast<std::uint64_t>(tensor.ne[0]);
}

}  // namespace

std::uint64_t importance_bytes(const GgufIndex& index, std::string_view tensor) {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_of(index, tensor))
    bytes += entry.sums->file.length + entry.counts->file.length;
  return bytes;
}

std::expected<Importances, std::string> read_importance(const std::filesystem::path& path,
                                                        const std::function<bool()>& keep_going) {
  const auto index = GgufIndex::open(path);
  if (!index)
    return std::unexpected(
        std::format("{}{} Give a file that llama-imatrix wrote with --output-format gguf.",
                    index.error(), index.error().ends_with('.') ? "" : "."));
  return read_importance(*index, {}, keep_going);
}

std::expected<Importances, std::string> read_importance(const GgufIndex& index,
                                                        std::string_view tensor,
                                                        const std::function<bool()>& keep_going) {
  const std::string& path = index.files().front().path;
  if (entries_of(index, {}).empty())
    return std::unexpected(
        std::format("{} has no importances. Give a file that llama-imatrix wrote.", path));
  const std::vector<Entry> entries = entries_of(index, tensor);
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries) {
    bytes += (values_in(*entry.sums) + values_in(*entry.counts)) * sizeof(float);
    if (bytes > kMaxImportanceBytes) {
      return std::unexpected(std::format("{} has more than {} MiB of importances, the maximum.",
                                         path, kMaxImportanceBytes >> 20));
    }
  }
  auto reader = WeightReader::open(index);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const auto values_of =
      [&](const GgufTensor& of) -> std::expected<std::vector<float>, std::string> {
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(values_in(of)));
    bool whole = true;
    auto read = reader->read(of, all_rows(of), [&](const WeightRows& rows) {
      values.insert(values.end(), rows.values.begin(), rows.values.end());
      return whole = keep_going();
    });
    if (!read) return std::unexpected(std::move(read.error()));
    if (!whole) return std::unexpected("cancelled");
    return values;
  };
  Importances out;
  for (const Entry& entry : entries) {
    auto sums = values_of(*entry.sums);
    if (!sums) return std::unexpected(std::move(sums.error()));
    const auto counts = values_of(*entry.counts);
    if (!counts) return std::unexpected(counts.error());
    const auto columns = static_cast<std::size_t>(entry.sums->ne[0]);
    for (std::size_t i = 0; i < sums->size(); ++i) {
      const std::size_t matrix = i / columns;
      const float count = matrix < counts->size() ? (*counts)[matrix] : 0;
      // An expert that was never used: all of its columns count the same.
      (*sums)[i] = count > 0 ? (*sums)[i] / count : 1;
    }
    out[std::string(entry.tensor)].values = *std::move(sums);
  }
  return out;
}

}  // namespace tt
