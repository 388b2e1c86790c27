#include "tracer/modelgen/model_plan.h"

#include <algorithm>
#include <array>
#include <format>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

#include "tracer/modelgen/detail/lower.h"
#include "tracer/modelgen/detail/plan_builder.h"
#include "tracer/modelgen/detail/shapes.h"
#include "tracer/modelgen/detail/vocabulary.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt::modelgen {
namespace {

using Kind = ModelError::Kind;

constexpr std::array kShapes = {
    NamedShape{"tinyllama-1.1b", "llama, the size of TinyLlama 1.1B (637 MiB as q4_k_m)", "llama",
               "q4_k_m", true,
               Dims{.layers = 22,
                    .embd = 2048,
                    .heads = 32,
                    .kv_heads = 4,
                    .ff = 5632,
                    .vocab = 32000,
                    .context = 2048}},
    NamedShape{"small", "llama, 12 layers of 256", "llama", "q4_k_m", true,
               Dims{.layers = 12,
                    .embd = 256,
                    .heads = 8,
                    .kv_heads = 4,
                    .ff = 768,
                    .vocab = 4096,
                    .context = 4096}},
    NamedShape{"moe", "llama mixture of experts, 8 layers, 2 of 8 experts", "llama", "q4_k_m", true,
               Dims{.layers = 8,
                    .embd = 256,
                    .heads = 8,
                    .kv_heads = 4,
                    .ff = 512,
                    .vocab = 4096,
                    .context = 4096,
                    .experts = 8,
                    .experts_used = 2}},
    NamedShape{"deepseek-like",
               "deepseek2: latent attention, a dense first layer, 4 of 16 experts "
               "and a shared one",
               "deepseek2", "q4_k_m", true,
               Dims{.layers = 4,
                    .embd = 256,
                    .heads = 4,
                    .kv_heads = 1,
                    .ff = 256,
                    .vocab = 2048,
                    .context = 4096,
                    .experts = 16,
                    .experts_used = 4}},
    NamedShape{"gpt-oss-like",
               "gpt-oss: MXFP4 experts with biases, attention sinks, sliding "
               "window in every other layer",
               "gpt-oss", "mxfp4_moe", true,
               Dims{.layers = 4,
                    .embd = 256,
                    .heads = 8,
                    .kv_heads = 2,
                    .ff = 256,
                    .vocab = 2048,
                    .context = 8192,
                    .experts = 8,
                    .experts_used = 4}},
    NamedShape{"qwen3-moe-like", "qwen3moe: 8 of 32 fine experts, normed queries and keys",
               "qwen3moe", "q4_k_m", true,
               Dims{.layers = 6,
                    .embd = 256,
                    .heads = 8,
                    .kv_heads = 2,
                    .ff = 256,
                    .vocab = 2048,
                    .context = 8192,
                    .experts = 32,
                    .experts_used = 8}},
    NamedShape{"mamba", "mamba: state space layers, no attention", "mamba", "q8_0", true,
               Dims{.layers = 6, .embd = 256, .vocab = 2048, .context = 8192}},
    NamedShape{"t5", "t5: encoder and decoder, gated as flan-t5", "t5", "q8_0", true,
               Dims{.layers = 4,
                    .embd = 256,
                    .heads = 4,
                    .kv_heads = 4,
                    .ff = 512,
                    .vocab = 2048,
                    .context = 512}},
    NamedShape{"bert", "bert: embeddings only, mean pooling, WordPiece", "bert", "q8_0", false,
               Dims{.layers = 4,
                    .embd = 256,
                    .heads = 4,
                    .kv_heads = 4,
                    .ff = 1024,
                    .vocab = 2048,
                    .context = 512}},
    NamedShape{"rwkv", "rwkv7: linear attention with a recurrent state", "rwkv7", "q8_0", true,
               Dims{.layers = 4, .embd = 256, .ff = 1024, .vocab = 2048, .context = 4096}},
};
constexpr std::pair<std::string_view, void (*)(detail::PlanBuilder&)> kArchitectures[] = {
    {"llama", detail::build_llama},     {"deepseek2", detail::build_deepseek2},
    {"gpt-oss", detail::build_gpt_oss}, {"qwen3moe", detail::build_qwen3_moe},
    {"mamba", detail::build_mamba},     {"t5", detail::build_t5},
    {"bert", detail::build_bert},       {"rwkv7", detail::build_rwkv7}};

std::unexpected<ModelError> invalid_spec(std::string message) {
  return std::unexpected(ModelError{Kind::BadSpec, std::move(message)});
}

// The shape's sizes with the overrides of the spec, validated.
std::expected<Dims, ModelError> resolve_dims(const NamedShape& shape, const ModelSpec& spec) {
  struct Size {
    const char* name;
    std::int64_t Dims::* own;
    std::optional<std::int64_t> DimOverrides::* requested;
    std::int64_t limit;
  };
  constexpr std::array sizes = {
      Size{"layers", &Dims::layers, &DimOverrides::layers, 512},
      Size{"embd", &Dims::embd, &DimOverrides::embd, 65536},
      Size{"heads", &Dims::heads, &DimOverrides::heads, 512},
      Size{"kv-heads", &Dims::kv_heads, &DimOverrides::kv_heads, 512},
      Size{"ff", &Dims::ff, &DimOverrides::ff, 262144},
      Size{"vocab", &Dims::vocab, &DimOverrides::vocab, detail::kMaxVocab},
      Size{"context", &Dims::context, &DimOverrides::context, 1 << 24},
      Size{"experts", &Dims::experts, &DimOverrides::experts, 512},
      Size{"experts-used", &Dims::experts_used, &DimOverrides::experts_used, 512}};

  Dims dims = shape.dims;
  for (const Size& size : sizes) {
    const std::optional<std::int64_t> requested = spec.dims.*size.requested;
    if (!requested) {
      continue;
    }
    if (dims.*size.own == 0) {
      return invalid_spec(
          std::format("{}: the shape {} does not have this size", size.name, shape.name));
    }
    if (*requested < 1 || *requested > size.limit) {
      return invalid_spec(
          std::format("{}: {} must be from 1 to {}", size.name, *requested, size.limit));
    }
    dims.*size.own = *requested;
  }
  if (!spec.pieces.empty()) {
    if (shape.architecture == "t5" || shape.architecture == "bert" ||
        shape.architecture == "rwkv7" || shape.architecture == "mamba") {
      return invalid_spec(
          std::format("pieces: the shape {} does not support a learned vocabulary", shape.name));
    }
    dims.vocab = detail::learned_vocabulary_size(spec.pieces);
  } else if (dims.vocab < detail::kMinVocab) {
    return invalid_spec(
        std::format("vocab: {} is too small for bytes, characters and special tokens "
                    "(at least {})",
                    dims.vocab, detail::kMinVocab));
  }
  if (dims.heads > 0) {
    if (dims.embd % dims.heads != 0 || (dims.embd / dims.heads) % 2 != 0) {
      return invalid_spec(
          std::format("heads: {} does not divide embd {} into even parts", dims.heads, dims.embd));
    }
    if (dims.heads % dims.kv_heads != 0) {
      return invalid_spec(
          std::format("kv-heads: {} does not divide heads {}", dims.kv_heads, dims.heads));
    }
  } else if (dims.embd % 64 != 0) {
    return invalid_spec(std::format("embd: {} is not a multiple of 64", dims.embd));
  }
  if (dims.experts_used > dims.experts) {
    return invalid_spec(
        std::format("experts-used: {} is more than experts ({})", dims.experts_used, dims.experts));
  }
  return dims;
}

// Q4_K, except where llama.cpp's quantizer uses Q6_K. The quantizer counts attn_v and ffn_down
// separately in file order; for ffn_down of models with experts it uses the layer number. Models
// with eight experts use more bits for attention, which is a small part of the model.
void apply_q4_k_m(ModelPlan& plan, const Dims& dims, bool tied) {
  const auto is_value = [](const PlannedTensor& tensor) {
    return tensor.name.ends_with("attn_v.weight");
  };
  const auto is_value_or_key = [&](const PlannedTensor& tensor) {
    return is_value(tensor) || tensor.name.ends_with("attn_k.weight");
  };
  const auto value_count = static_cast<std::size_t>(std::ranges::count_if(plan.tensors, is_value));
  const auto layers = static_cast<std::size_t>(dims.layers);
  std::size_t value_index = 0;
  std::size_t down_index = 0;
  for (PlannedTensor& tensor : plan.tensors) {
    bool promoted =
        tensor.cls == TensorClass::Output || (tied && tensor.cls == TensorClass::Embedding);
    if (is_value(tensor)) {
      promoted = promoted_by_q4_k_m(value_index++, value_count);
    } else if (tensor.name.contains("ffn_down") && tensor.cls != TensorClass::Fixed) {
      const std::size_t index =
          dims.experts > 0 ? std::stoul(tensor.name.substr(std::string_view("blk.").size()))
                           : down_index++;
      promoted = promoted_by_q4_k_m(index, layers);
    }
    tensor.type = promoted ? GGML_TYPE_Q6_K : GGML_TYPE_Q4_K;
    if (dims.experts == 8 && is_value_or_key(tensor)) {
      tensor.type = GGML_TYPE_Q8_0;
    } else if (dims.experts == 8 && tensor.name.ends_with("attn_output.weight")) {
      tensor.type = GGML_TYPE_Q5_K;
    }
  }
}

// llama_ftype, which llama.cpp prints as "file type"; nullopt if there is no matching value.
std::optional<std::uint32_t> file_type(const std::string& mix) {
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 15> kTypes = {
      {{"f32", 0},
       {"f16", 1},
       {"q4_0", 2},
       {"q4_1", 3},
       {"q8_0", 7},
       {"q5_0", 8},
       {"q5_1", 9},
       {"q2_k", 10},
       {"q4_k", 14},
       {"q4_k_m", 15},
       {"q6_k", 18},
       {"iq4_nl", 25},
       {"iq4_xs", 30},
       {"bf16", 32},
       {"mxfp4_moe", 38}}};
  const auto found = std::ranges::find(kTypes, std::string_view(mix),
                                       [](const auto& entry) { return entry.first; });
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::expected<void, ModelError> choose_types(ModelPlan& plan, const NamedShape& shape,
                                             const Dims& dims, const ModelSpec& spec) {
  const std::string mix = lower(spec.quant.empty() ? shape.quant : spec.quant);
  if (mix == "q4_k_m") {
    apply_q4_k_m(plan, dims, spec.tied);
  } else if (mix == "mxfp4_moe") {
    for (PlannedTensor& tensor : plan.tensors) {
      tensor.type = tensor.cls == TensorClass::Experts ? GGML_TYPE_MXFP4 : GGML_TYPE_Q8_0;
    }
  } else {
    const auto type = parse_type(mix);
    if (!type) {
      return std::unexpected(ModelError{Kind::UnknownQuantization,
                                        type.error().message + " and the mixes q4_k_m, mxfp4_moe" +
                                            did_you_mean(mix, quant_mixes())});
    }
    for (PlannedTensor& tensor : plan.tensors) {
      tensor.type = *type;
    }
  }
  for (PlannedTensor& tensor : plan.tensors) {
    if (tensor.cls == TensorClass::Fixed) {
      tensor.type = GGML_TYPE_F32;
    } else if (const auto chosen = spec.class_type.find(tensor.cls);
               chosen != spec.class_type.end()) {
      tensor.type = chosen->second;
    }
    if (const std::int64_t block = ggml_blck_size(tensor.type); tensor.ne.front() % block != 0) {
      return invalid_spec(
          std::format("{}: {} needs rows of a multiple of {} values, but this tensor has {}",
                      tensor.name, lower(ggml_type_name(tensor.type)), block, tensor.ne.front()));
    }
  }
  if (const auto type = file_type(mix)) {
    gguf_set_val_u32(plan.metadata.get(), "general.file_type", *type);
  }
  return {};
}

}  // namespace

std::span<const NamedShape> named_shapes() { return kShapes; }

std::int64_t PlannedTensor::elements() const {
  return std::accumulate(ne.begin(), ne.end(), std::int64_t{1}, std::multiplies<>());
}

std::size_t PlannedTensor::bytes() const {
  return ggml_row_size(type, ne.front()) * static_cast<std::size_t>(elements() / ne.front());
}

std::size_t ModelPlan::weight_bytes() const {
  return std::transform_reduce(tensors.begin(), tensors.end(), std::size_t{0}, std::plus<>(),
                               [](const PlannedTensor& tensor) { return tensor.bytes(); });
}

bool promoted_by_q4_k_m(std::size_t index, std::size_t count) {
  return index < count / 8 || index >= 7 * count / 8 || (index - count / 8) % 3 == 2;
}

std::vector<std::int64_t> file_order(std::int64_t layers) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(layers));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::sort(order, {}, [](std::int64_t layer) { return std::to_string(layer); });
  return order;
}

