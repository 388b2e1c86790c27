#include "analysis/sets/learned_session.h"

#include <utility>

#include "analysis/weights/weight_reads.h"

namespace tt {

namespace {

std::expected<ModelWeights, TraceError> weights_of(const SessionReader& reader,
                                                   const ContinueCheck& keep_going) {
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  ModelWeights weights;
  for (const TemplateId id : *ids) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    for (const Tensor& tensor : (*graph)->tensors) {
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor || tensor.file.empty())
        continue;
      weights.try_emplace(tensor.name, ModelWeight{.type = tensor.type,
                                                   .ne = tensor.ne,
                                                   .block_elements = tensor.block_elements,
                                                   .block_bytes = tensor.block_bytes,
                                                   .file = tensor.file});
    }
  }
  return weights;
}

}  // namespace

std::optional<WeightPart> part_of(const ModelWeights& weights, const std::string& tensor,
                                  const FileRange& range) {
  const auto found = weights.find(tensor);
  if (found == weights.end()) return std::nullopt;
  const ModelWeight& weight = found->second;
  const FileRange& whole = weight.file;
  if (range.empty() || range.file != whole.file || range.offset < whole.offset) return std::nullopt;
  const std::uint64_t before = range.offset - whole.offset;
  if (range.length > whole.length || before > whole.length - range.length) return std::nullopt;
  const std::uint64_t block = weight.block_bytes;
  if (block == 0 || before % block != 0 || range.length % block != 0) return std::nullopt;
  return WeightPart{.tensor = tensor,
                    .first = before / block * weight.block_elements,
                    .count = range.length / block * weight.block_elements};
}

FileRange range_of(const ModelWeights& weights, const WeightPart& part) {
  const auto found = weights.find(part.tensor);
  if (found == weights.end()) return {};
  const ModelWeight& weight = found->second;
  const std::uint64_t block = weight.block_elements;
  if (block == 0 || part.first % block != 0 || part.count % block != 0) return {};
  const std::uint64_t before = part.first / block * weight.block_bytes,
                      length = part.count / block * weight.block_bytes;
  if (length > weight.file.length || before > weight.file.length - length) return {};
  return {.file = weight.file.file, .offset = weight.file.offset + before, .length = length};
}

std::expected<LearnedSession, TraceError> learn_session(const SessionReader& reader,
                                                        const ContinueCheck& keep_going) {
  LearnedSession learned;
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  learned.files = std::move(info->model_files);
  auto weights = weights_of(reader, keep_going);
  if (!weights) return std::unexpected(weights.error());
  learned.weights = *std::move(weights);

  const auto count = reader.token_count();
  if (!count) return std::unexpected(count.error());
  learned.tokens = *count;
  const auto tokens = reader.tokens(0, *count);
  if (!tokens) return std::unexpected(tokens.error());
  for (const Token& token : *tokens) {
    if (token.generated) break;
    learned.prompt.push_back(token.id);
  }

  auto experts = expert_use(reader, std::nullopt, keep_going);
  if (!experts) return std::unexpected(experts.error());
  learned.experts = *std::move(experts);

  auto pattern = access_pattern(reader, keep_going);
  if (!pattern) return std::unexpected(pattern.error());
  learned.complete_tokens = pattern->prediction.steps_learned + pattern->prediction.steps_tried;
  learned.pattern = std::move(pattern->entries);

  const auto sequence = weight_reads(reader, kAllRows, Grain::Part, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  for (const ReuseItem& item : sequence->items) {
    if (auto part = part_of(learned.weights, item.tensor, item.file))
      learned.reads.push_back(
          {.part = *std::move(part), .bytes = Bytes{item.file.length}, .reads = item.reads});
  }
  return learned;
}

}  // namespace tt
