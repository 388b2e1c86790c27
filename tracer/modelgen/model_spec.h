#pragma once

#include <ggml.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Specification of a generated model. Generated models have the tensors, metadata and
// tokenizer of a real architecture, and random weights of a realistic scale. They are used in
// tests, demos and benchmarks. plan_model (model_plan.h) converts a ModelSpec to a list of
// tensors, write_model (model_writer.h) to GGUF files.
namespace tt::modelgen {

struct ModelError {
  enum class Kind : std::uint8_t { UnknownShape, UnknownQuantization, BadSpec, Io, Cancelled };
  Kind kind;
  std::string message;  // for the user; contains the invalid option or tensor
};

// Purpose of a tensor; selects its type.
enum class TensorClass : std::uint8_t {
  Embedding,  // token_embd
  Attention,  // Q, K, V, O and their low-rank forms
  Ffn,        // dense and shared-expert feed-forward matrices
  Experts,    // the stacked matrices of routed experts
  Ssm,        // in/out projections of state space and RWKV layers
  Output,     // the language model head
  Fixed,      // norms, biases, routers, convolutions, positions: always F32
};

// Sizes of a model. Which ones are used depends on the shape; 0: not used.
struct Dims {
  std::int64_t layers = 0;
  std::int64_t embd = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ff = 0;  // per expert in models with experts
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // only metadata; nothing is allocated for it
  std::int64_t experts = 0;
  std::int64_t experts_used = 0;
};

// Sizes that override those of the named shape. All have initializers, for designated
// initialization.
struct DimOverrides {
  using Size = std::optional<std::int64_t>;
  Size layers{}, embd{}, heads{}, kv_heads{}, ff{}, vocab{}, context{}, experts{}, experts_used{};
};

struct ModelSpec {
  std::string shape = "small";  // one of named_shapes()
  DimOverrides dims{};
  std::string quant{};                            // one of quant_mixes(); empty: shape's default
  std::map<TensorClass, ggml_type> class_type{};  // overrides the mix per class
  std::uint64_t seed = 1;                         // same spec and seed, same bytes
  int splits = 1;  // files to spread the tensors over; 1: a single file
  // Above 1: routers prefer the first quarter of the experts, the more the larger.
  float router_skew = 1;
  bool tied = false;  // no output.weight; the embedding serves as the head
  // Pieces of a learned vocabulary, most frequent merge first, with U+2581 for a space. Only for
  // shapes with the llama tokenizer; determines the vocabulary size. Empty: a synthetic vocabulary
  // of dims.vocab tokens.
  std::vector<std::string> pieces{};
};

struct NamedShape {
  std::string_view name;
  std::string_view description;
  std::string_view architecture;  // general.architecture
  std::string_view quant;         // default mix
  bool generates;                 // generates text (false for embedding models)
  Dims dims;
};

std::span<const NamedShape> named_shapes();

// Names of mixes: each type ("f32", "q8_0", ...: used for all matrices), "q4_k_m" (Q4_K; Q6_K
// for the head and for the attn_v and ffn_down tensors that llama.cpp promotes) and "mxfp4_moe"
// (MXFP4 experts, Q8_0 otherwise).
std::vector<std::string> quant_mixes();

// Parses "q4_0", "Q4_K", "mxfp4", ..., case-insensitively. Types that need an importance matrix
// to quantize are not supported.
std::expected<ggml_type, ModelError> parse_type(std::string_view name);

// Parses "ffn=q4_0": one entry of ModelSpec::class_type.
std::expected<std::pair<TensorClass, ggml_type>, ModelError> parse_class_type(
    std::string_view text);

}  // namespace tt::modelgen