std::expected<ModelPlan, ModelError> plan_model(const ModelSpec& spec) {
  const auto shape = std::ranges::find(kShapes, std::string_view(spec.shape), &NamedShape::name);
  if (shape == kShapes.end()) {
    return std::unexpected(ModelError{
        Kind::UnknownShape,
        std::format("unknown shape '{}'; known: {}{}", spec.shape, join(kShapes, &NamedShape::name),
                    did_you_mean(spec.shape, kShapes | std::views::transform(&NamedShape::name)))});
  }
  const auto dims = resolve_dims(*shape, spec);
  if (!dims) {
    return std::unexpected(dims.error());
  }
  if (spec.tied && (shape->architecture == "bert" || shape->architecture == "rwkv7")) {
    return invalid_spec(std::format("tied: the shape {} cannot share its embedding", shape->name));
  }
  detail::PlanBuilder builder(*shape, *dims, spec);
  for (const auto& [architecture, build] : kArchitectures)
    if (architecture == shape->architecture) build(builder);
  ModelPlan plan = builder.take();
  if (spec.splits < 1 || static_cast<std::size_t>(spec.splits) > plan.tensors.size()) {
    return invalid_spec(std::format("splits: {} must be from 1 to {} (the number of tensors)",
                                    spec.splits, plan.tensors.size()));
  }
  if (const auto chosen = choose_types(plan, *shape, *dims, spec); !chosen) {
    return std::unexpected(chosen.error());
  }
  return plan;
}

}  // namespace tt::modelgen
